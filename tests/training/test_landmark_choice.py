"""Landmarks chosen in a sample."""

from contextlib import nullcontext

import numpy as np
import pytest

import slts
from slts.alignment import AlignmentSettings
from slts.execution import silent
from slts.training.landmark_choice import FitOptions, landmark_positions


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
