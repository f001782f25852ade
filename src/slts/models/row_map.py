"""Map series to the rows that are aligned: scaled channels, an optional constant, unit norm."""

from __future__ import annotations

from dataclasses import dataclass

from slts.alignment import AlignmentSettings
from slts.models.linear_form import TracedRows
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

    def traced(self, series: SeriesBatch) -> TracedRows:
        """Return the rows of one series, and the way back to its steps and channels."""
        rows = self(series)
        return TracedRows(series, rows, rows.values[:, : series.n_channels])


def _scaled(batch: SeriesBatch, scale: ChannelScale | None) -> SeriesBatch:
    if scale is None:
        return batch
    return batch.with_values(scale(batch.values), batch.channel_names)
