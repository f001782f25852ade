"""Landmarks and their layouts for the kernel, each made once."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from threading import Lock
from typing import Any, TypeVar

import numpy as np

from slts._typing import FloatArray
from slts.alignment.settings import AlignmentSettings, no_path_error
from slts.errors import DataError
from slts.series import SeriesBatch

# Mean rows this many standard deviations from the origin are subtracted (as in module.cpp).
_FAR_SPREADS = 16.0

T = TypeVar("T")


class LandmarkLayouts:
    """Landmarks, settings, basis, and the layouts that the backends make on first use."""

    def __init__(
        self, landmarks: SeriesBatch, settings: AlignmentSettings, basis: FloatArray | None = None
    ) -> None:
        self.landmarks, self.settings, self.basis = landmarks, settings, basis
        self.longest = int(landmarks.lengths.max(initial=0))
        self._made: dict[Hashable, Any] = {}
        self._lock = Lock()

    def match(
        self, landmarks: SeriesBatch, settings: AlignmentSettings, basis: FloatArray | None
    ) -> bool:
        """Whether these are the layouts of the given landmarks."""
        same = self.landmarks is landmarks and self.basis is basis
        return same and self.settings == settings

    def get(self, key: Hashable, make: Callable[[], T]) -> T:
        """Return the layout of this key. The first call makes it, other threads wait for it."""
        with self._lock:
            if key not in self._made:
                self._made[key] = make()
            layout: T = self._made[key]
            return layout

    def centred(self) -> tuple[LandmarkLayouts, FloatArray | None]:
        """Layouts for sums of squared distances, and the row to subtract from the series, if any.

        Subtracting one row from both sides changes no distance, but a.b - |a|^2/2 - |b|^2/2 is
        accurate only near the origin. Rows near the origin are left as they are, so that exact ties
        stay exact. Costs of unit rows need no centre.
        """
        if self.settings.objective != "distance":
            return self, None

        def make() -> tuple[LandmarkLayouts, FloatArray | None]:
            values = self.landmarks.values
            if not len(values):
                return self, None
            centre: FloatArray = values.mean(axis=0)
            spread = float(np.sqrt(np.mean((values - centre) ** 2)))
            if float(np.abs(centre).max()) <= _FAR_SPREADS * spread:
                return self, None
            return LandmarkLayouts(moved(self.landmarks, centre), self.settings), centre

        return self.get("centred", make)

    def no_path(self, series: SeriesBatch, p: int, q: int) -> DataError:
        """Make the error for a band that admits no path between series p and landmark q."""
        n, m = int(series.lengths[p]), int(self.landmarks.lengths[q])
        one, other = series.name_of(p, "X"), self.landmarks.name_of(q, "Y")
        return no_path_error(self.settings.band, one, n, other, m)


def moved(batch: SeriesBatch, centre: FloatArray) -> SeriesBatch:
    """Subtract one row from every row."""
    return batch.with_values(batch.values - centre, batch.channel_names)
