"""Memory that this process may use, and the return of what it has freed."""

from __future__ import annotations

import ctypes
import os
import re
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

from slts.quantities import parse_bytes

_UNKNOWN = 8 * 10**9


def usable_memory(
    groups: Path = Path("/proc/self/cgroup"), limits: Path = Path("/sys/fs/cgroup")
) -> int:
    """Return the bytes that this process may use: memory of the machine, or the smallest limit.

    `groups` is the file that names the control groups of this process, of version 2 (without
    controllers) or 1. `limits` is the folder of their limits.
    """
    sizes, text = [], ""
    with suppress(AttributeError, ValueError, OSError):
        sizes.append(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))
    with suppress(OSError):
        text = groups.read_text(errors="replace")
    for controllers, path in re.findall(r"^\d+:([^:\n]*):(.*)$", text, re.MULTILINE):
        if controllers and "memory" not in controllers.split(","):
            continue
        file = "memory/{}/memory.limit_in_bytes" if controllers else "{}/memory.max"
        # Limits of parent groups apply too. Inside a container the path may be the host's.
        group = Path(path.strip("/"))
        for each in (group, *group.parents):
            with suppress(OSError, ValueError):
                sizes.append(int((limits / file.format(each)).read_text(errors="replace")))
    return min((size for size in sizes if size > 0), default=_UNKNOWN)


def memory_limit(limit: Any, owner: str) -> int:
    """Return the bytes that training may use; None is half of what the process may use."""
    return usable_memory() // 2 if limit is None else parse_bytes(limit, "memory_limit", owner)


def release_memory() -> None:
    """Return freed memory to the system: the allocators of Arrow and C keep it otherwise."""
    arrow: Any = sys.modules.get("pyarrow")
    if arrow is not None:
        arrow.default_memory_pool().release_unused()
    if sys.platform == "linux":
        trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
        if trim is not None:
            trim(0)
