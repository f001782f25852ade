"""Symmetric matrices with shifts and triangles, against inverses."""

import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from slts.execution import use_fit_threads
from slts.learning._solvers import BAND, STRIP, Banded, factorise_pivoted, solve_lower
from slts.learning.banded import BandForm

SHIFTS = np.logspace(-3.0, 2.0, 11)
# Around multiples of the band, of blocks of reflectors and of strips.
SIZES = [1, 2, 5, 50, 70, 145, 300, *(k * BAND + d for k in (1, 2) for d in (-1, 0, 1))]
SIZES += [STRIP - 1, STRIP, STRIP + 1]


def gram(rng, size):
    half = rng.normal(size=(size, size + 2))
    return half @ half.T


def test_a_matrix_that_is_not_reduced_is_an_error(rng):
    system = Banded(gram(rng, 5), SHIFTS)
    with pytest.raises(ValueError, match="Not all shifts are factorised"):
        system.quadratic(np.ones((1, 5)))


@pytest.mark.parametrize("instructions", ["", "avx2", "baseline"])
@pytest.mark.parametrize("size", SIZES)
def test_solutions_are_those_of_inverses(rng, monkeypatch, size, instructions):
    monkeypatch.setenv("SLTS_ISA", instructions)
    less, rows = rng.normal(size=size), rng.normal(size=(21, size))
    matrix = gram(rng, size)
    system = BandForm(matrix + np.outer(less, less), less, SHIFTS)
    rotated = system.rotate(rows)
    np.testing.assert_allclose(system.rotate(rotated, back=True), rows, atol=1e-12)
    np.testing.assert_allclose(rotated @ rotated.T, rows @ rows.T, atol=1e-10)
    solved, quadratic = system.solve(rotated), system.quadratic(rotated)
    assert (solved.shape, quadratic.shape) == ((11, 21, size), (21, 11))
    for k, shift in enumerate(SHIFTS):
        expected = np.linalg.solve(matrix + shift * np.eye(size), rows.T).T
        found = system.rotate(solved[k], back=True)
        np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-9 * np.abs(expected).max())
        np.testing.assert_allclose(quadratic[:, k], (expected * rows).sum(axis=1), rtol=1e-9)
        np.testing.assert_array_equal(system.solve(rotated, k), solved[k : k + 1])


def test_the_form_is_banded_and_has_the_eigenvalues_of_the_matrix(rng):
    matrix = gram(rng, 70)
    # A large shift, whose solutions show the band.
    shift = 1e3 * np.linalg.norm(matrix)
    system = BandForm(matrix, np.zeros(70), np.array([shift]))
    axes = system.rotate(np.eye(70))
    band = axes.T @ matrix @ axes
    outside = np.abs(np.subtract.outer(np.arange(70), np.arange(70))) > BAND
    np.testing.assert_allclose(band[outside], 0.0, atol=1e-11)
    np.testing.assert_allclose(np.linalg.eigvalsh(band), np.linalg.eigvalsh(matrix), atol=1e-10)
    inverse = np.linalg.inv(band + shift * np.eye(70))
    np.testing.assert_allclose(system.solve(np.eye(70))[0], inverse, atol=1e-12 / shift)


def test_nothing_has_no_solutions():
    system = BandForm(np.empty((0, 0)), np.empty(0), SHIFTS)
    assert system.rotate(np.empty((3, 0))).shape == (3, 0)
    assert system.solve(np.empty((3, 0))).shape == (11, 3, 0)
    np.testing.assert_array_equal(system.quadratic(np.empty((3, 0))), np.zeros((3, 11)))
    system = BandForm(np.eye(2), np.zeros(2), SHIFTS)
    assert system.rotate(np.empty((0, 2))).shape == (0, 2)
    assert system.solve(np.empty((0, 2))).shape == (11, 0, 2)
    assert BandForm(np.eye(2), np.zeros(2), np.empty(0)).quadratic(np.ones((3, 2))).shape == (3, 0)


@pytest.mark.parametrize("size", [1, 40, 300])
def test_a_matrix_of_zeros_has_its_shifts_alone(rng, size):
    rows = rng.normal(size=(5, size))
    system = BandForm(np.zeros((size, size)), np.zeros(size), SHIFTS)
    expected = (rows**2).sum(axis=1, keepdims=True) / SHIFTS
    np.testing.assert_allclose(system.quadratic(system.rotate(rows)), expected)


@pytest.mark.parametrize("size", [40, 300])
def test_rounding_below_zero_is_no_eigenvalue(rng, size):
    """A matrix of rank one, whose other eigenvalues are rounding of either sign."""
    x, rows = rng.normal(size=size), rng.normal(size=(9, size))
    length = float(x @ x)
    shifts = length * np.array([1e-300, 1e-10, 1e-6, 1.0])
    system = BandForm(np.outer(x, x), np.zeros(size), shifts)
    quadratic = system.quadratic(system.rotate(rows))
    assert np.isfinite(quadratic).all()
    assert (quadratic > 0.0).all()
    along = (rows @ x)[:, np.newaxis] ** 2 / length
    across = (rows**2).sum(axis=1, keepdims=True) - along
    expected = along / (length + shifts) + across / shifts
    # Shifts must be large beside rounding.
    np.testing.assert_allclose(quadratic[:, 1:], expected[:, 1:], rtol=1e-4)
    np.testing.assert_allclose(quadratic[:, 2:], expected[:, 2:], rtol=1e-8)


