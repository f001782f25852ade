"""Arrays kept in memory while there is room, and in files beyond."""

from __future__ import annotations

import os
import shutil
import tempfile
import threading
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TypeAlias

import numpy as np
import numpy.typing as npt

Block: TypeAlias = tuple[npt.NDArray[Any], ...]


@dataclass(frozen=True)
class _Filed:
    """A block in a file; its arrays are mapped while they are looked at, and not longer."""

    path: Path
    entries: tuple[tuple[int, tuple[int, ...], np.dtype[Any]], ...]

    def load(self) -> Block:
        return tuple(
            np.memmap(self.path, dtype, "r", offset, shape)
            if 0 not in shape
            else np.empty(shape, dtype)
            for offset, shape, dtype in self.entries
        )


@dataclass
class Kept:
    """Blocks of one part, in order; may be gone through again and again."""

    blocks: list[Block | _Filed] = field(default_factory=list)

    def __iter__(self) -> Iterator[Block]:
        """Give every block; those in files are mapped one at a time."""
        for block in self.blocks:
            yield block.load() if isinstance(block, _Filed) else block


class Shelf:
    """Keeps blocks of arrays; those that do not fit in `memory` bytes go to temporary files.

    The files lie in a folder under ``tempfile.gettempdir()`` (``TMPDIR``) and vanish with the
    shelf.
    """

    def __init__(self, memory: float) -> None:
        self.memory = memory
        self.in_memory = 0
        self.on_disk = 0
        self._lock = threading.Lock()
        self._folder: tempfile.TemporaryDirectory[str] | None = None
        self._count = 0

    def keep(self, blocks: Iterable[Block]) -> Kept:
        """Take the blocks of one part as they come."""
        kept = Kept()
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

    def _file(self, block: Block) -> _Filed:
        with self._lock:
            if self._folder is None:
                self._folder = tempfile.TemporaryDirectory(prefix="slts-")
            self._count += 1
            path = Path(self._folder.name) / str(self._count)
        entries, offset = [], 0
        try:
            with path.open("wb") as file:
                for array in block:
                    # Maps begin where an item may.
                    offset += file.write(b"\0" * (-offset % 64))
                    entries.append((offset, array.shape, array.dtype))
                    plain = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
                    offset += file.write(plain.data)
        except OSError as error:
            free = shutil.disk_usage(path.parent).free
            raise OSError(
                f"{self.on_disk / 1e9:.1f} GB of intermediate results do not fit on the disk of "
                f"{path.parent.parent} ({free / 1e9:.1f} GB are free): {error.strerror}. Set "
                f"TMPDIR to a folder with more room, or raise memory_limit"
            ) from error
        return _Filed(path, tuple(entries))

    def close(self) -> None:
        """Forget everything."""
        if self._folder is not None:
            self._folder.cleanup()
            self._folder = None

    def __enter__(self) -> Self:
        """Use as a context."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Remove the files."""
        self.close()


def free_disk() -> int:
    """Bytes that temporary files may take."""
    return shutil.disk_usage(os.fspath(tempfile.gettempdir())).free
