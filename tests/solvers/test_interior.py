"""The interior-point iteration itself; the problems it solves have tests of their own."""

import _thread
import signal
import threading

import numpy as np
import pytest

from slts.solvers import _solvers
from slts.solvers.hinge import HingeRows


def make(name, rng):
    rows = HingeRows(rng.normal(size=(9, 4)), rng.dirichlet(np.ones(9)))
    start = rng.normal(size=4)
    if name == "squared norm":
        return _solvers.SquaredNormSystem(rows.signed, rows.weights, 0.3, start), rows
    if name == "ball":
        return _solvers.L1BallSystem(rows.signed, rows.weights, 2.5), rows
    return _solvers.SmallestNormSystem(rows.signed, start), rows


def primal_residuals(name, system, rows):
    """Return by how much the equations of margins, coefficients and radius do not hold."""
    m, n = rows.signed.shape
    short = system.primal[m : 2 * m] if name != "smallest norm" else 0.0
    residuals = [rows.signed @ system.coef - 1.0 - system.primal[:m] + short]
    if name != "squared norm":
        end, slack = (-1, system.primal[-1]) if name == "ball" else (None, 0.0)
        halves = system.primal[:end][-2 * n :]
        residuals += [system.coef - halves[:n] + halves[n:]]
        residuals += [halves.sum() + slack - 2.5] if name == "ball" else []
    return np.hstack(residuals)


def dual_residuals(name, system, rows):
    """Return by how much the equations of multipliers, gradient and prices do not hold."""
    m = rows.n_rows
    gradient = system.dual[:m] @ rows.signed
    if name == "squared norm":
        prices = [gradient - 2.0 * 0.3 * system.coef]
    elif name == "ball":
        price, halves = system.dual[-1], system.dual[2 * m : -1]
        prices = [np.hstack([price - gradient, price + gradient]) - halves]
    else:
        return np.hstack([1.0 - gradient, 1.0 + gradient]) - system.dual[m:]
    return np.hstack([system.dual[:m] + system.dual[m : 2 * m] - rows.weights, *prices])


SYSTEMS = ["squared norm", "ball", "smallest norm"]


@pytest.mark.parametrize("name", SYSTEMS)
def test_a_direction_solves_the_newton_equations(name, rng):
    system, rows = make(name, rng)
    m, n = rows.signed.shape
    # No equation holds, except those that all points satisfy.
    system.primal = system.primal * rng.uniform(0.5, 2.0, size=system.primal.shape)
    system.dual = system.dual * rng.uniform(0.5, 1.5, size=system.dual.shape)
    if name != "smallest norm":
        dual = system.dual
        dual[m : 2 * m] = rows.weights - dual[:m]
        system.dual = dual
    if name != "squared norm":
        halves = system.primal[2 * m : -1] if name == "ball" else system.primal[m:]
        system.coef = halves[:n] - halves[n:]
    target = rng.normal(size=system.primal.shape)
    primal, dual, coef = system.direction(target)
    products = system.primal * dual + system.dual * primal
    np.testing.assert_allclose(products, target, rtol=1e-9, atol=1e-9)
    before = primal_residuals(name, system, rows), dual_residuals(name, system, rows)
    along = (0.25, 0.25 if name == "squared norm" else 0.5)
    system.primal, system.coef = system.primal + 0.25 * primal, system.coef + 0.25 * coef
    system.dual = system.dual + along[1] * dual
    after = primal_residuals(name, system, rows), dual_residuals(name, system, rows)
    for old, new, length in zip(before, after, along, strict=True):
        assert np.abs(old).max() > 0.01
        np.testing.assert_allclose(new, (1.0 - length) * old, atol=1e-9)


@pytest.mark.parametrize("name", SYSTEMS)
def test_the_first_point_is_interior_and_most_of_its_equations_hold(name, rng):
    system, rows = make(name, rng)
    assert system.primal.min() > 0.0
    assert system.dual.min() > 0.0
    m = rows.n_rows
    if name == "smallest norm":
        # The halves share the start and its mean size; products of rows are that size.
        np.testing.assert_allclose(primal_residuals(name, system, rows)[m:], 0.0, atol=1e-12)
        assert system.primal[:m].min() == 0.1
        np.testing.assert_allclose(system.primal[:m] * system.dual[:m], np.abs(system.coef).mean())
    else:
        np.testing.assert_allclose(primal_residuals(name, system, rows), 0.0, atol=1e-12)
        np.testing.assert_allclose(dual_residuals(name, system, rows)[:m], 0.0, atol=1e-12)


@pytest.mark.parametrize("name", SYSTEMS)
def test_values_bracket_the_optimum_and_meet_after_few_steps(name, rng):
    system, rows = make(name, rng)
    if name == "smallest norm":
        rows = HingeRows(np.abs(rows.signed) + 0.1, rows.weights)
        system = _solvers.SmallestNormSystem(rows.signed, np.full(4, 20.0))
    primal, dual = system.values()
    n_iter = system.minimise(tol=1e-10, max_iter=50)
    optimum = system.values()
    assert dual < optimum[1] <= optimum[0] < primal
    assert optimum[0] - optimum[1] <= 1e-10 * optimum[0]
    assert n_iter <= {"squared norm": 7, "ball": 9, "smallest norm": 9}[name]


