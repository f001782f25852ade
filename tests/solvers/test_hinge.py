"""The rows of a hinge loss: weights, and the best point on a ray."""

import numpy as np
import pytest

from slts.solvers.hinge import HingeRows, ray_minimiser
from tests.data import solve_metric
from tests.solvers.problems import problem


@pytest.mark.parametrize("dtype", [np.float32, np.float64, int])
def test_rows_are_signed_and_weights_sum_to_one(dtype):
    X = np.arange(6).reshape(3, 2).astype(dtype)
    rows = HingeRows.build(X, [1, -1, -1], [1.0, 0.0, 3.0], "X")
    assert rows.signed.tolist() == [[0.0, 1.0], [-4.0, -5.0]]
    assert (rows.signed.dtype, rows.weights.tolist()) == (np.float64, [0.25, 0.75])
    assert (rows.n_rows, rows.n_columns) == (2, 2)
    np.testing.assert_allclose(rows.total, rows.weights @ rows.signed)
    np.testing.assert_allclose(rows.scaled(0.5).margins(np.ones(2)), [0.5, -4.5])
    assert rows.loss(np.array([0.5, 3.0])) == pytest.approx(0.125)


def test_rows_must_be_finite_labels_signs_and_weights_not_negative():
    ones = np.ones((3, 2))
    cases = [(X, np.ones(3), None, "'X'") for X in (
        np.ones(3), np.ones((0, 2)), np.ones((3, 0)), np.ones((3, 2, 1)), ones * np.nan,
        ones * np.inf,
    )]  # fmt: skip
    cases += [(ones, y, None, "'labels'") for y in ([1.0, 1.0], [1.0, 0.0, 1.0], [1.0, 2.0, 1.0])]
    cases += [
        (ones, np.ones(3), w, "'sample_weight'")
        for w in ([1.0, -1e-9, 1.0], [0.0] * 3, [1.0, np.nan, 1.0], [1.0, 1.0])
    ]
    for X, labels, weights, name in cases:
        with pytest.raises(ValueError, match=name):
            HingeRows.build(X, labels, weights, "X")
    # Their sum overflows, but they are finite.
    assert HingeRows.build(np.full((2, 1), 1.7e308), [1.0, 1.0], None, "X").n_rows == 2
    with pytest.raises(ValueError, match="squared norms of the rows must be finite"):
        solve_metric(np.full((2, 1, 1), 1e200), [1, -1], gamma=1.0, lam=1.0)


@pytest.mark.parametrize(
    "terms", [{"square": 0.3}, {"linear": 0.05}, {"square": 0.1, "linear": 0.05}]
)
def test_the_best_scale_is_that_of_a_fine_grid(rng, terms):
    margins, weights = rng.normal(loc=0.5, size=30), np.full(30, 1.0 / 30)
    grid = np.linspace(0.0, 20.0, 200_001)
    loss = sum(w * np.maximum(1.0 - grid * f, 0.0) for w, f in zip(weights, margins, strict=True))
    values = loss + terms.get("square", 0.0) * grid**2 + terms.get("linear", 0.0) * grid
    best = ray_minimiser(margins, weights, **terms)
    assert best == pytest.approx(grid[values.argmin()], abs=2e-4)


@pytest.mark.parametrize(("margins", "terms", "best"), [
    ([0.5, 2.0], {}, 1.0), ([0.5, 0.1], {"linear": 1.0}, 0.0), ([2.0], {"square": 1.0}, 0.5),
    ([-0.5, 0.1], {"square": 0.1}, 0.0),
])  # fmt: skip
def test_the_best_scale_without_and_with_a_strong_penalty(margins, terms, best):
    assert ray_minimiser(np.array(margins), np.ones(len(margins)), **terms) == best


@pytest.mark.parametrize("lam", [1e-1, 1e-3, 1e-5])
def test_a_loose_metric_is_still_the_best_on_its_ray(rng, lam):
    X, y, w = problem("weights", rng, 3000, 8)
    solution = solve_metric(X, y, gamma=0.5, lam=lam, sample_weight=w, tol=1e-2)
    square = lam * np.sum(solution.metric**2)
    assert solution.gap <= 1e-2 * solution.objective
    assert solution.loss + 2.0 * square <= 1.0 + 1e-12
    for factor in (0.9, 1.0 - 1e-4, 1.0 + 1e-4, 1.1):
        loss = w @ np.maximum(1.0 - factor * y * (X @ solution.metric) / 0.5, 0.0)
        assert solution.objective <= (loss + factor**2 * square) * (1.0 + 1e-12)
