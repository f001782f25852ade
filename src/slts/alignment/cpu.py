"""Alignments on the CPU: the native extension, and blocks of (series, landmarks) mapped over it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, NoReturn

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
    from slts.alignment._native import Landmarks, NoPath, Rows, Target
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

__all__ = ["CpuBackend", "available_targets", "native", "require_moves"]


def available_targets() -> list[Target]:
    """Instruction sets that this processor can run, best first."""
    return native.available_targets()


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


@dataclass(frozen=True)
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
    block_operations
        Work of one block, by default about 10 ms: long enough to hide the call, short enough for
        progress, balance and Ctrl-C.
    lane_bytes
        Memory for the moves of one thread. Beyond it landmarks are aligned one at a time, because
        each lane needs its own grid of moves.
    """

    # The module of the arrays that it computes.
    arrays: ClassVar[Any] = np

    series: SeriesBatch
    layouts: LandmarkLayouts
    n_jobs: int | None = None
    progress: Progress = silent
    block_operations: float = 2e8
    lane_bytes: int = 256 * 2**20

    @property
    def landmarks(self) -> SeriesBatch:
        """The landmarks."""
        return self.layouts.landmarks

    def scores(self, out: AnyArray, *, mean: bool) -> None:
        """Total local value or mean affinity along each path, into (series, landmarks)."""
        lengths = np.empty(out.shape, dtype=np.int32)
        self.run(native.score, (), (out, lengths), traced=False)
        if mean:
            out /= lengths
            if self.layouts.settings.objective == "cost":
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
        basis = self.layouts.basis
        columns = self.series.n_channels if basis is None else basis.shape[1]
        # The kernel works on padded rows, and leaves out steps that a phase does not reach.
        stride = self._packed_landmarks(native.selected_target()).summed_stride
        shape = (1, len(self.landmarks), n_phases, self.series.n_steps, stride)
        out = np.zeros(shape, dtype=self.layouts.settings.dtype)
        self.run(native.sums, (), (out,))
        return out[0, ..., :columns]

    def run(
        self,
        reduction: Callable[..., NoPath],
        inputs: tuple[AnyArray, ...],
        outputs: tuple[AnyArray, ...],
        *,
        traced: bool = True,
        split_columns: bool = True,
    ) -> None:
        """Map a native reduction over blocks of (series x packs of landmarks).

        `traced` reductions store the moves of a whole grid in order to walk the path back.
        """
        target, token = native.selected_target(), native.CancelToken()
        landmarks = self._packed_landmarks(target, traced=traced)
        band, workers = self.layouts.band, thread_count(self.n_jobs)

        def task(block: Block) -> None:
            begin, end = block.row_begin, block.row_end
            # Every thread lays out its own series, which are then in its cache.
            series = self._lay_out_series(begin, end)
            no_path = reduction(
                series, landmarks, (block.column_begin, block.column_end), band,
                *inputs, *(out[begin:end] for out in outputs), target, token,
            )  # fmt: skip
            if no_path is not None:
                raise self.layouts.no_path(self.series, begin + no_path[0], no_path[1])

        blocks = partition(
            self.series.lengths * float(self.series.n_channels + 4),
            landmarks.pack_columns,
            block_cost=self.block_operations,
            workers=workers,
            split_columns=split_columns,
        )
        map_blocks(task, blocks, n_jobs=workers, cancel=token.cancel, progress=self.progress)

    def _lay_out_series(self, begin: int, end: int) -> Rows:
        settings, series = self.layouts.settings, self.series
        layout = native.Rows32 if settings.dtype == "float32" else native.Rows64
        if (begin, end) != (0, len(series)):
            series = series[begin:end]
        return layout(series.values, series.offsets, settings.shift(series))

    def _packed_landmarks(self, target: Target, *, traced: bool = True) -> Landmarks:
        """Return landmarks of similar length side by side, as many as memory allows."""
        settings, landmarks = self.layouts.settings, self.landmarks
        width = target.width(settings.dtype)
        longest = [int(batch.lengths.max(initial=0)) for batch in (self.series, landmarks)]
        if traced and moves_bytes(*longest) * width > self.lane_bytes:
            width = 1
            require_moves(*longest)
        layout = native.Landmarks32 if settings.dtype == "float32" else native.Landmarks64
        return self.layouts.get(
            width,
            lambda: layout(
                landmarks.values, landmarks.offsets, settings.shift(landmarks), width,
                self.layouts.basis,
            ),
        )  # fmt: skip
