"""Reductions of the alignments of every series with every landmark.

Each function returns one array and nothing of the paths; memory is that of the result plus, per
thread, one grid of 2-bit moves. `device` ("cpu", "cuda" or "auto") says who maps the blocks.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

import numpy as np
import numpy.typing as npt
from joblib import effective_n_jobs

from slts._typing import FloatArray
from slts.alignment.band import native_band, no_path_error
from slts.alignment.cuda.device import runs_on_cuda
from slts.alignment.extension import native
from slts.alignment.settings import AlignmentSettings
from slts.alignment.targets import selected_target
from slts.errors import DataError
from slts.execution import Block, Progress, map_blocks, partition
from slts.series import SeriesBatch

Result: TypeAlias = npt.NDArray[np.floating[Any]]
if TYPE_CHECKING:
    from slts.alignment._native import Block as Where
    from slts.alignment._native import CancelToken, Landmarks32, Outcome, Rows32

    NativeCall: TypeAlias = Callable[[Where, slice, CancelToken], Outcome]

# About 10 ms of work: enough to hide the call, little enough for progress, balance and Ctrl-C.
_BLOCK_OPERATIONS = 2e8
# Means so many deviations away cost `distances` digits (as in native/module.cpp).
_FAR = 16.0
# Moves of one thread; beyond it lanes are given up, since each lane needs its own grid.
_MOVES_BYTES = 256 * 2**20


class Grid(Protocol):
    """Series against landmarks on some device: fills arrays that the functions below allocate."""

    dtype: np.dtype[np.floating[Any]]

    def totals(self, out: Result) -> None:
        """Total of the local values along the path, into (series, landmarks)."""

    def means(self, out: Result, plus: float) -> None:
        """Mean of the local values along the path, and a constant, into (series, landmarks)."""

    def products(self, out: Result) -> None:
        """T of every pair, into (series, landmarks, channels, channels)."""

    def grouped(self, weights: Result, out: Result) -> None:
        """Weighted sums of T, into (series, groups, phases, channels, channels)."""

    def projected(self, metrics: Result, out: Result) -> None:
        """<M_c, T> of every pair, into (series, landmarks, metrics)."""


def pair_grid(
    series: SeriesBatch,
    landmarks: SeriesBatch,
    settings: AlignmentSettings,
    *,
    device: str,
    n_jobs: int | None,
    progress: Progress | None,
) -> Grid:
    """Choose who maps the blocks: threads here, or a GPU."""
    operations = float(series.n_steps) * float(landmarks.n_steps) * (series.n_channels + 4)
    if runs_on_cuda(device, operations):
        from slts.alignment.cuda.grid import CudaGrid

        return CudaGrid(series, landmarks, settings, progress=progress)
    return PairGrid(series, landmarks, settings, n_jobs=n_jobs, progress=progress)


class PairGrid:
    """Series against landmarks, laid out for the native kernel.

    Parameters
    ----------
    series, landmarks
        As they are to be aligned (see `AlignmentSettings.prepare`).
    settings
        Objective, band and precision.
    n_jobs, progress
        See `map_blocks`.
    """

    def __init__(
        self,
        series: SeriesBatch,
        landmarks: SeriesBatch,
        settings: AlignmentSettings,
        *,
        n_jobs: int | None = None,
        progress: Progress | None = None,
    ) -> None:
        self.series, self.landmarks, self.settings = series, landmarks, settings
        self.n_jobs, self.progress = n_jobs, progress
        self.target = selected_target()
        self.band = native_band(settings.band)
        self.dtype = np.dtype(settings.dtype)

    def totals(self, out: Result) -> None:
        """Total of the local values along the path, into (series, landmarks)."""
        self._scores(out)

    def means(self, out: Result, plus: float) -> None:
        """Mean of the local values along the path, and a constant, into (series, landmarks)."""
        lengths = self._scores(out)
        out /= lengths
        if plus:
            out += plus

    def _scores(self, out: Result) -> npt.NDArray[np.int32]:
        """Totals into `out`; gives the lengths of the paths."""
        lengths = np.empty(out.shape, dtype=np.int32)
        x, y = self._laid_out(traced=False)

        def call(where: Where, rows: slice, token: CancelToken) -> Outcome:
            return native.score(
                x, y, where, self.band, out[rows], lengths[rows], self.target.index, token
            )

        self.run(call, y)
        return lengths

    def products(self, out: Result) -> None:
        """T of every pair, into (series, landmarks, channels, channels)."""
        x, y = self._laid_out(traced=True)

        def call(where: Where, rows: slice, token: CancelToken) -> Outcome:
            return native.products(x, y, where, self.band, out[rows], self.target.index, token)

        self.run(call, y)

    def grouped(self, weights: Result, out: Result) -> None:
        """Weighted sums of T, into (series, groups, phases, channels, channels)."""
        x, y = self._laid_out(traced=True)

        def call(where: Where, rows: slice, token: CancelToken) -> Outcome:
            return native.grouped(
                x, y, where, self.band, weights, out[rows], self.target.index, token
            )

        # A sum over landmarks must not be cut: its order of addition decides the last bits.
        self.run(call, y, split_columns=False)

    def projected(self, metrics: Result, out: Result) -> None:
        """<M_c, T> of every pair, into (series, landmarks, metrics)."""
        x, y = self._laid_out(traced=True)

        def call(where: Where, rows: slice, token: CancelToken) -> Outcome:
            return native.projected(
                x, y, where, self.band, metrics, out[rows], self.target.index, token
            )

        self.run(call, y)

    def _laid_out(self, *, traced: bool) -> tuple[Rows32, Landmarks32]:
        """Padded rows, and landmarks side by side; paths that are walked back need memory."""
        series, landmarks, settings = self.series, self.landmarks, self.settings
        width = self.target.width(settings.dtype)
        cells = int(series.lengths.max(initial=0)) * int(landmarks.lengths.max(initial=0))
        if traced and cells * width / 4 > _MOVES_BYTES:
            width = 1
        single = settings.dtype == "float32"
        rows = native.Rows32 if single else native.Rows64
        packs = native.Landmarks32 if single else native.Landmarks64
        return (
            rows(series.values, series.offsets, settings.shift(series)),
            packs(landmarks.values, landmarks.offsets, settings.shift(landmarks), width),
        )

    def run(self, call: NativeCall, packs: Landmarks32, *, split_columns: bool = True) -> None:
        """Map `call` over blocks of (series x packs of landmarks)."""
        token = native.CancelToken()

        def task(block: Block) -> None:
            where = (block.row_begin, block.row_end, block.column_begin, block.column_end)
            outcome = call(where, slice(block.row_begin, block.row_end), token)
            if outcome[0] == 2:
                raise self._no_path(outcome[1], outcome[2])

        operations = self.series.lengths * float(self.series.n_channels + 4)
        blocks = partition(
            operations,
            packs.pack_columns,
            block_cost=_BLOCK_OPERATIONS,
            workers=effective_n_jobs(self.n_jobs),
            split_columns=split_columns,
        )
        map_blocks(task, blocks, n_jobs=self.n_jobs, cancel=token.cancel, progress=self.progress)

    def _no_path(self, p: int, q: int) -> DataError:
        n, m = self.series.lengths[p], self.landmarks.lengths[q]
        return no_path_error(self.settings.band, f"series {p} of X", n, f"series {q} of Y", m)


def similarities(
    series: SeriesBatch,
    landmarks: SeriesBatch,
    settings: AlignmentSettings,
    *,
    device: str = "cpu",
    n_jobs: int | None = None,
    progress: Progress | None = None,
) -> Result:
    """K_I: mean affinity along the path, shape (series, landmarks). No path is kept."""
    if settings.objective == "distance":
        # The total is not one of affinities: only the path can tell.
        identity = np.eye(series.n_channels)[np.newaxis]
        return projected_similarities(
            series, landmarks, identity, settings,
            device=device, n_jobs=n_jobs, progress=progress,
        )[:, :, 0]  # fmt: skip
    grid = pair_grid(series, landmarks, settings, device=device, n_jobs=n_jobs, progress=progress)
    out = np.empty((len(series), len(landmarks)), dtype=grid.dtype)
    grid.means(out, 1.0 if settings.objective == "cost" else 0.0)
    return out


def distances(
    series: SeriesBatch,
    landmarks: SeriesBatch,
    settings: AlignmentSettings,
    *,
    device: str = "cpu",
    n_jobs: int | None = None,
    progress: Progress | None = None,
) -> Result:
    """Sum of |a - b|^2 along the path, shape (series, landmarks): DTW as others define it.

    For `objective` ``"distance"``, or ``"cost"``, which is the same on unit rows.
    """
    if settings.objective == "affinity":
        raise ValueError("distances need objective 'cost' or 'distance'. Got 'affinity' instead.")
    if settings.objective == "distance":
        centre = _far_centre(landmarks)
        series, landmarks = _moved(series, centre), _moved(landmarks, centre)
    grid = pair_grid(series, landmarks, settings, device=device, n_jobs=n_jobs, progress=progress)
    out = np.empty((len(series), len(landmarks)), dtype=grid.dtype)
    grid.totals(out)
    out *= -2
    return out


def _far_centre(batch: SeriesBatch) -> FloatArray:
    """Mean row if it lies far from the origin, else zero.

    Moving both sides changes no distance, and a.b - |a|^2/2 - |b|^2/2 keeps its digits only near
    the origin. Rows that are near it stay as they are, so that exact ties stay exact.
    """
    centre: FloatArray = batch.values.mean(axis=0)
    spread = float(np.sqrt(np.mean((batch.values - centre) ** 2)))
    return centre if float(np.abs(centre).max()) > _FAR * spread else np.zeros_like(centre)


def _moved(batch: SeriesBatch, centre: FloatArray) -> SeriesBatch:
    return SeriesBatch.from_checked(batch.values - centre, batch.offsets, batch.channel_names)


def products(
    series: SeriesBatch,
    landmarks: SeriesBatch,
    settings: AlignmentSettings,
    *,
    device: str = "cpu",
    n_jobs: int | None = None,
    progress: Progress | None = None,
) -> Result:
    """T = A'YB/t of every pair, shape (series, landmarks, channels, channels)."""
    grid = pair_grid(series, landmarks, settings, device=device, n_jobs=n_jobs, progress=progress)
    d = series.n_channels
    out = np.empty((len(series), len(landmarks), d, d), dtype=grid.dtype)
    grid.products(out)
    return out