def test_the_weighted_gram_is_that_of_all_rows(rng):
    # More rows than a block of the sum has, in any order in memory and precision.
    rows, weights = rng.normal(size=(1300, 3)).astype(np.float32), rng.dirichlet(np.ones(1300))
    target = rng.normal(size=2600)
    exact = rows.astype(np.float64)
    system = _solvers.SquaredNormSystem(np.asfortranarray(rows), weights, 0.3, np.zeros(3))
    ratio = (system.primal / system.dual).reshape(2, -1)
    metric = 1.0 / ratio.sum(axis=0)
    right = metric * ([1.0, -1.0] @ (target / system.dual).reshape(2, -1))
    gradient = 0.5 * weights @ exact
    known = np.linalg.solve((exact.T * metric) @ exact + 0.6 * np.eye(3), gradient + right @ exact)
    np.testing.assert_allclose(system.direction(target)[2], known, rtol=1e-9)


def test_a_point_outside_the_ball_is_moved_to_its_edge(rng):
    system, rows = make("ball", rng)
    system.coef = np.array([3.0, -1.0, 0.5, 0.5])
    loss, _ = system.values()
    np.testing.assert_allclose(system.coef, [1.5, -0.5, 0.25, 0.25])
    assert loss == pytest.approx(rows.loss(rows.margins(system.coef)))


def test_a_matrix_that_rounding_made_indefinite_is_raised():
    almost = np.array([[4.0, 2.1], [2.1, 1.0]])
    right = np.array([1.0, -2.0])
    # A tenth of the diagonal is the first multiple of 100 times 1e-15 that is enough.
    raised = almost * [[1.1, 1.0], [1.0, 1.1]]
    np.testing.assert_allclose(
        _solvers.solve_definite(almost, 0.0, right), np.linalg.solve(raised, right)
    )
    np.testing.assert_allclose(
        _solvers.solve_definite(almost, 1.0, right) @ (almost + np.eye(2)), right
    )
    with pytest.raises(np.linalg.LinAlgError, match="not positive definite"):
        _solvers.solve_definite(np.array([[1.0, 5.0], [5.0, 1.0]]), 0.0, right)


def gaps(system, steps):
    """Return primal value and gap after each number of steps, taken one by one."""
    result = []
    for _ in range(steps):
        primal, dual = system.values()
        result.append((primal, primal - dual))
        system.minimise(tol=-1.0, max_iter=1)
    return np.array(result).T


def test_steps_end_where_the_gap_closes_or_no_longer_shrinks():
    def new():
        return make("ball", np.random.default_rng(3))[0]

    primal, gap = gaps(new(), 50)
    tol = gap[5] / primal[5] * (1.0 + 1e-12)
    assert np.all(gap[:5] > tol * primal[:5])
    assert new().minimise(tol=tol, max_iter=99) == 5
    assert new().minimise(tol=tol * (1.0 - 1e-6), max_iter=99) == 6
    # The gap may be relative to a floor.
    floor = 7.0 * primal.max()
    tol = gap[5] / floor * (1.0 + 1e-12)
    assert new().minimise(tol=tol, max_iter=99, floor=floor) == 5
    # Margins are those of the last point.
    system, rows = make("ball", np.random.default_rng(3))
    assert system.minimise(tol=-1.0, max_iter=2) == 2
    np.testing.assert_allclose(system.margins, rows.margins(system.coef))
    assert system.values()[0] == pytest.approx(primal[2])


@pytest.mark.parametrize("name", SYSTEMS)
@pytest.mark.parametrize("broken", [0.0, np.nan, np.inf])
def test_without_a_finite_direction_the_point_stays(name, broken, rng):
    system, _ = make(name, rng)
    dual = system.dual
    dual[-1] = broken
    system.dual = dual
    primal, coef = system.primal, system.coef
    assert system.minimise(tol=1e-9, max_iter=9) == 0
    np.testing.assert_array_equal(system.primal, primal)
    np.testing.assert_array_equal(system.dual, dual)
    np.testing.assert_array_equal(system.coef, coef)


def test_other_threads_run_meanwhile_and_ctrl_c_ends_the_steps(rng):
    X = rng.normal(size=(100_000, 40))
    X *= np.sign(X @ np.ones(40) + rng.normal(size=len(X)))[:, None]
    system = _solvers.SquaredNormSystem(X, np.full(len(X), 1e-5), 1e-6, np.zeros(40))
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    timer = threading.Timer(0.02, _thread.interrupt_main)
    try:
        timer.start()
        with pytest.raises(KeyboardInterrupt):
            system.minimise(tol=-1.0, max_iter=500)
    finally:
        timer.join()
        signal.signal(signal.SIGINT, before)
    primal, dual = system.values()
    assert primal - dual > 1e-6 * primal
