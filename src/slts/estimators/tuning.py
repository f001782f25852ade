"""What the classifiers that choose their own parameters share."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from slts._typing import IntArray
from slts.alignment import AlignmentSettings
from slts.estimators.landmark_classifier import LandmarkClassifier
from slts.estimators.search import Search
from slts.estimators.splitting import Split, make_splits
from slts.landmarks import resolve_count
from slts.learning.landmark import LandmarkData
from slts.series import SeriesBatch

# The paper's grids.
GAMMAS = (1e-4, 1e-3, 1e-2, 1e-1, 1.0, 10.0)
LAMS = (0.1, 1.0, 10.0)


def check_positive(name: str, owner: object, value: Any) -> float:
    """A positive finite number, or an error that names the parameter."""
    if isinstance(value, bool) or not np.isscalar(value) or not np.isreal(value):
        number = np.nan
    else:
        number = float(value)  # type: ignore[arg-type]
    if not 0.0 < number < np.inf:
        raise ValueError(
            f"The '{name}' parameter of {type(owner).__name__} must be a positive finite number. "
            f"Got {value!r} instead."
        )
    return number


def check_grid(name: str, owner: object, values: Any) -> list[float]:
    """A non-empty list of positive numbers."""
    if isinstance(values, str) or not isinstance(values, Sequence | np.ndarray) or len(values) == 0:
        raise ValueError(
            f"The '{name}' parameter of {type(owner).__name__} must be a non-empty list of "
            f"positive numbers. Got {values!r} instead."
        )
    return [check_positive(name, owner, value) for value in values]


class TunedLandmarks(LandmarkClassifier):
    """Splits from `cv`, several numbers of landmarks, and the table of scores."""

    cv: Any
    best_params_: dict[str, Any]
    best_score_: float
    cv_results_: dict[str, Any]
    n_splits_: int

    _cv_name = "cv"

    def _splits(self, codes: IntArray, seed: int) -> list[Split]:
        splits = make_splits(self.cv, codes, random_state=seed, classes=self.classes_)
        self.n_splits_ = len(splits)
        return splits

    def _choose_landmarks(
        self, series: SeriesBatch, settings: AlignmentSettings, seed: int
    ) -> IntArray:
        indices = super()._choose_landmarks(series, settings, seed)
        if isinstance(self.landmarks, str) and self.landmarks == "kmedoids":
            # Medoids come ascending, hence often class by class: the first few must be a sample.
            indices = np.random.RandomState(seed).permutation(indices)
        return indices

    def _most_landmarks(self, n_series: int) -> int | float:
        if _is_list(self.n_landmarks):
            if len(self.n_landmarks) == 0:
                raise ValueError(
                    f"The 'n_landmarks' parameter of {type(self).__name__} must not be an empty "
                    f"list. Got {self.n_landmarks!r} instead."
                )
            return max(resolve_count(n, n_series) for n in self.n_landmarks)
        return super()._most_landmarks(n_series)

    def _landmark_counts(self, data: LandmarkData) -> list[int]:
        if not _is_list(self.n_landmarks):
            return [data.n_landmarks]
        counts = {resolve_count(n, len(data.codes)) for n in self.n_landmarks}
        return sorted({min(count, data.n_landmarks) for count in counts})

    def _keep(self, found: Search) -> None:
        self.best_params_ = dict(found.candidates[found.best])
        self.best_score_ = float(found.scores[found.best].mean())
        self.cv_results_ = found.cv_results


def _is_list(value: Any) -> bool:
    return isinstance(value, Sequence | np.ndarray) and not isinstance(value, str)