def grouped_products(
    series: SeriesBatch,
    landmarks: SeriesBatch,
    weights: npt.ArrayLike,
    settings: AlignmentSettings,
    *,
    n_phases: int | None = None,
    device: str = "cpu",
    n_jobs: int | None = None,
    progress: Progress | None = None,
) -> Result:
    """Sum_j weights[g, j] T_ij, shape (series, groups, channels, channels).

    With `n_phases`, shape (series, groups, phases, channels, channels): the path is cut where the
    landmark passes from one equal share of its steps to the next, step s of m being in phase
    floor(s * n_phases / m), and the parts sum to the whole.

    The products of single pairs are never formed: aligned rows are summed over the landmarks of a
    group first, so the cost of a zero weight is nothing.
    """
    if n_phases is not None and n_phases < 1:
        raise ValueError(f"The 'n_phases' parameter must be at least 1. Got {n_phases} instead.")
    grid = pair_grid(series, landmarks, settings, device=device, n_jobs=n_jobs, progress=progress)
    shares = np.ascontiguousarray(weights, dtype=grid.dtype)
    if shares.ndim != 2 or shares.shape[1] != len(landmarks):
        raise ValueError(
            f"The 'weights' parameter must have shape (groups, {len(landmarks)}), one column per "
            f"landmark. Got shape {shares.shape} instead."
        )
    d = series.n_channels
    out = np.empty((len(series), len(shares), n_phases or 1, d, d), dtype=grid.dtype)
    grid.grouped(shares, out)
    return out[:, :, 0] if n_phases is None else out


def projected_similarities(
    series: SeriesBatch,
    landmarks: SeriesBatch,
    metrics: npt.ArrayLike,
    settings: AlignmentSettings,
    *,
    device: str = "cpu",
    n_jobs: int | None = None,
    progress: Progress | None = None,
) -> Result:
    """K_M = <M_c, T_ij> for a stack of metrics, shape (series, landmarks, metrics)."""
    grid = pair_grid(series, landmarks, settings, device=device, n_jobs=n_jobs, progress=progress)
    d = series.n_channels
    stack = np.ascontiguousarray(metrics, dtype=grid.dtype)
    if stack.ndim != 3 or stack.shape[1:] != (d, d):
        raise ValueError(
            f"The 'metrics' parameter must have shape (metrics, {d}, {d}). "
            f"Got shape {stack.shape} instead."
        )
    out = np.empty((len(series), len(landmarks), len(stack)), dtype=grid.dtype)
    grid.projected(stack, out)
    return out
