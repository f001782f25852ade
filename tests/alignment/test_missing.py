"""Missing values in alignments: zero in unit rows; steps without a value are left out of paths."""

import numpy as np
import pytest

import slts
from tests.oracles import dtw

OBJECTIVES = ("affinity", "cost", "distance")


def with_gaps(rng, n, channels=3):
    x = rng.normal(size=(channels, n))
    x[rng.random(x.shape) < 0.3] = np.nan
    x[:, n // 2] = np.nan
    x[0, -1] = 1.0
    return x


def observed_rows(x):
    """Unit rows (time, channels) over the observed values, and the steps they belong to."""
    steps = [i for i in range(x.shape[1]) if not np.isnan(x[:, i]).all()]
    return dtw.unit_rows([[0.0 if np.isnan(v) else v for v in x[:, i]] for i in steps]), steps


@pytest.mark.parametrize("objective", OBJECTIVES)
@pytest.mark.parametrize("band", [None, 4])
def test_paths_and_products_are_those_of_the_observed_rows(objective, band, rng):
    X = [with_gaps(rng, n) for n in (7, 12, 9)]
    T = slts.aligned_products(X, objective=objective, band=band)
    K = slts.similarity(X, objective=objective, band=band)
    for p, a in enumerate(X):
        for q, b in enumerate(X):
            (rows_a, steps_a), (rows_b, steps_b) = observed_rows(a), observed_rows(b)
            expected = dtw.align(rows_a, rows_b, objective, band).path
            alignment = slts.align(a, b, objective=objective, band=band)
            path = [(steps_a[i], steps_b[j]) for i, j in expected]
            assert alignment.path.tolist() == [list(pair) for pair in path]
            i, j = expected.T
            product = rows_a[i].T @ rows_b[j] / len(expected)
            np.testing.assert_allclose(T[p, q], product, atol=1e-12)
            np.testing.assert_allclose(K[p, q], np.trace(product), atol=1e-12)
            assert alignment.similarity == pytest.approx(K[p, q])


def test_a_missing_value_contributes_nothing():
    a = [[1.0, 2.0], [1.0, np.nan]]
    b = [[3.0], [5.0]]
    # The second row of a is (1, 0).
    product = slts.aligned_products([a], [b])[0, 0]
    expected = (np.outer([1, 1], [3, 5]) / np.sqrt(2) + np.outer([1, 0], [3, 5])) / 2 / np.sqrt(34)
    np.testing.assert_allclose(product, expected)


def test_rows_that_are_not_normalised_have_zeros_too():
    a = [[1.0, np.nan, 2.0], [1.0, np.nan, np.nan]]
    alignment = slts.align(a, a, objective="distance", normalize=False)
    assert alignment.path.tolist() == [[0, 0], [2, 2]]
    assert alignment.similarity == (2.0 + 4.0) / 2
