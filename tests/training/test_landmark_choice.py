"""Landmarks chosen in a sample."""

from contextlib import nullcontext

import numpy as np
import pytest
from slts.training.landmark_choice import FitOptions, landmark_positions

import slts
from slts.alignment import AlignmentSettings
from slts.execution import silent


@pytest.mark.parametrize("method", ["random", "kmedoids", "dselect"])
def test_rounding_of_the_rows_does_not_change_the_choice(method):
    rng = np.random.default_rng(3)
    batch = slts.as_series([rng.normal(size=(2, rng.integers(4, 9))) for _ in range(40)])
    nearly = slts.SeriesBatch(np.nextafter(batch.values, np.inf), batch.offsets)
    options = FitOptions(
        owner="SLTSClassifier", n_landmarks=8, landmarks=method, class_weight=None, device="cpu",
        n_jobs=1, memory_limit=None, seed=7, bar=lambda _: nullcontext(silent),
    )  # fmt: skip
    settings = AlignmentSettings("affinity", None, normalize=False)
    one, other = (landmark_positions(options, 8, rows, settings) for rows in (batch, nearly))
    assert one.tolist() == other.tolist()
    if method == "dselect":
        # The first one is random: the first in the order of the keys.
        assert one[0] == 0


def test_a_fraction_of_landmarks_is_one_of_the_distinct_series(rng):
    """Every series occurs twice."""
    X, y = rng.normal(size=(12, 2, 5)), np.arange(12) % 2
    X, y = np.concatenate([X, X]), np.concatenate([y, y])
    for n_landmarks, count in ((0.5, 6), (1.0, 12), (7, 7), (24, 12)):
        model = slts.BBSClassifier(n_landmarks, calibration_cv=None, random_state=0).fit(X, y)
        assert len(model.landmarks_) == count
