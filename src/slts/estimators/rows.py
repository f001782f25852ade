"""How an estimator turns the rows of its series into the rows it aligns."""

from __future__ import annotations

from dataclasses import dataclass

from slts.alignment import AlignmentSettings
from slts.series import SeriesBatch, append_constant, rms_row_norm


@dataclass(frozen=True, slots=True)
class RowMap:
    """Append a constant channel, or not; then prepare rows as the settings of alignment ask.

    Parameters
    ----------
    constant
        Value of the homogeneous channel; None leaves it out.
    settings
        How rows will be aligned.
    """

    constant: float | None
    settings: AlignmentSettings

    @classmethod
    def fit(
        cls, batch: SeriesBatch, settings: AlignmentSettings, *, homogeneous: bool | str
    ) -> RowMap:
        """Choose the constant on training series.

        With one channel unit rows keep only the sign, so ``"auto"`` appends it there.
        """
        if homogeneous not in (True, False, "auto"):
            raise ValueError(
                f"The 'homogeneous' parameter must be 'auto', True or False. "
                f"Got {homogeneous!r} instead."
            )
        wanted = batch.n_channels == 1 if homogeneous == "auto" else bool(homogeneous)
        return cls(rms_row_norm(batch) if wanted else None, settings)

    def __call__(self, batch: SeriesBatch) -> SeriesBatch:
        """Rows ready for alignment."""
        if self.constant is not None:
            batch = append_constant(batch, self.constant)
        return self.settings.prepare(batch)
