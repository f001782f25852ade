"""How series are drawn: as the model sees them, or with standardised channels."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from slts.models.row_map import RowMap
from slts.series import SeriesBatch


@dataclass(frozen=True)
class Drawing:
    """A map from series to what is drawn of them, the same for data and landmarks.

    Attributes
    ----------
    rows
        Batches to batches of the same lengths; channels beyond those of the data are not drawn.
    note
        What readers must know of it.
    """

    rows: Callable[[SeriesBatch], SeriesBatch]
    note: str


def drawing_of(model: Any, reference: SeriesBatch | None) -> Drawing:
    """Rows as the model aligns them; where there is no one such map, standardised channels.

    Parameters
    ----------
    model
        A fitted classifier.
    reference
        Series whose channels tell mean and spread; None leaves series as they are.
    """
    rows = getattr(model, "row_map_", None)
    if isinstance(rows, RowMap):
        scaled = "every step scaled to unit length" if rows.settings.normalize else "unchanged"
        return Drawing(rows, f"Series are drawn as the model sees them: {scaled}.")
    if reference is None:
        return Drawing(lambda batch: batch, "Series are drawn as they are.")
    mean, spread = reference.values.mean(axis=0), reference.values.std(axis=0)
    spread[spread == 0] = 1.0

    def standardised(batch: SeriesBatch) -> SeriesBatch:
        values = np.ascontiguousarray((batch.values - mean) / spread)
        return SeriesBatch.from_checked(values, batch.offsets, batch.channel_names)

    return Drawing(standardised, "Series are drawn with standardised channels.")
