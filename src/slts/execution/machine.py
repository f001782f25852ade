"""Memory of the machine, or of the container: how much there is, and giving it back."""

from __future__ import annotations

import ctypes
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

_UNKNOWN = 8 * 10**9
_CGROUP = Path("/proc/self/cgroup")
_CGROUPS = Path("/sys/fs/cgroup")


def usable_memory() -> int:
    """Bytes: the smallest of the machine's memory and of the limits of its control groups."""
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
        # A limit higher up holds too. Inside a container the path may be that of the host.
        inner = Path(path.strip("/"))
        for group in (inner, *inner.parents):
            try:
                text = (root / group / name).read_text(errors="replace").strip()
            except (OSError, ValueError):
                continue
            if text.isascii() and text.isdigit() and int(text) > 0:
                yield int(text)


def give_back_memory() -> None:
    """Let the system have what was freed: allocators keep it, Arrow's and that of C alike."""
    arrow: Any = sys.modules.get("pyarrow")
    if arrow is not None:
        arrow.default_memory_pool().release_unused()
    if sys.platform == "linux":
        trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
        if trim is not None:
            trim(0)
