"""Where landmarks and snippets come from: what the user calls their training series."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from slts._typing import IntArray
from slts.series import SeriesBatch


@dataclass(frozen=True, eq=False)
class Origins:
    """The training series that a model keeps, or keeps parts of.

    Parameters
    ----------
    indices
        Their positions among the training series, distinct.
    codes
        Their classes, as positions in `classes_`.
    names
        What the user calls them; None if the data had no identifiers.
    """

    indices: IntArray
    codes: IntArray
    names: tuple[str, ...] | None

    @classmethod
    def of(cls, series: SeriesBatch, indices: IntArray, codes: IntArray) -> Origins:
        """Remember some training series; an index may be repeated."""
        _, first = np.unique(indices, return_index=True)
        return cls(indices[first], codes[first], series[first].series_names)

    def place(self, index: int) -> int | None:
        """Return the place of a training series here; None if it is unknown."""
        return self._places.get(index)

    @cached_property
    def _places(self) -> dict[int, int]:
        return {index: place for place, index in enumerate(self.indices.tolist())}

    def code(self, index: int) -> int | None:
        """Return the class of a training series; None if it is unknown."""
        place = self.place(index)
        return None if place is None else int(self.codes[place])

    def name(self, index: int) -> str:
        """Return the name of a training series, such as "recording 17"."""
        place = self.place(index)
        if self.names is None or place is None:
            return f"training series {index}"
        return self.names[place]

    def anonymous(self) -> Origins:
        """Return the same training series without their names."""
        return replace(self, names=None)
