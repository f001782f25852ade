"""Who maps the blocks when the device is a GPU.

Landmarks are laid out once per run of packs that fits the card, series stream through in blocks,
and every block's result goes straight to its place on the host. So neither side, nor the result,
need fit on the card.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from slts._typing import IntArray
from slts.alignment.band import native_band
from slts.alignment.cuda.device import require_gpu
from slts.alignment.cuda.layout import LANES, Packs, by_length, entries, main_groups, pack
from slts.alignment.cuda.programs import (
    GROUPED,
    PATH,
    PRODUCTS,
    PROJECTED,
    SCORE,
    WARPS,
    Case,
    Program,
    program,
    turn,
    whole_lines,
)
from slts.alignment.layouts import LandmarkLayouts
from slts.execution import Progress, partition
from slts.series import SeriesBatch

# Packs of landmarks that one warp adds up at most.
_PACKS_PER_SUM = 8
# A second or so of work: enough to fill the device, little enough for progress and Ctrl-C.
_BLOCK_OPERATIONS = 5e12
_THREADS = 256
_ALL_FINE = 2**64 - 1

Take = Callable[[slice, IntArray, Any], None]


@dataclass(frozen=True, slots=True)
class _Landmarks:
    """A run of landmarks on the device, `index` being their places in the batch."""

    index: IntArray
    packs: Packs
    arrays: dict[str, Any]


class CudaBackend:
    """Series against landmarks on the current CUDA device.

    Parameters
    ----------
    series, landmarks
        As they are to be aligned (see `AlignmentSettings.prepare`).
    settings
        Objective, band and precision.
    progress
        Told of finished work.
    memory
        Bytes of the card to use; by default most of what is free when a run begins.
    """

    def __init__(
        self,
        series: SeriesBatch,
        layouts: LandmarkLayouts,
        *,
        progress: Progress | None = None,
        memory: int | None = None,
    ) -> None:
        self.series, self.landmarks, self.settings = series, layouts.landmarks, layouts.settings
        self.dtype = np.dtype(self.settings.dtype)
        self._layouts = layouts
        self._progress = progress
        self._cupy = require_gpu()
        self._memory = memory
        self._share = 0

    def scores(self, out: npt.NDArray[Any], *, mean: bool) -> None:
        """Total local value or mean affinity along each path, into (series, landmarks)."""
        plus = 1.0 if mean and self.settings.objective == "cost" else 0.0
        self._run(SCORE, self._into(out), (), mean=int(mean), plus=plus)

    def products(self, out: npt.NDArray[Any]) -> None:
        """T of every pair, into (series, landmarks, channels, channels)."""
        self._run(PRODUCTS, self._into(out), out.shape[2:])

    def projected(self, metrics: npt.NDArray[Any], out: npt.NDArray[Any]) -> None:
        """<M_c, T> of every pair, into (series, landmarks, metrics)."""
        self._run(PROJECTED, self._into(out), out.shape[2:], metrics=metrics, n_outer=len(metrics))

    def grouped(self, weights: npt.NDArray[Any], out: npt.NDArray[Any]) -> None:
        """Weighted sums of T, into (series, groups, phases, channels, channels)."""
        if len(self.landmarks) == 0:
            out[...] = 0
        written = 0

        def add(rows: slice, _: IntArray, found: Any) -> None:
            nonlocal written
            if rows.stop > written:
                # The first landmarks: their sums need no zeros to be added to.
                self._cupy.asnumpy(found, out=out[rows])
                written = rows.stop
            else:
                out[rows] += self._cupy.asnumpy(found)

        self._run(
            GROUPED, add, out.shape[1:], weights=weights, n_outer=len(weights),
            n_phases=out.shape[2],
        )  # fmt: skip

    def intervals(self) -> npt.NDArray[np.int32]:
        """Paths: for each series step the first and the last landmark step aligned with it.

        Shape (series, landmarks, longest series, 2); behind the end of a series stands -1.
        """
        longest = int(self.series.lengths.max(initial=0))
        out = np.empty((len(self.series), len(self.landmarks), longest, 2), dtype=np.int32)
        self._run(PATH, self._into(out), out.shape[2:], out_steps=longest)
        return out

    def _into(self, out: npt.NDArray[Any]) -> Take:
        """Copy results to their rows and columns of `out`."""

        def take(rows: slice, columns: IntArray, found: Any) -> None:
            if len(columns) == out.shape[1]:
                self._cupy.asnumpy(found, out=out[rows])
            else:
                out[rows, columns] = self._cupy.asnumpy(found)

        return take

    def _run(
        self,
        reduction: int,
        take: Take,
        shape: tuple[int, ...],
        *,
        weights: npt.NDArray[Any] | None = None,
        metrics: npt.NDArray[Any] | None = None,
        **job: Any,
    ) -> None:
        """Run blocks of (series x landmarks).

        `shape` is that of one pair's result, or of one series' where landmarks are summed up.
        """
        if len(self.series) == 0 or len(self.landmarks) == 0 or 0 in shape:
            return
        with turn(self._cupy.cuda.Device().id):
            # For landmarks, for series with their results, for moves; a fourth covers rounding up.
            self._share = self._free_memory() // 4
            self._run_all(reduction, take, shape, weights, metrics, job)

    def _free_memory(self) -> int:
        if self._memory is not None:
            return self._memory
        free, _ = self._cupy.cuda.runtime.memGetInfo()
        return int(0.8 * (free + self._cupy.get_default_memory_pool().free_bytes()))

    def _run_all(
        self,
        reduction: int,
        take: Take,
        shape: tuple[int, ...],
        weights: npt.NDArray[Any] | None,
        metrics: npt.NDArray[Any] | None,
        job: dict[str, Any],
    ) -> None:
        lengths = self.landmarks.lengths
        longest = int(self.series.lengths.max())
        case = Case(
            reduction, self.dtype.name, self.series.n_channels,
            self.settings.objective != "affinity", native_band(self.settings.band)[0],
            longest + int(lengths.max()) >= 2**16,
        )  # fmt: skip
        order = by_length(lengths)
        ends = np.minimum(np.arange(LANES, len(order) + LANES, LANES), len(order)) - 1
        columns = lengths[order][ends].astype(np.float64)
        bytes_of_packs = columns * LANES * (case.channels + case.stride + 2) * case.item
        runs = partition(bytes_of_packs, [1.0], block_cost=self._share)
        total, done = float(columns.sum()) * self.series.n_steps, 0.0
        for run in runs:
            chosen = order[run.row_begin * LANES : run.row_end * LANES]
            landmarks = self._lay_out(case, chosen, weights)
            kernel = program(case, landmarks.packs.widest, longest)
            for rows in self._series_blocks(case, landmarks.packs, shape, job):
                self._run_rows(take, kernel, landmarks, rows, shape, metrics, job)
                if self._progress is not None:
                    steps = self.series.offsets[rows.stop] - self.series.offsets[rows.start]
                    done += float(columns[run.row_begin : run.row_end].sum()) * float(steps)
                    self._progress(done, total)

    def _series_blocks(
        self, case: Case, packs: Packs, shape: tuple[int, ...], job: dict[str, Any]
    ) -> list[slice]:
        """Series whose rows and results fit the card, and whose work is over in a while."""
        summed = case.reduction == GROUPED
        results = _n_chunks(case, packs) + 1 if summed else len(packs.order)
        lengths = self.series.lengths.astype(np.float64)
        per_step = case.stride + 4 + (job.get("n_outer", 1) + 1) * case.channels
        size = (lengths * per_step + float(np.prod(shape)) * results) * case.item
        operations = lengths * float(packs.columns[-1]) * LANES * (case.channels + 8)
        costs = np.maximum(size / self._share, operations / _BLOCK_OPERATIONS)
        # A counter of 32 bits deals the work out.
        costs = np.maximum(costs, packs.count / 2**31)
        blocks = partition(costs, [1.0], block_cost=1.0)
        return [slice(block.row_begin, block.row_end) for block in blocks]

    def _upload(self, case: Case, batch: SeriesBatch) -> tuple[Any, Any]:
        """Rows padded with zeros, and what is added to each local affinity."""
        cupy = self._cupy
        rows = cupy.zeros((batch.n_steps, case.stride), dtype=self.dtype)
        rows[:, : case.channels] = cupy.asarray(batch.values.astype(self.dtype))
        shift = self.settings.shift(batch)
        return rows, rows if shift is None else cupy.asarray(-shift.astype(self.dtype))

    def _lay_out(
        self, case: Case, chosen: IntArray, weights: npt.NDArray[Any] | None
    ) -> _Landmarks:
        cupy = self._cupy
        index = np.sort(chosen)
        batch = self.landmarks if len(index) == len(self.landmarks) else self.landmarks[index]
        groups = None if weights is None else main_groups(weights[:, index])
        packs = pack(batch.lengths, np.searchsorted(index, chosen), case.column_step, groups)
        rows, shift = self._upload(case, batch)
        arrays = {
            "landmarks": rows,
            "pack_columns": cupy.asarray(packs.columns.astype(np.int64)),
            "begins": cupy.asarray(batch.offsets[:-1][packs.order].astype(np.int64)),
            "steps": cupy.asarray(batch.lengths[packs.order].astype(np.int32)),
            "order": cupy.asarray(packs.order.astype(np.int32)),
        }
        # One column to spare: the next is read while one is worked on.
        n_columns = int(packs.columns[-1]) + 1
        packed = cupy.empty((n_columns, case.channels, LANES), dtype=self.dtype)
        packed[-1] = 0
        packed_shift = cupy.empty((n_columns if case.shifted else 1, LANES), dtype=self.dtype)
        program(case, packs.widest, int(self.series.lengths.max())).pack_landmarks(
            (packs.count,), (_THREADS,),
            (rows, shift, arrays["pack_columns"], arrays["begins"], arrays["steps"],
             np.int32(len(index)), packed, packed_shift),
        )  # fmt: skip
        arrays |= {"packed": packed, "packed_shift": packed_shift}
        if weights is not None:
            found = entries(weights[:, index][:, packs.order])
            arrays["weights_begin"] = cupy.asarray(found.begin.astype(np.int32))
            arrays["weights_group"] = cupy.asarray(found.group.astype(np.int32))
            arrays["weights"] = cupy.asarray(found.weight.astype(self.dtype))
        return _Landmarks(index, packs, arrays)

    def _run_rows(
        self, take: Take, kernel: Program, landmarks: _Landmarks, rows: slice, *how: Any
    ) -> None:
        """Run a block; in halves if its memory is in pieces, or another process has taken it."""
        found = None
        try:
            found = self._run_block(kernel, landmarks, rows, *how)
        except self._cupy.cuda.memory.OutOfMemoryError:
            if rows.stop - rows.start == 1:
                raise
        # Not among the handler's lines: there the error still holds the arrays of the block.
        if found is not None:
            take(rows, landmarks.index, found)
            return
        self._cupy.get_default_memory_pool().free_all_blocks()
        self._share //= 2
        middle = (rows.start + rows.stop) // 2
        for half in (slice(rows.start, middle), slice(middle, rows.stop)):
            self._run_rows(take, kernel, landmarks, half, *how)

    def _run_block(
        self,
        kernel: Program,
        landmarks: _Landmarks,
        rows: slice,
        shape: tuple[int, ...],
        metrics: npt.NDArray[Any] | None,
        job: dict[str, Any],
    ) -> Any:
        """Give one block's result, on the device."""
        cupy, case, packs = self._cupy, kernel.case, landmarks.packs
        batch = self.series[rows]
        values, shift = self._upload(case, batch)
        grouped = case.reduction == GROUPED
        chunks = _n_chunks(case, packs)
        n_items = len(batch) * chunks
        job = {"n_outer": 1, "n_phases": 1} | job
        if metrics is not None:
            projected = cupy.empty((len(metrics), *batch.values.shape), dtype=self.dtype)
            self._over_elements(
                kernel.project_rows, projected.size,
                (values, cupy.asarray(metrics), np.int64(batch.n_steps), np.int64(len(metrics)),
                 projected),
            )  # fmt: skip
            job["projected"] = projected
        if grouped:
            out = cupy.empty((chunks, len(batch), *shape), dtype=self.dtype)
        elif case.reduction == PATH:
            out = cupy.full((len(batch), len(packs.order), *shape), -1, dtype=np.int32)
            job["out_intervals"] = out
        else:
            out = cupy.empty((len(batch), len(packs.order), *shape), dtype=self.dtype)
        if case.reduction != PATH:
            job["out"] = out
        longest = int(batch.lengths.max())
        places, size = _scratch(kernel, packs.widest, longest, job)
        blocks = min(-(-n_items // WARPS), kernel.resident_blocks(packs.widest, longest))
        if size:
            blocks = max(1, min(blocks, self._share // (WARPS * size)))
            job["scratch"] = cupy.empty(blocks * WARPS * size, dtype=np.uint8)
        no_path = cupy.full(1, _ALL_FINE, dtype=np.uint64)
        kernel.launch(
            blocks,
            packs.widest,
            longest,
            series=values,
            series_shift=shift,
            series_offsets=cupy.asarray(batch.offsets.astype(np.int64)),
            series_order=cupy.asarray(by_length(-batch.lengths).astype(np.int32)),
            scratch_size=size,
            counter=cupy.zeros(1, dtype=np.uint32),
            no_path=no_path,
            band=native_band(self.settings.band)[1],
            n_items=n_items,
            n_rows=batch.n_steps,
            n_series=len(batch),
            n_landmarks=len(packs.order),
            n_packs=packs.count,
            packs_per_item=_packs_per_item(case, packs),
            **landmarks.arrays,
            **places,
            **job,
        )
        pair = int(cupy.asnumpy(no_path)[0])
        if pair != _ALL_FINE:
            p, q = divmod(pair, len(packs.order))
            raise self._layouts.no_path(self.series, rows.start + p, int(landmarks.index[q]))
        if not grouped:
            return out
        summed = cupy.empty((len(batch), *shape), dtype=self.dtype)
        self._over_elements(
            kernel.add_chunks, summed.size, (out, np.int64(chunks), np.int64(summed.size), summed)
        )
        return summed

    @staticmethod
    def _over_elements(function: Any, size: int, arguments: tuple[Any, ...]) -> None:
        function((min(-(-size // _THREADS), 2**16),), (_THREADS,), arguments)


def _packs_per_item(case: Case, packs: Packs) -> int:
    """Packs that one warp takes: several if they are summed, but enough items for many warps.

    Depends on the landmarks alone, for it decides the order of addition.
    """
    if case.reduction != GROUPED:
        return 1
    return max(1, min(_PACKS_PER_SUM, packs.count // 8, 512 // packs.widest))


def _n_chunks(case: Case, packs: Packs) -> int:
    return -(-packs.count // _packs_per_item(case, packs))


def _scratch(
    kernel: Program, columns: int, longest: int, job: dict[str, Any]
) -> tuple[dict[str, int], int]:
    """Give the places of intervals and sums in a warp's memory, and its size."""
    case = kernel.case
    frontier = 0 if kernel.shared else columns * LANES * (case.item + 4)
    if case.reduction == SCORE:
        return {}, frontier
    moves = whole_lines(-(-longest // case.rows) * columns * LANES * 2)
    intervals = 0 if kernel.shared else whole_lines(case.intervals_bytes(longest))
    sums = 0
    if case.reduction == PRODUCTS:
        sums = longest * case.channels * case.item
    elif case.reduction == GROUPED:
        sums = job["n_outer"] * job["n_phases"] * longest * case.channels * case.item
    places = {"intervals_at": moves, "sums_at": moves + intervals}
    return places, frontier + moves + intervals + whole_lines(sums)
