"""What feature maps have in common."""

from __future__ import annotations

from dataclasses import fields
from typing import Any, NamedTuple, Protocol

from slts._typing import FloatArray
from slts.series import SeriesBatch


class Resources(NamedTuple):
    """Where features are computed: the device of alignments, and threads by joblib's convention."""

    device: str = "cpu"
    n_jobs: int | None = 1


class Attribution(NamedTuple):
    """Linear functions of the features of one series, sent back to its steps and channels.

    Attributes
    ----------
    contributions
        Shape (outputs, steps, channels).
    rest
        What belongs to no step and no channel, shape (outputs,). Both sum to the outputs.
    """

    contributions: FloatArray
    rest: FloatArray


class FeatureMap(Protocol):
    """Turns series into features, and linear functions of the features into numbers.

    The features of a series have the shape `shape`, and so have the coefficients of one output.
    """

    @property
    def name(self) -> str:
        """What is compared, for people."""

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of the features of a series."""

    @property
    def n_landmarks(self) -> int:
        """Number of landmarks, long or short."""

    @property
    def n_numbers(self) -> int:
        """Number of stored numbers."""

    def __call__(self, batch: SeriesBatch, resources: Resources) -> FloatArray:
        """Return features, shape (series, *shape)."""

    def decide(self, batch: SeriesBatch, coef: FloatArray, resources: Resources) -> FloatArray:
        """Return the outputs <coef[c], features>, shape (series, outputs)."""

    def by_landmark(self, batch: SeriesBatch, coef: FloatArray, resources: Resources) -> FloatArray:
        """Return the part of each landmark, shape (series, outputs, landmarks)."""

    def attribute(
        self, series: SeriesBatch, coef: FloatArray, landmark: int | None = None
    ) -> Attribution:
        """Send the outputs for one series, or the part of one landmark, back to its values."""


class PlainState:
    """Base of dataclasses whose pickles and copies hold the fields, not what was prepared."""

    def __getstate__(self) -> dict[str, Any]:
        """Return the fields."""
        return {field.name: getattr(self, field.name) for field in fields(self)}  # type: ignore[arg-type]
