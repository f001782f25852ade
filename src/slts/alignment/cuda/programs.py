"""The kernel compiled for one case."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from functools import cache
from importlib import resources
from threading import RLock
from typing import Any

import numpy as np

from slts.alignment.settings import require_gpu

LANES = 32
WARPS = 4
# Bytes of the struct `Other` in kernel.cu.
_OTHER_BYTES = {4: 32, 8: 48}
# Measured on an H200: registers for the rows of a tile, and the numbers of rows to try.
_TILE_REGISTERS = 84
_TILE_ROWS = {4: (8, 6, 4), 8: (6, 4, 3)}
_WIDE_TILE_ROWS = {4: 8, 8: 4}
# The frontier goes to global memory if shared memory holds fewer warps than this.
_FEW_WARPS = 8
# Shared memory that the driver reserves per block.
_RESERVED_SHARED = 1024

# The struct `Job` in kernel.cu.
_JOB = np.dtype(
    [
        (name, kind)
        for kind, names in (
            ("u8", "series series_shift series_offsets series_order packed packed_shift"),
            ("u8", "landmarks pack_columns begins steps order weights_begin weights_group weights"),
            ("u8", "projected scratch"),
            ("i8", "scratch_size intervals_at sums_at warp_space"),
            ("u8", "counter no_path out"),
            ("f8", "band plus"),
            ("i8", "n_items n_rows"),
            ("i4", "n_series n_landmarks n_packs packs_per_item n_outer n_phases mean columns"),
        )
        for name in names.split()
    ],
    align=True,
)

_device_locks: dict[int, RLock] = {}


# What is kept of a path, named as in kernel.cu.
Reduction = Enum("Reduction", ["SCORE", "PRODUCTS", "GROUPED", "PROJECTED"])


@dataclass(frozen=True, slots=True)
class Case:
    """Compile-time constants of the kernel.

    `band` is NO_BAND, SAKOE_CHIBA or ITAKURA.
    """

    reduction: Reduction
    dtype: str
    channels: int
    shifted: bool
    band: str
    long_paths: bool

    @property
    def traced(self) -> bool:
        """Whether paths are walked back."""
        return self.reduction is not Reduction.SCORE

    @property
    def item(self) -> int:
        """Bytes per number."""
        return np.dtype(self.dtype).itemsize

    @property
    def rows(self) -> int:
        """Series rows per tile: as many as fit in registers, or a fixed number."""
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
        """Blocks per multiprocessor, which limits their registers."""
        plain = self.traced or not (self.shifted or self.band != "NO_BAND")
        return 4 if self.item == 4 and plain else 3

    @property
    def column_step(self) -> int:
        """Landmark columns per tile."""
        return 1 if self.narrow else 2

    @property
    def stride(self) -> int:
        """Values of a padded row."""
        return -(-self.channels // 4) * 4

    def warp_space(self, columns: int, longest: int) -> int:
        """Bytes of shared memory per warp: frontier and lengths, later replaced by intervals."""
        ends = 8 if self.long_paths else 4
        if not self.traced:
            return columns * LANES * (self.item + ends // 2)
        return whole_lines(max(columns * LANES * self.item, self.intervals_bytes(longest)))

    def intervals_bytes(self, longest: int) -> int:
        """Bytes of the intervals of 32 paths, one interval per series step."""
        return longest * (LANES + 1) * (8 if self.long_paths else 4)


class Program:
    """One compiled case on the current device, for the thread that holds its `device_lock`."""

    def __init__(self, case: Case, *, shared: bool) -> None:
        cupy = require_gpu()
        options = {
            "REAL": "float" if case.item == 4 else "double",
            "CHANNELS": case.channels,
            "NARROW": int(case.narrow),
            "SHIFTED": int(case.shifted),
            "BAND": case.band,
            "REDUCTION": case.reduction.name,
            "ROWS": case.rows,
            "WARPS": WARPS,
            "BLOCKS": case.blocks,
            "SHARED_FRONTIER": int(shared),
            "LONG_PATHS": int(case.long_paths),
            "JOB_BYTES": _JOB.itemsize,
            "OTHER_BYTES": _OTHER_BYTES[case.item],
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
        """Bytes of shared memory per block."""
        others = LANES * _OTHER_BYTES[self.case.item] if self.case.traced else 0
        return WARPS * (others + (self.case.warp_space(columns, longest) if self.shared else 0))

    def resident_blocks(self, columns: int, longest: int) -> int:
        """Blocks that the whole device runs at the same time."""
        limits = self._cupy.cuda.Device().attributes
        registers = -(-self._run_pairs.num_regs // 8) * 8 * LANES * WARPS
        by_registers: int = limits["MaxRegistersPerMultiprocessor"] // registers
        shared = self.shared_bytes(columns, longest) + _RESERVED_SHARED
        by_shared: int = limits["MaxSharedMemoryPerMultiprocessor"] // shared
        multiprocessors: int = limits["MultiProcessorCount"]
        return multiprocessors * max(1, min(by_registers, by_shared))

    def launch(self, blocks: int, columns: int, longest: int, **job: Any) -> None:
        """Run the kernel on `job`: device arrays and numbers, named as in kernel.cu.

        `columns` and `longest` are the sizes of the longest pack and of the longest series.
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


def device_lock(device: int) -> RLock:
    """Lock of a device, held for all blocks of one call.

    One thread at a time compiles, writes the kernel's global job and divides the free memory.
    """
    return _device_locks.setdefault(device, RLock())


def program(case: Case, columns: int, longest: int) -> Program:
    """Return the case compiled for the longest pack and the longest series."""
    cupy = require_gpu()
    device = cupy.cuda.Device()
    available = device.attributes["MaxSharedMemoryPerMultiprocessor"]
    fits = case.warp_space(columns, longest) * _FEW_WARPS <= 0.95 * available
    return _compiled(case, fits, device.id)


def whole_lines(size: int) -> int:
    """Round up to whole cache lines."""
    return -(-size // 128) * 128


@cache
def _compiled(case: Case, shared: bool, device: int) -> Program:
    return Program(case, shared=shared)
