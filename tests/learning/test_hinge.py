"""The rows of a hinge loss: weights, and the best point on a ray."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from slts.learning.hinge import HingeExamples, ray_minimiser
from tests.learning.problems import problem


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
