"""Alignments on a GPU: layouts, memory, launches and results.

Landmarks are laid out in runs of packs that fit on the card, series stream through in blocks, and
the result of each block is copied to the host. So neither the series, nor the landmarks, nor the
result need to fit on the card.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from slts._typing import AnyArray, IntArray
from slts.alignment.cuda.programs import (
    LANES,
    WARPS,
    Case,
    Program,
    Reduction,
    device_lock,
    program,
    whole_lines,
)
from slts.alignment.settings import LandmarkLayouts, require_gpu
from slts.execution import Progress, partition, silent
from slts.series import SeriesBatch

# Maximum number of packs that one warp sums.
_PACKS_PER_SUM = 8
# About a second of work: long enough to fill the device, short enough for progress and Ctrl-C.
_BLOCK_OPERATIONS = 5e12
_THREADS = 256
_EVERY_PAIR_HAS_A_PATH = 2**64 - 1
# Layouts of landmarks that stay on the card between calls.
_KEPT_LAYOUTS = 2


@dataclass(frozen=True, slots=True)
class _Packs:
    """A run of landmarks on the device, 32 of similar length side by side.

    `index` holds the places of the landmarks in the batch, `order` the landmark (a place in
    `index`) at each position 32 * pack + lane, `columns` the first column of each pack and the
    number of all columns. `first` marks the first run.
    """

    first: bool
    index: IntArray
    order: IntArray
    columns: IntArray
    arrays: dict[str, Any]

    @property
    def count(self) -> int:
        return len(self.columns) - 1

    @property
    def widest(self) -> int:
        return int(np.diff(self.columns).max())


@dataclass(frozen=True, slots=True)
class _Work:
    """One call: what to compute, where the result goes, and more fields of the kernel's job."""

    case: Case
    out: AnyArray
    weights: AnyArray | None
    metrics: AnyArray | None
    basis: AnyArray | None
    options: dict[str, Any]

    @property
    def summed(self) -> bool:
        """Whether landmarks are summed, so that `out` has no axis of landmarks."""
        return self.weights is not None

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of the kernel's result for one pair, or for one series if landmarks are summed.

        The result is multiplied by the basis, if there is one, before it leaves the card.
        """
        shape = self.out.shape[1 if self.summed else 2 :]
        return shape if self.basis is None else (*shape[:-1], shape[-2])

    def packs_per_item(self, packs: _Packs) -> int:
        """Packs that one warp takes: several if they are summed, but enough items for many warps.

        Depends on the landmarks only, because it decides the order of addition.
        """
        if not self.summed:
            return 1
        return max(1, min(_PACKS_PER_SUM, packs.count // 8, 512 // packs.widest))

    def n_chunks(self, packs: _Packs) -> int:
        return -(-packs.count // self.packs_per_item(packs))


class CudaBackend:
    """Aligns one batch of series with the landmarks on the current GPU, and fills result arrays.

    Parameters
    ----------
    series
        Prepared rows (see `AlignmentSettings.prepare`).
    layouts
        Landmarks, settings and kept layouts.
    progress
        Called with (work done, work in all).
    memory
        Bytes of the card to use; by default most of what is free when a call begins.
    """

    def __init__(
        self,
        series: SeriesBatch,
        layouts: LandmarkLayouts,
        *,
        progress: Progress = silent,
        memory: int | None = None,
    ) -> None:
        self.series, self.landmarks, self.settings = series, layouts.landmarks, layouts.settings
        self.dtype = np.dtype(self.settings.dtype)
        self._layouts, self._progress, self._memory = layouts, progress, memory
        self.arrays = self._cupy = require_gpu()
        self._share = 0

    def scores(self, out: AnyArray, *, mean: bool) -> None:
        """Total local value or mean affinity along each path, into (series, landmarks)."""
        plus = 1.0 if mean and self.settings.objective == "cost" else 0.0
        self._run(Reduction.SCORE, out, mean=int(mean), plus=plus)

    def products(self, out: AnyArray) -> None:
        """T of every pair, into (series, landmarks, channels, channels)."""
        self._run(Reduction.PRODUCTS, out)

    def grouped(self, weights: AnyArray, out: AnyArray) -> None:
        """Weighted sums of T, into (series, groups, phases, channels, channels or directions)."""
        n_outer, n_phases = out.shape[1:3]
        self._run(Reduction.GROUPED, out, weights=weights, n_outer=n_outer, n_phases=n_phases)

    def projected(self, metrics: AnyArray, out: AnyArray) -> None:
        """<M_c, T> of every pair, into (series, landmarks, metrics)."""
        self._run(Reduction.PROJECTED, out, metrics=metrics, n_outer=len(metrics))

    def _run(
        self,
        reduction: Reduction,
        out: AnyArray,
        *,
        weights: AnyArray | None = None,
        metrics: AnyArray | None = None,
        **options: Any,
    ) -> None:
        """Run blocks of (series x landmarks)."""
        if out.size == 0 or len(self.landmarks) == 0:
            out[...] = 0
            return
        longest, steps = int(self.series.lengths.max()), self.landmarks.lengths
        radius, slope = self._layouts.band
        case = Case(
            reduction, self.dtype.name, self.series.n_channels,
            shifted=self.settings.objective != "affinity",
            band="SAKOE_CHIBA" if radius >= 0 else "ITAKURA" if slope else "NO_BAND",
            long_paths=longest + int(steps.max()) >= 2**16,
        )  # fmt: skip
        options = {"n_outer": 1, "n_phases": 1, "band": max(radius, slope)} | options
        basis = None if weights is None else self._layouts.basis
        work = _Work(case, out, weights, metrics, basis, options)
        total, done = float(self.landmarks.n_steps) * self.series.n_steps, 0.0
        with device_lock(self._cupy.cuda.Device().id):
            # A quarter each for landmarks, for series and results, for moves, and for rounding up.
            self._share = self._free_memory() // 4
            for packs in self._landmark_runs(work):
                kernel = program(case, packs.widest, longest)
                for rows in self._series_blocks(work, packs):
                    self._run_rows(work, kernel, packs, rows)
                    n_steps = self.series.offsets[rows.stop] - self.series.offsets[rows.start]
                    done += float(steps[packs.index].sum()) * float(n_steps)
                    self._progress(done, total)

    def _free_memory(self) -> int:
        if self._memory is not None:
            return self._memory
        free, _ = self._cupy.cuda.runtime.memGetInfo()
        return int(0.8 * (free + self._cupy.get_default_memory_pool().free_bytes()))

    def _landmark_runs(self, work: _Work) -> Iterator[_Packs]:
        """Landmarks in runs that fit on the card. A small single run is kept for later calls."""
        case, lengths, weights = work.case, self.landmarks.lengths, work.weights
        # Landmarks of a group are neighbours in their pack: take the first group with a weight.
        groups = None if weights is None else np.argmax(weights != 0, axis=0)
        key = None if groups is None else groups.tobytes()
        kept: dict[bytes | None, _Packs]
        kept = self._layouts.get(("cuda", self._cupy.cuda.Device().id), dict)
        if key in kept:
            yield self._weighted(kept[key], weights)
            return
        order = _by_length(lengths)
        longest = np.maximum.reduceat(lengths[order], np.arange(0, len(order), LANES))
        sizes = longest * LANES * (case.channels + case.stride + 2.0) * case.item
        runs = partition(sizes, [1.0], block_cost=self._share)
        keep = len(runs) == 1 and sizes.sum() <= self._share / 4
        if len(kept) >= _KEPT_LAYOUTS:
            kept.clear()
        for run in runs:
            members = order[run.row_begin * LANES : run.row_end * LANES]
            packs = self._lay_out(case, members, groups, first=run is runs[0])
            if keep:
                kept[key] = packs
            yield self._weighted(packs, weights)

    def _weighted(self, packs: _Packs, weights: AnyArray | None) -> _Packs:
        """Add the weights that are not zero, by position of the landmark in the packs."""
        if weights is None:
            return packs
        by_position = weights[:, packs.index][:, packs.order].T
        position, group = np.nonzero(by_position)
        begin = np.searchsorted(position, np.arange(len(by_position) + 1))
        arrays = {
            "weights_begin": self._cupy.asarray(begin.astype(np.int32)),
            "weights_group": self._cupy.asarray(group.astype(np.int32)),
            "weights": self._cupy.asarray(by_position[position, group].astype(self.dtype)),
        }
        return replace(packs, arrays=packs.arrays | arrays)

    def _lay_out(
        self, case: Case, members: IntArray, groups: IntArray | None, *, first: bool
    ) -> _Packs:
        """Pack landmarks, given in order of length, on the device."""
        cupy = self._cupy
        index = np.sort(members)
        batch = self.landmarks if len(index) == len(self.landmarks) else self.landmarks[index]
        order = np.searchsorted(index, members)
        if groups is not None:
            order = order[np.lexsort((groups[members], np.arange(len(order)) // LANES))]
        longest = np.maximum.reduceat(batch.lengths[order], np.arange(0, len(order), LANES))
        padded = -(-longest // case.column_step) * case.column_step
        columns = np.concatenate([[0], np.cumsum(padded)])
        rows, shift = self._upload(case, batch)
        arrays = {
            "landmarks": rows,
            "pack_columns": cupy.asarray(columns.astype(np.int64)),
            "begins": cupy.asarray(batch.offsets[:-1][order].astype(np.int64)),
            "steps": cupy.asarray(batch.lengths[order].astype(np.int32)),
            "order": cupy.asarray(order.astype(np.int32)),
        }
        # One spare column, because the kernel reads one column ahead.
        n_columns = int(columns[-1]) + 1
        packed = cupy.empty((n_columns, case.channels, LANES), dtype=self.dtype)
        packed[-1] = 0
        packed_shift = cupy.empty((n_columns if case.shifted else 1, LANES), dtype=self.dtype)
        packs = _Packs(first, index, order, columns, arrays)
        program(case, packs.widest, int(self.series.lengths.max())).pack_landmarks(
            (packs.count,), (_THREADS,),
            (rows, shift, arrays["pack_columns"], arrays["begins"], arrays["steps"],
             np.int32(len(index)), packed, packed_shift),
        )  # fmt: skip
        arrays |= {"packed": packed, "packed_shift": packed_shift}
        return packs

    def _upload(self, case: Case, batch: SeriesBatch) -> tuple[Any, Any]:
        """Rows padded with zeros, and what is added to each local affinity."""
        cupy = self._cupy
        rows = cupy.zeros((batch.n_steps, case.stride), dtype=self.dtype)
        rows[:, : case.channels] = cupy.asarray(batch.values.astype(self.dtype))
        shift = self.settings.shift(batch)
        return rows, rows if shift is None else cupy.asarray(-shift.astype(self.dtype))

    def _series_blocks(self, work: _Work, packs: _Packs) -> list[slice]:
        """Blocks of series that fit on the card with their results and do not take too long."""
        case, lengths = work.case, self.series.lengths.astype(np.float64)
        results = work.n_chunks(packs) + 2 if work.summed else len(packs.order)
        per_step = case.stride + 4 + (work.options["n_outer"] + 1) * case.channels
        size = (lengths * per_step + float(np.prod(work.shape)) * results) * case.item
        operations = lengths * float(packs.columns[-1]) * LANES * (case.channels + 8)
        costs = np.maximum(size / self._share, operations / _BLOCK_OPERATIONS)
        # The kernel counts its items in 32 bits.
        costs = np.maximum(costs, packs.count / 2**31)
        blocks = partition(costs, [1.0], block_cost=1.0)
        return [slice(block.row_begin, block.row_end) for block in blocks]

    def _run_rows(self, work: _Work, kernel: Program, packs: _Packs, rows: slice) -> None:
        """Run a block, or its halves if there is not enough contiguous free memory."""
        result = None
        try:
            result = self._run_block(work, kernel, packs, rows)
        except self._cupy.cuda.memory.OutOfMemoryError:
            if rows.stop - rows.start == 1:
                raise
        # Not inside the handler, where the exception still refers to the arrays of the block.
        if result is not None:
            self._store(work, packs, rows, result)
            return
        self._cupy.get_default_memory_pool().free_all_blocks()
        self._share //= 2
        middle = (rows.start + rows.stop) // 2
        for half in (slice(rows.start, middle), slice(middle, rows.stop)):
            self._run_rows(work, kernel, packs, half)

    def _store(self, work: _Work, packs: _Packs, rows: slice, result: Any) -> None:
        """Copy the result of a block to the host, unless it is to stay on the device."""
        out, on_host = work.out, not isinstance(work.out, self._cupy.ndarray)
        if work.summed and not packs.first:
            out[rows] += self._cupy.asnumpy(result) if on_host else result
        elif not on_host:
            out[rows] = result
        elif work.summed or len(packs.index) == len(self.landmarks):
            self._cupy.asnumpy(result, out=out[rows])
        else:
            out[rows, packs.index] = self._cupy.asnumpy(result)

    def _run_block(self, work: _Work, kernel: Program, packs: _Packs, rows: slice) -> Any:
        """Return the result of one block, on the device."""
        cupy, case, batch = self._cupy, work.case, self.series[rows]
        values, shift = self._upload(case, batch)
        chunks = work.n_chunks(packs)
        n_items = len(batch) * chunks
        longest = int(batch.lengths.max())
        job = dict(work.options)
        if work.metrics is not None:
            metrics = cupy.asarray(work.metrics)
            job["projected"] = cupy.empty((len(metrics), *batch.values.shape), dtype=self.dtype)
            sizes = np.int64(batch.n_steps), np.int64(len(metrics))
            self._map(kernel.project_rows, job["projected"], values, metrics, *sizes)
        leading = (chunks, len(batch)) if work.summed else (len(batch), len(packs.order))
        out = cupy.empty((*leading, *work.shape), dtype=self.dtype)
        places, size = _scratch(kernel, packs.widest, longest, job["n_outer"] * job["n_phases"])
        blocks = min(-(-n_items // WARPS), kernel.resident_blocks(packs.widest, longest))
        if size:
            blocks = max(1, min(blocks, self._share // (WARPS * size)))
            job["scratch"] = cupy.empty(blocks * WARPS * size, dtype=np.uint8)
        no_path = cupy.full(1, _EVERY_PAIR_HAS_A_PATH, dtype=np.uint64)
        kernel.launch(
            blocks, packs.widest, longest,
            series=values, series_shift=shift, out=out, no_path=no_path,
            series_offsets=cupy.asarray(batch.offsets.astype(np.int64)),
            series_order=cupy.asarray(_by_length(-batch.lengths).astype(np.int32)),
            scratch_size=size, counter=cupy.zeros(1, dtype=np.uint32),
            n_items=n_items, n_rows=batch.n_steps, n_series=len(batch),
            n_landmarks=len(packs.order), n_packs=packs.count,
            packs_per_item=work.packs_per_item(packs), **packs.arrays, **places, **job,
        )  # fmt: skip
        pair = int(cupy.asnumpy(no_path)[0])
        if pair != _EVERY_PAIR_HAS_A_PATH:
            p, q = divmod(pair, len(packs.order))
            raise self._layouts.no_path(self.series, rows.start + p, int(packs.index[q]))
        if not work.summed:
            return out
        summed = cupy.empty((len(batch), *work.shape), dtype=self.dtype)
        self._map(kernel.add_chunks, summed, out, np.int64(chunks), np.int64(summed.size))
        if work.basis is None:
            return summed
        return summed @ cupy.asarray(work.basis.astype(self.dtype))

    @staticmethod
    def _map(function: Any, out: Any, *arguments: Any) -> None:
        """Launch a function that computes each element of `out`, its last argument."""
        function((min(-(-out.size // _THREADS), 2**16),), (_THREADS,), (*arguments, out))


def _by_length(lengths: IntArray) -> IntArray:
    return np.argsort(lengths, kind="stable")


def _scratch(
    kernel: Program, columns: int, longest: int, n_sums: int
) -> tuple[dict[str, int], int]:
    """Return the places of intervals and sums in the scratch memory of a warp, and its size."""
    case = kernel.case
    frontier = 0 if kernel.shared else columns * LANES * (case.item + 4)
    if not case.traced:
        return {}, frontier
    moves = whole_lines(-(-longest // case.rows) * columns * LANES * 2)
    intervals = 0 if kernel.shared else whole_lines(case.intervals_bytes(longest))
    sums = 0
    if case.reduction in (Reduction.PRODUCTS, Reduction.GROUPED):
        sums = n_sums * longest * case.channels * case.item
    places = {"intervals_at": moves, "sums_at": moves + intervals}
    return places, frontier + moves + intervals + whole_lines(sums)
