"""The kernel, compiled for one case."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from importlib import resources
from threading import RLock
from typing import Any

import numpy as np

from slts.alignment.cuda.device import require_gpu
from slts.alignment.cuda.layout import LANES

SCORE, PRODUCTS, GROUPED, PROJECTED, PATH = range(5)

WARPS = 4
# Bytes of the struct `Other` of kernel.cu.
_OTHER_BYTES = {4: 32, 8: 48}
# Measured on an H200: registers that the rows of a tile may take, and how many rows to try.
_TILE_REGISTERS = 84
_TILE_ROWS = {4: (8, 6, 4), 8: (6, 4, 3)}
_WIDE_TILE_ROWS = {4: 8, 8: 4}
# With fewer warps at a time than this, the frontier goes to global memory instead.
_FEW_WARPS = 8
# Shared memory that every block costs besides its own.
_RESERVED_SHARED = 1024

_POINTERS = (
    "series", "series_shift", "series_offsets", "series_order", "packed", "packed_shift",
    "landmarks", "pack_columns", "begins", "steps", "order", "weights_begin", "weights_group",
    "weights", "projected", "scratch",
)  # fmt: skip
_turns: dict[int, RLock] = {}
_JOB = np.dtype(
    [(name, np.uint64) for name in _POINTERS]
    + [(name, np.int64) for name in ("scratch_size", "intervals_at", "sums_at", "warp_space")]
    + [(name, np.uint64) for name in ("counter", "no_path", "out", "out_intervals")]
    + [("band", np.float64), ("plus", np.float64), ("n_items", np.int64), ("n_rows", np.int64)]
    + [
        (name, np.int32)
        for name in (
            "n_series", "n_landmarks", "n_packs", "packs_per_item", "n_outer", "n_phases", "mean",
            "out_steps", "columns",
        )
    ],
    align=True,
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Case:
    """What the compiler must know."""

    reduction: int
    dtype: str
    channels: int
    shifted: bool
    band: int
    long_paths: bool

    @property
    def item(self) -> int:
        """Bytes of a number."""
        return np.dtype(self.dtype).itemsize

    @property
    def rows(self) -> int:
        """Series rows of a tile: as many as fit in registers, or a fixed number."""
        fitting = (r for r in _TILE_ROWS[self.item] if self._registers(r) <= _TILE_REGISTERS)
        return next(fitting, _WIDE_TILE_ROWS[self.item])

    @property
    def narrow(self) -> bool:
        """Whether the rows of a tile fit in registers."""
        return self._registers(self.rows) <= _TILE_REGISTERS

    def _registers(self, rows: int) -> int:
        return rows * self.channels * self.item // 4

    @property
    def blocks(self) -> int:
        """Blocks that a multiprocessor runs at a time, which bounds their registers."""
        plain = self.reduction != SCORE or not (self.shifted or self.band)
        return 4 if self.item == 4 and plain else 3

    @property
    def column_step(self) -> int:
        """Columns handled at once."""
        return 1 if self.narrow else 2

    @property
    def stride(self) -> int:
        """Channels of a padded row."""
        return -(-self.channels // 4) * 4

    def warp_space(self, columns: int, longest: int) -> int:
        """Bytes of shared memory of one warp: frontier with lengths, or intervals in its place."""
        ends = 8 if self.long_paths else 4
        if self.reduction == SCORE:
            return columns * LANES * (self.item + ends // 2)
        return whole_lines(max(columns * LANES * self.item, self.intervals_bytes(longest)))

    def intervals_bytes(self, longest: int) -> int:
        """Bytes of 32 paths, one interval per series step."""
        return longest * (LANES + 1) * (8 if self.long_paths else 4)


class Program:
    """One compiled case on the current device; only for the thread whose `turn` it is."""

    def __init__(self, case: Case, *, shared: bool) -> None:
        cupy = require_gpu()
        options = {
            "REAL": "float" if case.item == 4 else "double",
            "CHANNELS": case.channels,
            "NARROW": int(case.narrow),
            "SHIFTED": int(case.shifted),
            "BAND": case.band,
            "REDUCTION": case.reduction,
            "ROWS": case.rows,
            "WARPS": WARPS,
            "BLOCKS": case.blocks,
            "SHARED_FRONTIER": int(shared),
            "LONG_PATHS": int(case.long_paths),
        }
        source = resources.files("slts.alignment.cuda").joinpath("kernel.cu").read_text("utf-8")
        flags = ("-std=c++17", *(f"-D{name}={value}" for name, value in options.items()))
        module = cupy.RawModule(code=source, options=flags)
        self.case, self.shared = case, shared
        self.pack_landmarks = module.get_function("pack_landmarks")
        self.project_rows = module.get_function("project_rows")
        self.add_chunks = module.get_function("add_chunks")
        self._run_pairs = module.get_function("run_pairs")
        self._job = module.get_global("job")
        self._cupy = cupy

    def shared_bytes(self, columns: int, longest: int) -> int:
        """Shared memory of a block."""
        others = LANES * _OTHER_BYTES[self.case.item] if self.case.reduction != SCORE else 0
        return WARPS * (others + (self.case.warp_space(columns, longest) if self.shared else 0))

    def resident_blocks(self, columns: int, longest: int) -> int:
        """Blocks that the whole device runs at a time."""
        limits = self._cupy.cuda.Device().attributes
        registers = -(-self._run_pairs.num_regs // 8) * 8 * LANES * WARPS
        by_registers: int = limits["MaxRegistersPerMultiprocessor"] // registers
        shared = self.shared_bytes(columns, longest) + _RESERVED_SHARED
        by_shared: int = limits["MaxSharedMemoryPerMultiprocessor"] // shared
        multiprocessors: int = limits["MultiProcessorCount"]
        return multiprocessors * max(1, min(by_registers, by_shared))

    def launch(self, blocks: int, columns: int, longest: int, **job: Any) -> None:
        """Run every item of `job`: device arrays and numbers, by the names of kernel.cu.

        Packs have at most so many columns, series at most so many steps.
        """
        record = np.zeros((), dtype=_JOB)
        for name, value in job.items():
            record[name] = value.data.ptr if isinstance(value, self._cupy.ndarray) else value
        record["columns"] = columns
        record["warp_space"] = self.case.warp_space(columns, longest)
        self._job.copy_from_host(record.ctypes.data, record.nbytes)
        shared = self.shared_bytes(columns, longest)
        self._run_pairs.max_dynamic_shared_size_bytes = shared
        self._run_pairs((blocks,), (WARPS * LANES,), (), shared_mem=shared)


def turn(device: int) -> RLock:
    """Lock of a device, for a whole run of blocks.

    One thread at a time compiles, writes the kernel's only job, and shares out the free memory.
    """
    return _turns.setdefault(device, RLock())


def program(case: Case, columns: int, longest: int) -> Program:
    """Give the case compiled for packs of so many columns and series of so many steps."""
    cupy = require_gpu()
    device = cupy.cuda.Device()
    available = device.attributes["MaxSharedMemoryPerMultiprocessor"]
    fits = case.warp_space(columns, longest) * _FEW_WARPS <= 0.95 * available
    return _compiled(case, fits, device.id)


def whole_lines(size: int) -> int:
    """Round up to lines of the cache."""
    return -(-size // 128) * 128


@cache
def _compiled(case: Case, shared: bool, device: int) -> Program:
    return Program(case, shared=shared)
