"""Ridge regression: the solution, what is left out in closed form, and sums over parts."""

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from slts.execution import use_fit_threads
from slts.solvers.ridge import NormalEquations, Span, gram, matmul
from tests.alignment.cuda import conftest as cuda
from tests.alignment.cuda.emulator import fake_cupy
from tests.oracles.ridge import left_out, ridge

pretend, gpu = cuda.pretend, cuda.gpu

PENALTIES = np.array([0.1, 1.0, 10.0])


def problem(rng, n=25, p=40, k=3):
    features = rng.normal(size=(n, p)) + 3.0
    return features, np.sign(rng.normal(size=(n, k))), rng.uniform(0.5, 2.0, size=n)


def predict(span, solution, products):
    """Predictions for series from their inner products with those of the span."""
    return (products @ span.basis - span.origin) @ solution.slope + solution.intercept


@pytest.mark.parametrize(("p", "penalty"), [(40, 0.1), (40, 10.0), (5, 1e-8), (5, 0.1)])
def test_the_solution_is_that_of_the_normal_equations(p, penalty, rng):
    features, targets, weights = problem(rng, p=p)
    span = Span.of(features @ features.T, weights)
    solution = span.solve(targets, weights, penalty)
    slope, intercept = ridge(features, targets, weights, penalty)
    new = rng.normal(size=(5, p))
    expected = new @ slope + intercept
    np.testing.assert_allclose(predict(span, solution, new @ features.T), expected, atol=1e-7)
    residual = targets - features @ slope - intercept
    objective = (weights[:, None] * residual**2).sum() + penalty * (slope**2).sum()
    assert solution.report.objective == pytest.approx(objective / weights.sum(), rel=1e-6)
    assert solution.report.converged


def test_coordinates_keep_inner_products_of_centred_features(rng):
    features, _, weights = problem(rng)
    span = Span.of(features @ features.T, weights)
    centred = features - weights @ features / weights.sum()
    np.testing.assert_allclose(span.coordinates @ span.coordinates.T, centred @ centred.T)
    np.testing.assert_allclose(weights @ span.coordinates, 0.0, atol=1e-10)
    squares = (span.coordinates.T * weights) @ span.coordinates
    np.testing.assert_allclose(squares, np.diag(span.diagonal), atol=1e-9)
    again = features @ features.T @ span.basis - span.origin
    np.testing.assert_allclose(again, span.coordinates, atol=1e-9)


