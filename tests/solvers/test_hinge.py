"""The rows of a hinge loss: weights, and the best point on a ray."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from slts.solvers.hinge import HingeExamples, ray_minimiser
from tests.solvers.problems import problem


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_scaled_rows_have_the_labels_multiplied_in(rng: np.random.Generator, dtype: Any) -> None:
    X, y, w = problem("weights", rng, 40, 3)
    rows = HingeExamples(X.astype(dtype), y, w)
    coef = rng.normal(size=3)
    scaled = rows.scaled(0.5)
    assert scaled.features.dtype == np.float64
    np.testing.assert_allclose(scaled.margins(coef), 0.5 * rows.margins(coef), rtol=1e-12)
    np.testing.assert_allclose(scaled.features @ coef, scaled.margins(coef))


@pytest.mark.parametrize("weights", [[1.0, -1e-9, 1.0], [0.0, 0.0, 0.0], [1.0, np.nan, 1.0]])
def test_weights_must_be_non_negative_and_not_all_zero(weights: list[float]) -> None:
    with pytest.raises(ValueError, match="must be 3 non-negative values, not all zero"):
        HingeExamples.build(np.ones((3, 2)), np.ones(3), weights)


def test_a_subset_keeps_the_sum_of_weights(rng: np.random.Generator) -> None:
    rows = HingeExamples(*problem("weights", rng, 400, 5))
    assert rows.subset(np.arange(50)).weights.sum() == pytest.approx(rows.weights.sum())


@pytest.mark.parametrize(
    "terms", [{"square": 0.3}, {"linear": 0.05}, {"square": 0.1, "linear": 0.05}]
)
def test_the_best_scale_is_that_of_a_fine_grid(
    rng: np.random.Generator, terms: dict[str, float]
) -> None:
    margins, weights = rng.normal(loc=0.5, size=30), np.full(30, 1.0 / 30)
    grid = np.linspace(0.0, 20.0, 200_001)
    loss = sum(w * np.maximum(1.0 - grid * f, 0.0) for w, f in zip(weights, margins, strict=True))
    values = loss + terms.get("square", 0.0) * grid**2 + terms.get("linear", 0.0) * grid
    best = ray_minimiser(margins, weights, **terms)
    assert best == pytest.approx(grid[values.argmin()], abs=2e-4)


def test_without_a_penalty_the_scale_stays():
    assert ray_minimiser(np.array([0.5, 2.0]), np.ones(2)) == 1.0
    # A penalty of one is a penalty: here the best point is zero.
    assert ray_minimiser(np.array([0.5, 0.1]), np.ones(2), linear=1.0) == 0.0
    assert ray_minimiser(np.array([2.0]), np.ones(1), square=1.0) == 0.5


def test_a_penalty_that_is_larger_than_all_margins_gives_zero():
    assert ray_minimiser(np.array([-0.5, 0.1]), np.ones(2), square=0.1) == 0.0


def test_rows_must_be_finite_and_labels_signs():
    ones = np.ones((3, 2))
    for features in (np.ones(3), np.ones((0, 2)), np.ones((3, 0)), np.ones((3, 2, 1))):
        with pytest.raises(ValueError, match="must be a non-empty 2-D array"):
            HingeExamples.build(features, np.ones(3), None)
    for value in (np.nan, np.inf):
        with pytest.raises(ValueError, match="must be finite"):
            HingeExamples.build(np.array([[1.0, value]]), [1.0], None)
    # Their sum overflows, but they are finite.
    assert HingeExamples.build(np.full((2, 1), 1.7e308), [1.0, 1.0], None).n_rows == 2
    for labels in ([1.0, 1.0], [1.0, 0.0, 1.0], [1.0, 2.0, 1.0]):
        with pytest.raises(ValueError, match=r"must be 3 values of \+1 or -1"):
            HingeExamples.build(ones, labels, None)
    with pytest.raises(ValueError, match="must be 3 non-negative"):
        HingeExamples.build(ones, np.ones(3), np.ones(2))


def test_rows_without_weight_are_dropped_and_weights_sum_to_one():
    rows = HingeExamples.build(np.arange(6.0).reshape(3, 2), [1, -1, 1], [1.0, 0.0, 3.0])
    assert rows.features.tolist() == [[0.0, 1.0], [4.0, 5.0]]
    assert rows.labels.tolist() == [1.0, 1.0]
    assert rows.weights.tolist() == [0.25, 0.75]
    even = HingeExamples.build(np.ones((4, 1), dtype=np.float32), np.ones(4), None)
    assert even.weights.tolist() == [0.25] * 4
    assert even.features.dtype == np.float32
    assert HingeExamples.build(np.ones((4, 1), dtype=int), np.ones(4), None).features.dtype == float


def test_margins_and_sums_of_float32_rows_are_exact_in_blocks(rng, monkeypatch):
    monkeypatch.setattr("slts.solvers.hinge._BLOCK_ELEMENTS", 8)
    X = rng.normal(size=(11, 3)).astype(np.float32)
    y, coef, some = np.sign(rng.normal(size=11)), rng.normal(size=(2, 3)), rng.random(11)
    rows, exact = HingeExamples(X, y, np.full(11, 1 / 11)), X.astype(np.float64) * y[:, None]
    assert [len(block) for _, block in rows._blocks()] == [2, 2, 2, 2, 2, 1]
    np.testing.assert_allclose(rows.margins(coef), coef @ exact.T, rtol=1e-14)
    np.testing.assert_allclose(rows.margins(coef[0]), exact @ coef[0], rtol=1e-14)
    np.testing.assert_allclose(rows.combine(some), some @ exact, rtol=1e-14)
    np.testing.assert_allclose(rows.total, exact.mean(axis=0), rtol=1e-13)
    assert rows.combine(np.zeros(11)).tolist() == [0.0] * 3


def test_the_longest_row_has_a_finite_square():
    def rows(*values):
        return HingeExamples(np.array(values), np.ones(len(values)), np.ones(len(values)))

    assert rows([3.0, 4.0], [1.0, 1.0]).longest() == 5.0
    assert rows([0.0, 0.0]).longest() == 1.0
    with pytest.raises(ValueError, match="squared norms of the rows must be finite"):
        rows([1e200, 0.0]).longest()
