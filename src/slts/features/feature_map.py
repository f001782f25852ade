"""What the feature maps, `AlignedProducts` and `Snippets`, have in common.

The features of a series have the shape `shape`, and so have the coefficients of an output. A map is
called with series for their features. `decide` returns linear functions of them, `by_landmark`
the part of each landmark or snippet, and `attribute` sends them back to steps and channels.
"""

from __future__ import annotations

from dataclasses import fields
from typing import Any, NamedTuple

from slts._typing import FloatArray


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


class PlainState:
    """Base of dataclasses whose pickles and copies hold the fields, not what was prepared."""

    def __getstate__(self) -> dict[str, Any]:
        """Return the fields."""
        return {field.name: getattr(self, field.name) for field in fields(self)}  # type: ignore[arg-type]
