"""Symmetric matrices with shifts, against inverses."""

import threading

import numpy as np
import pytest

from slts.learning._solvers import Tridiagonal

SHIFTS = np.logspace(-3.0, 2.0, 11)


@pytest.mark.parametrize("size", [1, 2, 5, 70])
def test_solutions_are_those_of_inverses(rng, size):
    half = rng.normal(size=(size, size + 2))
    matrix, rows = half @ half.T, rng.normal(size=(7, size))
    system = Tridiagonal(matrix)
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
    system = Tridiagonal(np.empty((0, 0)))
    assert system.rotate(np.empty((3, 0))).shape == (3, 0)
    assert system.solve(np.empty((3, 0)), SHIFTS).shape == (11, 3, 0)
    np.testing.assert_array_equal(system.quadratic(np.empty((3, 0)), SHIFTS), np.zeros((3, 11)))
    assert Tridiagonal(np.eye(2)).rotate(np.empty((0, 2))).shape == (0, 2)
    assert Tridiagonal(np.eye(2)).quadratic(np.ones((3, 2)), np.empty(0)).shape == (3, 0)


def test_rounding_below_zero_is_no_eigenvalue(rng):
    """A matrix of rank one, whose other eigenvalues are rounding of either sign."""
    x = 1e8 * rng.normal(size=40)
    system = Tridiagonal(np.outer(x, x))
    rows = system.rotate(rng.normal(size=(9, 40)))
    quadratic = system.quadratic(rows, np.array([1e-12, 1.0]))
    assert np.isfinite(quadratic).all()
    assert (quadratic > 0.0).all()


def test_sizes_must_agree():
    with pytest.raises(ValueError, match="not square"):
        Tridiagonal(np.ones((2, 3)))
    system = Tridiagonal(np.eye(3))
    for work in (system.rotate, lambda rows: system.solve(rows, SHIFTS)):
        with pytest.raises(ValueError, match="another length"):
            work(np.ones((2, 4)))


def test_arrays_in_any_order_are_read(rng):
    half = rng.normal(size=(6, 9))
    rows = rng.normal(size=(4, 6))
    expected = Tridiagonal(half @ half.T).rotate(rows)
    system = Tridiagonal(np.asfortranarray(half @ half.T))
    np.testing.assert_allclose(system.rotate(np.asfortranarray(rows)), expected, atol=1e-12)
    doubled = np.repeat(rows, 2, axis=0)[::2]
    np.testing.assert_allclose(system.rotate(doubled), expected, atol=1e-12)


def test_threads_share_a_matrix(rng):
    half = rng.normal(size=(50, 60))
    system, rows = Tridiagonal(half @ half.T), rng.normal(size=(20, 50))
    expected, found = system.quadratic(system.rotate(rows), SHIFTS), []

    def work():
        found.append(system.quadratic(system.rotate(rows), SHIFTS))

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 4
    for own in found:
        np.testing.assert_array_equal(own, expected)