PARTS = [None, np.arange(25) % 6, np.arange(25) // 20, np.arange(25)]


@pytest.mark.parametrize("parts", PARTS)
def test_left_out_predictions_come_from_fits_without_the_series_or_part(parts, rng):
    features, targets, weights = problem(rng)
    span = Span.of(features @ features.T, weights)
    loo = span.leave_one_out(targets, weights, PENALTIES, parts)
    predictions = [left_out(features, targets, weights, penalty, parts) for penalty in PENALTIES]
    errors = [np.average((p - targets) ** 2, weights=weights, axis=0).mean() for p in predictions]
    # Matrices of parts are solved with 1e-9 added, next to leverages near one.
    near = {"rtol": 1e-7, "atol": 1e-8} if parts is None else {"rtol": 1e-5, "atol": 1e-5}
    np.testing.assert_allclose(loo.errors, errors, **near)
    assert (loo.best, loo.error) == (np.argmin(errors), min(loo.errors))
    np.testing.assert_allclose(loo.predictions, predictions[loo.best], **near)
    solution = span.solve(targets, weights, PENALTIES[loo.best])
    np.testing.assert_allclose(loo.slope, solution.slope, atol=1e-12)


def test_a_large_mean_of_all_features_does_not_matter(rng):
    """The smallest penalties have leverages near one, where rounding shows most."""
    features, targets, weights = problem(rng, 200, 400)
    penalties = 400.0 * np.logspace(-4.0, 3.0, 8)
    span = Span.of(features @ features.T, weights)
    expected = span.leave_one_out(targets, weights, penalties).errors
    for mean in (10.0, 100.0, 1000.0):
        moved = features + mean
        errors = Span.of(moved @ moved.T, weights).leave_one_out(targets, weights, penalties).errors
        np.testing.assert_allclose(errors, expected, rtol=1e-10 * mean**2)


def test_features_that_never_change_leave_the_mean_and_the_largest_penalty(rng):
    targets, weights = np.sign(rng.normal(size=(10, 1))), np.ones(10)
    span = Span.of(np.ones((10, 10)), weights)
    loo = span.leave_one_out(targets, weights, PENALTIES)
    assert loo.best == len(PENALTIES) - 1
    solution = span.solve(targets, weights, PENALTIES[0])
    predicted = predict(span, solution, np.ones((1, 10)))
    np.testing.assert_allclose(predicted, targets.mean(axis=0)[None], atol=1e-8)


def test_a_solution_that_rounding_spoils_is_a_warning(rng):
    features, targets, weights = problem(rng, 30, 5)
    equations = NormalEquations(5, 3)
    equations.add(1e6 * features, targets, weights)
    with pytest.warns(ConvergenceWarning, match="ill conditioned"):
        assert not equations.solve(1e-16).report.converged


def test_sums_of_parts_have_the_solution_of_all_series(rng):
    features, targets, weights = problem(rng, 60, 8)
    parts = [NormalEquations(8, 3) for _ in range(4)]
    for part, rows in zip(parts, np.split(np.arange(60), [0, 3, 40]), strict=True):
        coordinates = features[rows].copy()
        part.add(coordinates, targets[rows], weights[rows])
        # Sums do not refer to what was added.
        coordinates[:] = 0.0
    equations = parts[0]
    for part in parts[1:]:
        equations += part
    for penalty in PENALTIES:
        solution = equations.solve(penalty)
        slope, intercept = ridge(features, targets, weights, penalty)
        np.testing.assert_allclose(solution.slope, slope, atol=1e-10)
        np.testing.assert_allclose(solution.intercept, intercept, atol=1e-9)
        span = Span.of(features @ features.T, weights)
        report = span.solve(targets, weights, penalty).report
        assert solution.report.objective == pytest.approx(report.objective, rel=1e-9)
        assert solution.report.converged


def test_some_series_span_the_best_function_of_their_features(rng):
    """More features than anchors: the slope is a combination of the anchors' features."""
    features, targets, weights = problem(rng, 60, 40)
    anchors = features[:12]
    span = Span.of(anchors @ anchors.T, np.ones(12))
    coordinates = features @ anchors.T @ span.basis - span.origin
    equations = NormalEquations(coordinates.shape[1], 3)
    equations.add(coordinates, targets, weights)
    solution = equations.solve(1.0)
    # An orthonormal basis of the centred features of the anchors.
    basis = np.linalg.svd(anchors - anchors.mean(axis=0), full_matrices=False)[2][:11].T
    slope, intercept = ridge(features @ basis, targets, weights, 1.0)
    expected = features @ basis @ slope + intercept
    predicted = coordinates @ solution.slope + solution.intercept
    np.testing.assert_allclose(predicted, expected, atol=1e-9)


@pytest.mark.parametrize("shape", [(3, 5), (300, 700), (513, 260)])
def test_products_in_tiles_have_the_same_bits_for_every_number_of_threads(shape, rng):
    a, b = rng.normal(size=shape), rng.normal(size=(shape[1], 600))
    np.testing.assert_allclose(matmul(a, b), a @ b, atol=1e-11)
    np.testing.assert_allclose(gram(a), a @ a.T, atol=1e-11)
    np.testing.assert_array_equal(gram(a), gram(a).T)
    for n_threads in (2, 4):
        with use_fit_threads(n_threads):
            products = matmul(a, b), gram(a)
        np.testing.assert_array_equal(products[0], matmul(a, b))
        np.testing.assert_array_equal(products[1], gram(a))


@pytest.fixture(params=["emulated", "real"])
def cupy(request, pretend, tmp_path):
    """CuPy, emulated and, where there is a GPU, real."""
    if request.param == "real":
        return request.getfixturevalue("gpu")
    return pretend(fake_cupy(tmp_path))


def test_a_gpu_decomposes_as_the_cpu(cupy, rng):
    features, targets, weights = problem(rng, 12, 20, 2)
    solutions = []
    for arrays in (np, cupy):
        span = Span.of(gram(arrays.asarray(features)), weights)
        solutions.append((span, span.solve(targets, weights, 0.5)))
    products = rng.normal(size=(4, 20)) @ features.T
    expected, predicted = (predict(*pair, products) for pair in solutions)
    assert type(predicted) is np.ndarray
    np.testing.assert_allclose(predicted, expected, atol=1e-9)
