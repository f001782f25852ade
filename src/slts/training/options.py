"""Parameters that fits share, checked."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from slts.execution import Bar
from slts.features.feature_map import Resources


@dataclass(frozen=True, kw_only=True)
class FitOptions:
    """Parameters of all classifiers over landmarks; `owner` names the classifier in messages."""

    owner: str
    n_landmarks: Any
    landmarks: Any
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
