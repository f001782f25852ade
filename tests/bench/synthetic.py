"""Small data sets under the names of the paper's, and a protocol to match."""

import dataclasses

from slts.bench.protocol import FULL
from tests.study.synthetic import HERE, MISSING, load

__all__ = ["HERE", "MISSING", "TINY", "load", "result"]

TINY = dataclasses.replace(
    FULL, name="tiny", n_splits=2, choice_folds=2, choice_repeats=1, choice_series=20
)


def result(method, dataset, split, accuracy, **more):
    """What a unit returns."""
    return {
        "method": method,
        "dataset": dataset,
        "split": split,
        "accuracy": accuracy,
        "n_train": 20,
        "n_test": 10,
        "fit_seconds": 2.0,
        "predict_seconds": 1.0,
        "numbers": 1000,
        **more,
    }
