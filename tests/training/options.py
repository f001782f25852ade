"""Parameters of fits, as classifiers pass them to `training`."""

from contextlib import nullcontext

import numpy as np

import slts
from slts.alignment import AlignmentSettings
from slts.execution import silent
from slts.training.training_set import LandmarkOptions, LocalOptions, TrainingSet

COMMON = {
    "n_landmarks": None, "class_weight": None, "device": "cpu",
    "n_jobs": 1, "memory_limit": None, "seed": 0, "bar": lambda _: nullcontext(silent),
}  # fmt: skip


def local_options(**changes):
    """Small parameters of the local classifier."""
    values = {
        "owner": "LocalSLTSClassifier", "n_snippets": 20,
        "phases": (1, 3), "n_components": 5,
        "metric_rank": 3, "max_length": None, "penalties": np.logspace(-3, 1, 5),
        "settings": AlignmentSettings("affinity", normalize=False),
    }  # fmt: skip
    return LocalOptions(**COMMON | values | changes)


def landmark_options(**changes):
    """Parameters of SLTS without held-out series."""
    values = {
        "owner": "SLTSClassifier", "landmarks": "random", "learns_metric": True,
        "regularizer": "frobenius",
        "parameters": [{"gamma": 0.02, "lam": 0.5}], "cv": None, "cv_name": "calibration_cv",
        "scale": None, "homogeneous": False, "settings": AlignmentSettings("affinity"),
    }  # fmt: skip
    return LandmarkOptions(**COMMON | values | changes)


def training_set(series, codes, *, weights=None, groups=None, seed=0):
    """The training set of some series; classes are numbers."""
    codes = np.asarray(codes)
    classes = np.arange(codes.max() + 1)
    return TrainingSet.of_arrays(
        slts.as_series(series), codes, classes, weights=weights, groups=groups, seed=seed
    )
