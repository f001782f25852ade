"""Symmetric matrices with shifts and triangles, against inverses."""

import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from slts.learning._solvers import Tridiagonal, factorise_pivoted, solve_lower

SHIFTS = np.logspace(-3.0, 2.0, 11)


@pytest.mark.parametrize("size", [1, 2, 5, 33, 34, 70])
def test_solutions_are_those_of_inverses(rng, size):
    half, less = rng.normal(size=(size, size + 2)), rng.normal(size=size)
    matrix, rows = half @ half.T, rng.normal(size=(7, size))
    # One triangle is read.
    system = Tridiagonal(np.triu(matrix + np.outer(less, less)), less)
    rotated = system.rotate(rows)
    np.testing.assert_allclose(system.rotate(rotated, back=True), rows, atol=1e-12)
    np.testing.assert_allclose(rotated @ rotated.T, rows @ rows.T, atol=1e-10)
    solved, quadratic = system.solve(rotated, SHIFTS), system.quadratic(rotated, SHIFTS)
    assert (solved.shape, quadratic.shape) == ((11, 7, size), (7, 11))
    for k, shift in enumerate(SHIFTS):
        expected = np.linalg.solve(matrix + shift * np.eye(size), rows.T).T
        np.testing.assert_allclose(system.rotate(solved[k], back=True), expected, rtol=1e-7)
        np.testing.assert_allclose(quadratic[:, k], (expected * rows).sum(axis=1), rtol=1e-9)


def test_nothing_has_no_solutions():
    system = Tridiagonal(np.empty((0, 0)), np.empty(0))
    assert system.rotate(np.empty((3, 0))).shape == (3, 0)
    assert system.solve(np.empty((3, 0)), SHIFTS).shape == (11, 3, 0)
    np.testing.assert_array_equal(system.quadratic(np.empty((3, 0)), SHIFTS), np.zeros((3, 11)))
    assert Tridiagonal(np.eye(2), np.zeros(2)).rotate(np.empty((0, 2))).shape == (0, 2)
    assert Tridiagonal(np.eye(2), np.zeros(2)).quadratic(np.ones((3, 2)), np.empty(0)).shape == (
        3,
        0,
    )


def test_rounding_below_zero_is_no_eigenvalue(rng):
    """A matrix of rank one, whose other eigenvalues are rounding of either sign."""
    x, rows = rng.normal(size=40), rng.normal(size=(9, 40))
    size = float(x @ x)
    system = Tridiagonal(np.outer(x, x), np.zeros(40))
    shifts = size * np.array([1e-300, 1e-10, 1e-6, 1.0])
    quadratic = system.quadratic(system.rotate(rows), shifts)
    assert np.isfinite(quadratic).all()
    assert (quadratic > 0.0).all()
    along = (rows @ x)[:, np.newaxis] ** 2 / size
    across = (rows**2).sum(axis=1, keepdims=True) - along
    expected = along / (size + shifts) + across / shifts
    # Shifts must be large beside rounding.
    np.testing.assert_allclose(quadratic[:, 1:], expected[:, 1:], rtol=1e-4)
    np.testing.assert_allclose(quadratic[:, 2:], expected[:, 2:], rtol=1e-8)


def test_sizes_must_agree():
    with pytest.raises(ValueError, match="not square"):
        Tridiagonal(np.ones((2, 3)), np.ones(2))
    with pytest.raises(ValueError, match="subtracted has another length"):
        Tridiagonal(np.eye(3), np.ones(2))
    system = Tridiagonal(np.eye(3), np.zeros(3))
    for work in (system.rotate, lambda rows: system.solve(rows, SHIFTS)):
        with pytest.raises(ValueError, match="another length"):
            work(np.ones((2, 4)))


def test_arrays_in_any_order_are_read(rng):
    half = rng.normal(size=(6, 9))
    rows = rng.normal(size=(4, 6))
    expected = Tridiagonal(half @ half.T, np.zeros(6)).rotate(rows)
    system = Tridiagonal(np.asfortranarray(half @ half.T), np.zeros(6))
    np.testing.assert_allclose(system.rotate(np.asfortranarray(rows)), expected, atol=1e-12)
    doubled = np.repeat(rows, 2, axis=0)[::2]
    np.testing.assert_allclose(system.rotate(doubled), expected, atol=1e-12)


@pytest.mark.parametrize("size", [2, 5, 20, 33, 34, 80])
def test_threads_share_a_matrix(rng, size):
    """LAPACK may change reflectors while it applies them."""
    half = rng.normal(size=(size, size + 2))
    system, rows = Tridiagonal(half @ half.T, np.zeros(size)), rng.normal(size=(200, size))
    expected = system.rotate(rows)
    together = threading.Barrier(4)

    def work(_):
        together.wait()
        return [system.rotate(rows) for _ in range(50)]

    with ThreadPoolExecutor(4) as pool:
        for found in pool.map(work, range(4)):
            for own in found:
                np.testing.assert_array_equal(own, expected)


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
