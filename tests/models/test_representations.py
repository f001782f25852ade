"""Representations: unit rows of a series, and what each step and channel contributes to them."""

import numpy as np
import pytest
from slts.models import representations
from slts.models.representations import REPRESENTATIONS, Representation

import slts


def test_the_order_of_classes_does_not_bias_the_scale(rng, monkeypatch):
    monkeypatch.setattr(representations, "_FIT_STEPS", 1000)
    X = [rng.normal(size=(1, 50)) + 100.0 * (i % 2) for i in range(200)]
    representation = Representation.fit(
        slts.as_series(X), "values", max_length=None, n_components=24
    )
    assert representation.scale.centre[0] == pytest.approx(50, abs=15)
    assert representation.scale.spread[0] == pytest.approx(50, abs=5)


def test_rows_have_norm_one_and_are_attributed_exactly(rng):
    batch = slts.as_series([rng.normal(size=(4, n)) for n in (9, 17)])
    for name in REPRESENTATIONS:
        representation = Representation.fit(batch, name, max_length=6, n_components=6)
        one = batch[1:]
        rows = representation(one).values
        np.testing.assert_allclose(np.linalg.norm(rows, axis=1), 1.0)
        assert rows.shape[0] == 6
        slopes = rng.normal(size=(2, *rows.shape))
        contributions, rest = representation.traced(one).attribute(slopes)
        np.testing.assert_allclose(
            contributions.sum(axis=(1, 2)) + rest, (rows * slopes).sum(axis=(1, 2))
        )
        assert contributions.shape == (2, 17, 4)
