"""Parameters of fits, checked."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from slts._typing import FloatArray
from slts.alignment import AlignmentSettings
from slts.execution import Bar
from slts.features.feature_map import Resources


@dataclass(frozen=True, kw_only=True)
class FitOptions:
    """Parameters of all classifiers over landmarks; `owner` names the classifier in messages."""

    owner: str
    n_landmarks: Any
    settings: AlignmentSettings
    class_weight: Any
    device: str
    n_jobs: int | None
    memory_limit: Any
    seed: int
    bar: Bar

    @property
    def resources(self) -> Resources:
        """Where features are computed."""
        return Resources(self.device, self.n_jobs)


@dataclass(frozen=True, kw_only=True)
class LandmarkOptions(FitOptions):
    """Parameters of SLTS and BBS.

    `parameters` are the candidates to choose from, `cv_name` is the parameter that gives `cv`.
    """

    landmarks: Any
    learns_metric: bool
    regularizer: str
    parameters: Sequence[dict[str, float]]
    cv: Any
    cv_name: str
    scale: str | None
    homogeneous: bool | str


@dataclass(frozen=True, kw_only=True)
class LocalOptions(FitOptions):
    """Parameters of `LocalSLTSClassifier`."""

    n_snippets: int
    representations: tuple[str, ...]
    phases: tuple[int, ...]
    n_components: int
    metric_rank: int
    max_length: int | None
    penalties: FloatArray