@pytest.mark.parametrize("rank", [3, 20, 60])
def test_small_shifts_of_a_deficient_matrix_are_solved(rng, rank):
    half, rows = rng.normal(size=(90, rank)), rng.normal(size=(9, 90))
    matrix = half @ half.T
    shifts = np.trace(matrix) * np.array([1e-300, 1e-18, 1e-15, 1e-12, 1e-9])
    system = BandForm(matrix, np.zeros(90), shifts)
    quadratic = system.quadratic(system.rotate(rows))
    assert np.isfinite(quadratic).all()
    assert (quadratic > 0.0).all()
    values, vectors = np.linalg.eigh(matrix)
    values[: 90 - rank] = 0.0
    expected = (rows @ vectors) ** 2 @ (1.0 / (values[:, np.newaxis] + shifts))
    np.testing.assert_allclose(quadratic[:, 3:], expected[:, 3:], rtol=1e-2)
    np.testing.assert_allclose(quadratic[:, 4:], expected[:, 4:], rtol=1e-5)


def test_sizes_must_agree():
    with pytest.raises(ValueError, match="not square"):
        Banded(np.ones((2, 3)), SHIFTS)
    system = BandForm(np.eye(3), np.zeros(3), SHIFTS)
    for work in (system.rotate, system.solve, system.quadratic):
        with pytest.raises(ValueError, match="another length"):
            work(np.ones((2, 4)))
    with pytest.raises(ValueError, match="no such shift"):
        system.solve(np.ones((2, 3)), 11)


def test_arrays_in_any_order_are_read(rng):
    matrix, rows = gram(rng, 40), rng.normal(size=(4, 40))
    expected = BandForm(matrix, np.zeros(40), SHIFTS).rotate(rows)
    system = BandForm(np.asfortranarray(matrix), np.zeros(40), SHIFTS)
    np.testing.assert_allclose(system.rotate(np.asfortranarray(rows)), expected, atol=1e-12)
    doubled = np.repeat(rows, 2, axis=0)[::2]
    np.testing.assert_allclose(system.rotate(doubled), expected, atol=1e-12)


@pytest.mark.parametrize("size", [2, 5, 20, 33, 34, 80])
def test_threads_share_a_matrix(rng, size):
    """LAPACK may change reflectors while it applies them."""
    rows = rng.normal(size=(200, size))
    system = BandForm(gram(rng, size), np.zeros(size), SHIFTS)
    expected = system.rotate(rows), system.solve(rows[:20]), system.quadratic(rows)
    together = threading.Barrier(4)

    def work(_):
        together.wait()
        return [
            (system.rotate(rows), system.solve(rows[:20]), system.quadratic(rows))
            for _ in range(20)
        ]

    with ThreadPoolExecutor(4) as pool:
        for found in pool.map(work, range(4)):
            for own in found:
                for array, of_one in zip(own, expected, strict=True):
                    np.testing.assert_array_equal(array, of_one)


@pytest.mark.parametrize("size", [100, 700])
def test_bits_do_not_depend_on_the_number_of_threads(rng, size):
    matrix, less, rows = gram(rng, size), rng.normal(size=size), rng.normal(size=(3, size))
    found = []
    for n_threads in (1, 2, 4):
        with use_fit_threads(n_threads):
            system = BandForm(matrix, less, SHIFTS)
        rotated = system.rotate(rows)
        found.append((rotated, system.solve(rotated), system.quadratic(rotated)))
    for others in found[1:]:
        for array, of_one in zip(others, found[0], strict=True):
            np.testing.assert_array_equal(array, of_one)


@pytest.mark.parametrize("rank", [0, 1, 6, 10])
def test_triangular_solutions_are_those_of_inverses(rng, rank):
    factor = np.asfortranarray(rng.normal(size=(10, 10)) + 5.0 * np.eye(10))
    own, rows = np.tril(factor)[:rank, :rank], rng.normal(size=(4, rank))
    np.testing.assert_allclose(solve_lower(factor, rows) @ own.T, rows, atol=1e-12)
    np.testing.assert_allclose(solve_lower(factor, rows, transposed=True) @ own, rows, atol=1e-12)


def test_a_factor_must_be_square_and_large_enough(rng):
    for factor, rows in ((np.eye(2), np.ones((1, 3))), (np.ones((3, 2)), np.ones((1, 2)))):
        with pytest.raises(ValueError, match="longer than the factor, or it is not square"):
            solve_lower(np.asfortranarray(factor), rows)
    with pytest.raises(ValueError, match="singular"):
        solve_lower(np.zeros((2, 2), order="F"), np.ones((1, 2)))


@pytest.mark.parametrize(
    ("size", "rank"), [(0, 0), (1, 1), (1, 0), (2, 2), (5, 2), (70, 70), (70, 9)]
)
def test_a_factor_with_pivots_gives_the_matrix(rng, size, rank):
    half = rng.normal(size=(size, rank))
    matrix = np.asfortranarray(half @ half.T)
    factor = matrix.copy(order="F")
    order, found = factorise_pivoted(factor, 1e-10)
    assert found == rank
    assert sorted(order) == list(range(size))
    own = np.tril(factor)[:, :rank]
    np.testing.assert_allclose(own @ own.T, matrix[np.ix_(order, order)], atol=1e-10)
    assert (np.diff(own.diagonal()) <= 0.0).all()


def test_a_matrix_with_pivots_must_be_square_and_finite():
    with pytest.raises(ValueError, match="not square"):
        factorise_pivoted(np.ones((2, 3), order="F"), 1e-10)
    with pytest.raises(ValueError, match="not finite"):
        factorise_pivoted(np.diag([1.0, np.nan]).copy(order="F"), 1e-10)
