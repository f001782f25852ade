"""Memory of the machine or container; arrays that go to temporary files beyond a limit."""

from __future__ import annotations

import ctypes
import os
import shutil
import sys
import tempfile
import threading
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

ArrayBlock: TypeAlias = tuple[npt.NDArray[Any], ...]

_UNKNOWN = 8 * 10**9
_CGROUP = Path("/proc/self/cgroup")
_CGROUPS = Path("/sys/fs/cgroup")


def usable_memory() -> int:
    """Return the bytes this process may use: the machine's memory or the limit of its cgroups."""
    try:
        physical = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):
        physical = 0
    return min([physical if physical > 0 else _UNKNOWN, *_limits()])


def _limits() -> Iterator[int]:
    """Yield the limits of the control groups of this process, of version 2 and of version 1."""
    try:
        lines = _CGROUP.read_text(errors="replace").splitlines()
    except OSError:
        return
    for line in lines:
        _, controllers, path = [*line.split(":", 2), "none", "none"][:3]
        if controllers == "":
            root, name = _CGROUPS, "memory.max"
        elif "memory" in controllers.split(","):
            root, name = _CGROUPS / "memory", "memory.limit_in_bytes"
        else:
            continue
        # Limits of parent groups apply too. Inside a container the path may be the host's.
        inner = Path(path.strip("/"))
        for group in (inner, *inner.parents):
            try:
                text = (root / group / name).read_text(errors="replace").strip()
            except (OSError, ValueError):
                continue
            if text.isascii() and text.isdigit() and int(text) > 0:
                yield int(text)


def release_memory() -> None:
    """Return freed memory to the system: the allocators of Arrow and C keep it otherwise."""
    arrow: Any = sys.modules.get("pyarrow")
    if arrow is not None:
        arrow.default_memory_pool().release_unused()
    if sys.platform == "linux":
        trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
        if trim is not None:
            trim(0)


@dataclass(frozen=True)
class _FileBlock:
    """A block in a file; its arrays are memory-mapped only while they are used."""

    path: Path
    entries: tuple[tuple[int, tuple[int, ...], np.dtype[Any]], ...]

    def load(self) -> ArrayBlock:
        return tuple(
            np.memmap(self.path, dtype, "r", offset, shape)
            if 0 not in shape
            else np.empty(shape, dtype)
            for offset, shape, dtype in self.entries
        )


@dataclass
class StoredBlocks:
    """Blocks of one part, in order; can be iterated repeatedly."""

    blocks: list[ArrayBlock | _FileBlock] = field(default_factory=list)

    def __iter__(self) -> Iterator[ArrayBlock]:
        """Yield every block; blocks in files are mapped one at a time."""
        for block in self.blocks:
            yield block.load() if isinstance(block, _FileBlock) else block


class Spill:
    """Storage for blocks of arrays; blocks beyond `memory` bytes go to temporary files.

    The files are in a folder under ``tempfile.gettempdir()`` (``TMPDIR``), removed by `close`.
    """

    def __init__(self, memory: float) -> None:
        self.memory = memory
        self.in_memory = 0
        self.on_disk = 0
        self._lock = threading.Lock()
        self._folder: tempfile.TemporaryDirectory[str] | None = None
        self._count = 0

    def store(self, blocks: Iterable[ArrayBlock]) -> StoredBlocks:
        """Store the blocks of one part."""
        kept = StoredBlocks()
        for block in blocks:
            size = sum(array.nbytes for array in block)
            with self._lock:
                fits = self.in_memory + size <= self.memory
                if fits:
                    self.in_memory += size
                else:
                    self.on_disk += size
            kept.blocks.append(block if fits else self._file(block))
        return kept

    def _file(self, block: ArrayBlock) -> _FileBlock:
        with self._lock:
            if self._folder is None:
                self._folder = tempfile.TemporaryDirectory(prefix="slts-")
            self._count += 1
            path = Path(self._folder.name) / str(self._count)
        entries, offset = [], 0
        try:
            with path.open("wb") as file:
                for array in block:
                    # Memory maps must start at an aligned offset.
                    offset += file.write(b"\0" * (-offset % 64))
                    entries.append((offset, array.shape, array.dtype))
                    plain = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
                    offset += file.write(plain.data)
        except OSError as error:
            free = shutil.disk_usage(path.parent).free
            raise OSError(
                f"Intermediate results of {self.on_disk / 1e9:.1f} GB do not fit on the disk of "
                f"{path.parent.parent} ({free / 1e9:.1f} GB are free): {error.strerror}. Set "
                f"TMPDIR to a folder with more space, or raise memory_limit"
            ) from error
        return _FileBlock(path, tuple(entries))

    def close(self) -> None:
        """Remove the files."""
        if self._folder is not None:
            self._folder.cleanup()
            self._folder = None


def free_disk() -> int:
    """Return the free bytes of the disk that holds temporary files."""
    return shutil.disk_usage(os.fspath(tempfile.gettempdir())).free
