"""How an estimator turns the rows of its series into the rows it aligns."""

from __future__ import annotations

from dataclasses import dataclass

from slts._typing import FloatArray
from slts.alignment import AlignmentSettings
from slts.series import SeriesBatch, append_constant, rms_row_norm
from slts.series.channels import SCALES, ChannelScale


@dataclass(frozen=True, slots=True)
class RowMap:
    """Scale channels and append a constant one, or not; then prepare rows as alignment asks.

    Parameters
    ----------
    constant
        Value of the homogeneous channel; None leaves it out.
    settings
        How rows will be aligned.
    scale
        Scale of the channels; None leaves them as they are.
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
        """Choose scale and constant on training series.

        With one channel unit rows keep only the sign, so ``"auto"`` appends the constant there.
        """
        if homogeneous not in (True, False, "auto"):
            raise ValueError(
                f"The 'homogeneous' parameter must be 'auto', True or False. "
                f"Got {homogeneous!r} instead."
            )
        if scale is not None and scale not in SCALES:
            raise ValueError(
                f"The 'scale' parameter must be None or one of {SCALES}. Got {scale!r} instead."
            )
        fitted = None if scale is None else ChannelScale.fit(batch, scale)
        wanted = batch.n_channels == 1 if homogeneous == "auto" else bool(homogeneous)
        constant = rms_row_norm(_scaled(batch, fitted)) if wanted else None
        return cls(constant, settings, fitted)

    def __call__(self, batch: SeriesBatch) -> SeriesBatch:
        """Rows ready for alignment."""
        batch = _scaled(batch, self.scale)
        if self.constant is not None:
            batch = append_constant(batch, self.constant)
        return self.settings.prepare(batch)

    def attribute(self, batch: SeriesBatch, slopes: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Terms of steps and channels of one series, and of the constant; see `Rows`."""
        terms = self(batch).values * slopes
        own = batch.n_channels
        return terms[:, :, :own], terms[:, :, own:].sum(axis=(1, 2))


def _scaled(batch: SeriesBatch, scale: ChannelScale | None) -> SeriesBatch:
    if scale is None:
        return batch
    return SeriesBatch.from_checked(scale(batch.values), batch.offsets, batch.channel_names)
