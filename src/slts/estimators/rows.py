"""How an estimator turns the rows of its series into the rows it aligns."""

from __future__ import annotations

from dataclasses import dataclass

from slts.series import SeriesBatch, append_constant, normalize_rows, rms_row_norm


@dataclass(frozen=True, slots=True)
class RowMap:
    """Append a constant channel, or not; then scale rows to unit norm, or not.

    Parameters
    ----------
    constant
        Value of the homogeneous channel; None leaves it out.
    normalize
        Whether rows are scaled to unit norm.
    """

    constant: float | None
    normalize: bool

    @classmethod
    def fit(cls, batch: SeriesBatch, *, homogeneous: bool | str, normalize: bool) -> RowMap:
        """Choose the constant on training series.

        With one channel unit rows keep only the sign, so ``"auto"`` appends it there.
        """
        if homogeneous not in (True, False, "auto"):
            raise ValueError(
                f"The 'homogeneous' parameter must be 'auto', True or False. "
                f"Got {homogeneous!r} instead."
            )
        wanted = batch.n_channels == 1 if homogeneous == "auto" else bool(homogeneous)
        return cls(rms_row_norm(batch) if wanted else None, normalize)

    def __call__(self, batch: SeriesBatch) -> SeriesBatch:
        """Rows ready for alignment."""
        if self.constant is not None:
            batch = append_constant(batch, self.constant)
        return normalize_rows(batch) if self.normalize else batch
