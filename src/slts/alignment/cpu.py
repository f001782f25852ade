"""Alignments on the CPU: the native extension, and blocks of (series, landmarks) mapped over it."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, NoReturn

import numpy as np

from slts._typing import AnyArray
from slts.alignment.settings import LandmarkLayouts
from slts.execution import (
    Block,
    Progress,
    map_blocks,
    partition,
    silent,
    thread_count,
    usable_memory,
)
from slts.quantities import format_bytes
from slts.series import SeriesBatch

if TYPE_CHECKING:
    from slts.alignment import _native as native
    from slts.alignment._native import Landmarks, Outcome, Rows
else:
    try:
        from slts.alignment import _native as native
    except ImportError as error:
        # Alignments on a GPU work without it, so the import of slts must not fail.
        _CAUSE = error

        class _Missing:
            def __getattr__(self, name: str) -> NoReturn:
                raise ImportError(
                    f"Alignments on the CPU need the native extension of slts, which cannot be "
                    f"imported ({_CAUSE}): reinstall slts, or use device='cuda'.",
                    name="slts.alignment._native",
                )

        native = _Missing()

__all__ = ["CpuBackend", "available_targets", "native", "require_moves", "selected_target"]

# `Outcome::no_path` in native/job.hpp.
_NO_PATH = 2
# About 10 ms of work: long enough to hide the call, short enough for progress, balance and Ctrl-C.
_BLOCK_OPERATIONS = 2e8
# Memory for the moves of one thread. Beyond it landmarks are aligned one at a time, because each
# lane needs its own grid of moves.
_MOVES_BYTES = 256 * 2**20


@dataclass(frozen=True, slots=True)
class Target:
    """An instruction set: index in the extension, name, and lanes per precision."""

    index: int
    name: str
    width_float32: int
    width_float64: int

    def width(self, dtype: str) -> int:
        """Return the number of landmarks that are aligned in lockstep."""
        return self.width_float32 if dtype == "float32" else self.width_float64


@cache
def available_targets() -> tuple[Target, ...]:
    """Instruction sets that this processor can run, best first."""
    return tuple(Target(k, *row) for k, row in enumerate(native.targets()))


def selected_target() -> Target:
    """Return the best target, or the one named by the environment variable ``SLTS_ISA``."""
    index = native.selected_target()
    if index >= 0:
        return available_targets()[index]
    names = ", ".join(target.name for target in available_targets())
    wanted = os.environ.get("SLTS_ISA")
    raise ValueError(f"SLTS_ISA must be one of {names} on this machine. Got {wanted!r} instead.")


def moves_bytes(n: int, m: int) -> int:
    """Bytes to walk back the path of two series of n and m steps: 2 bits for each pair of steps."""
    return -(-n // 4) * m


def require_moves(n: int, m: int) -> None:
    """Raise an error if the moves of a path do not fit in memory, before they are allocated."""
    needed, usable = moves_bytes(n, m), usable_memory()
    if needed > usable:
        raise MemoryError(
            f"the path of two series of {n} and {m} steps needs {format_bytes(needed)} of memory, "
            f"but the process may use {format_bytes(usable)}. Average neighbouring steps first. A "
            f"band does not reduce the memory. slts.similarity without a metric needs no path."
        )


class CpuBackend:
    """Aligns one batch of series with the landmarks on the CPU, and fills result arrays.

    Parameters
    ----------
    series
        Prepared rows (see `AlignmentSettings.prepare`).
    layouts
        Landmarks, settings and kept layouts.
    n_jobs, progress
        See `map_blocks`.
    """

    # The module of the arrays that it computes.
    arrays = np

    def __init__(
        self,
        series: SeriesBatch,
        layouts: LandmarkLayouts,
        *,
        n_jobs: int | None = None,
        progress: Progress = silent,
    ) -> None:
        self.series, self.landmarks, self.settings = series, layouts.landmarks, layouts.settings
        self._layouts, self._n_jobs, self._progress = layouts, n_jobs, progress

    def scores(self, out: AnyArray, *, mean: bool) -> None:
        """Total local value or mean affinity along each path, into (series, landmarks)."""
        lengths = np.empty(out.shape, dtype=np.int32)
        self.run(native.score, (), (out, lengths), traced=False)
        if mean:
            out /= lengths
            if self.settings.objective == "cost":
                out += 1.0

    def products(self, out: AnyArray) -> None:
        """T of every pair, into (series, landmarks, channels, channels)."""
        self.run(native.products, (), (out,))

    def grouped(self, weights: AnyArray, out: AnyArray) -> None:
        """Weighted sums of T, into (series, groups, phases, channels, channels or directions)."""
        # Splitting a sum over landmarks would change the order of addition.
        self.run(native.grouped, (weights,), (out,), split_columns=False)

    def projected(self, metrics: AnyArray, out: AnyArray) -> None:
        """<M_c, T> of every pair, into (series, landmarks, metrics)."""
        self.run(native.projected, (metrics,), (out,))

    def sums(self, n_phases: int) -> AnyArray:
        """Landmark rows that are aligned with each step of one series; see `Aligner.sums`."""
        basis = self._layouts.basis
        columns = self.series.n_channels if basis is None else basis.shape[1]
        # The kernel works on padded rows, and leaves out steps that a phase does not reach.
        shape = (1, len(self.landmarks), n_phases, self.series.n_steps)
        out = np.zeros((*shape, self._packed_landmarks().summed_stride), self.settings.dtype)
        self.run(native.sums, (), (out,))
        return out[0, ..., :columns]

    def run(
        self,
        reduction: Callable[..., Outcome],
        inputs: tuple[AnyArray, ...],
        outputs: tuple[AnyArray, ...],
        *,
        traced: bool = True,
        split_columns: bool = True,
    ) -> None:
        """Map a native reduction over blocks of (series x packs of landmarks).

        `traced` reductions store the moves of a whole grid in order to walk the path back.
        """
        target, band = selected_target(), self._layouts.band
        landmarks = self._packed_landmarks(traced=traced)
        token, workers = native.CancelToken(), thread_count(self._n_jobs)

        def task(block: Block) -> None:
            begin, end = block.row_begin, block.row_end
            where = (0, end - begin, block.column_begin, block.column_end)
            parts = (out[begin:end] for out in outputs)
            # Every thread lays out its own series, which are then in its cache.
            series = self._lay_out_series(begin, end)
            outcome, p, q = reduction(
                series, landmarks, where, band, *inputs, *parts, target.index, token
            )
            if outcome == _NO_PATH:
                raise self._layouts.no_path(self.series, begin + p, q)

        blocks = partition(
            self.series.lengths * float(self.series.n_channels + 4),
            landmarks.pack_columns,
            block_cost=_BLOCK_OPERATIONS,
            workers=workers,
            split_columns=split_columns,
        )
        map_blocks(task, blocks, n_jobs=workers, cancel=token.cancel, progress=self._progress)

    def _lay_out_series(self, begin: int, end: int) -> Rows:
        layout = native.Rows32 if self.settings.dtype == "float32" else native.Rows64
        series = self.series
        if (begin, end) != (0, len(series)):
            series = series[begin:end]
        return layout(series.values, series.offsets, self.settings.shift(series))

    def _packed_landmarks(self, *, traced: bool = True) -> Landmarks:
        """Return the layout of the landmarks, as wide as the moves of a grid allow."""
        width = selected_target().width(self.settings.dtype)
        longest = int(self.series.lengths.max(initial=0))
        if traced and moves_bytes(longest, self._layouts.longest) * width > _MOVES_BYTES:
            width = 1
            require_moves(longest, self._layouts.longest)
        return self._layouts.get(width, lambda: self._lay_out_landmarks(width))

    def _lay_out_landmarks(self, width: int) -> Landmarks:
        """Pack landmarks of similar length side by side, `width` to a pack."""
        layout = native.Landmarks32 if self.settings.dtype == "float32" else native.Landmarks64
        batch = self.landmarks
        shift, basis = self.settings.shift(batch), self._layouts.basis
        return layout(batch.values, batch.offsets, shift, width, basis)
