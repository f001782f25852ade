"""The checked parameters of classifiers, as the steps of learning take them."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any

from slts._typing import FloatArray
from slts.alignment import AlignmentSettings
from slts.execution import Progress, progress_bar


@dataclass(frozen=True, kw_only=True)
class FitOptions:
    """Parameters that all classifiers over landmarks have; `owner` names it in messages."""

    owner: str
    n_landmarks: Any
    landmarks: Any
    class_weight: Any
    device: str
    n_jobs: int | None
    memory_limit: Any
    seed: int
    verbose: bool

    def bar(self, description: str) -> AbstractContextManager[Progress]:
        """Return a progress bar if progress is to be shown."""
        return progress_bar(description, show=self.verbose)


@dataclass(frozen=True, kw_only=True)
class LandmarkOptions(FitOptions):
    """Parameters of a classifier over landmarks, checked.

    `parameters` are the candidates to choose from, `cv_name` is the parameter that gives `cv`.
    """

    learns_metric: bool
    regularizer: str
    parameters: Sequence[dict[str, float]]
    cv: Any
    cv_name: str
    scale: str | None
    homogeneous: bool | str
    settings: AlignmentSettings


@dataclass(frozen=True, kw_only=True)
class LocalOptions(FitOptions):
    """Parameters of `LocalSLTSClassifier`, checked."""

    n_landmarks_per_class: int | None
    n_snippets: int
    representations: tuple[str, ...]
    settings: tuple[AlignmentSettings, ...]
    metrics: str
    phases: tuple[int, ...]
    n_components: int
    metric_rank: int
    max_length: int | None
    penalties: FloatArray

    @property
    def n_comparisons(self) -> int:
        """Number of comparisons: representations times objectives."""
        return len(self.representations) * len(self.settings)
