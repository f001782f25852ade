"""Memory of the machine or container: how much is usable, and how to release it."""

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
