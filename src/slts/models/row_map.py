"""Map series to the rows that are aligned: scaled channels, an optional constant, unit norm."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from slts._typing import FloatArray
from slts.alignment import AlignmentSettings
from slts.series import SeriesBatch, append_constant, rms_row_norm
from slts.series.channels import ChannelScale
from slts.series.missing import observed_steps


@dataclass(frozen=True, slots=True)
class RowMap:
    """Scale channels, append a constant channel, and prepare rows for alignment.

    Parameters
    ----------
    constant
        Value of the homogeneous channel; None for no such channel.
    settings
        How rows are aligned.
    scale
        Scale of the channels; None for unscaled channels.
    """

    constant: float | None
    settings: AlignmentSettings
    scale: ChannelScale | None = None

    @classmethod
    def fit(
        cls,
        batch: SeriesBatch,
        settings: AlignmentSettings,
        *,
        homogeneous: bool | str,
        scale: str | None = None,
    ) -> RowMap:
        """Fit scale and constant on training series.

        With one channel, unit rows keep only the sign, so ``"auto"`` appends the constant.
        """
        fitted = None if scale is None else ChannelScale.fit(batch, scale)
        wanted = batch.n_channels == 1 if homogeneous == "auto" else bool(homogeneous)
        constant = rms_row_norm(_scaled(batch, fitted)) if wanted else None
        return cls(constant, settings, fitted)

    def __call__(self, batch: SeriesBatch) -> SeriesBatch:
        """Return rows ready for alignment."""
        batch = _scaled(batch, self.scale).steps(observed_steps(batch))
        if self.constant is not None:
            batch = append_constant(batch, self.constant)
        return self.settings.prepare(batch)

    def attribute(self, batch: SeriesBatch, slopes: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the contributions of steps and channels, and of the constant; see `RowMapping`."""
        terms = self(batch).values * slopes
        own = batch.n_channels
        steps = np.zeros((len(terms), batch.n_steps, own))
        steps[:, observed_steps(batch)] = terms[:, :, :own]
        return steps, terms[:, :, own:].sum(axis=(1, 2))


def _scaled(batch: SeriesBatch, scale: ChannelScale | None) -> SeriesBatch:
    if scale is None:
        return batch
    return batch.with_values(scale(batch.values), batch.channel_names)
