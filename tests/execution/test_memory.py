"""Usable memory of the machine or container, and returning freed memory."""

import ctypes
import os
from pathlib import Path

import pytest

from slts.execution import usable_memory
from tests.data import run_python

PHYSICAL = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


@pytest.fixture
def usable(tmp_path):
    """Memory that is usable with some control groups: their list, and limits by file."""

    def measure(groups, limits):
        (tmp_path / "groups").write_text(groups, errors="surrogateescape")
        for name, text in limits.items():
            path = tmp_path / "limits" / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        return usable_memory(tmp_path / "groups", tmp_path / "limits")

    return measure


@pytest.mark.parametrize(("groups", "limits", "expected"), [
    ("0::/user", {"user/memory.max": "max"}, PHYSICAL),
    # The smallest limit of the group and its parents.
    ("0::/a/b", {"a/b/memory.max": "max", "a/memory.max": "3000000", "memory.max": "4000000"},
     3_000_000),
    # In a container, the path may be that of the host.
    ("0::/docker/0123\n", {"memory.max": "5000000\n"}, 5_000_000),
    # Version 1.
    ("5:cpu,cpuacct:/a\n4:memory:/a\n",
     {"memory/a/memory.limit_in_bytes": "6000000", "cpu/a/memory.limit_in_bytes": "1000",
      "memory/memory.limit_in_bytes": "9223372036854771712", "memory.max": "1000"},
     6_000_000),
])  # fmt: skip
def test_the_smallest_limit_of_all_control_groups_counts(usable, groups, limits, expected):
    assert usable(groups, limits) == expected


@pytest.mark.parametrize("limit", ["", "0", "-1", "\u00b2", "many", "7 000"])
@pytest.mark.parametrize("groups", ["\n", "garbage\n", "1:memory\n", "1:pids:/\n", "0::\0\n"])
def test_what_cannot_be_parsed_is_ignored(usable, groups, limit):
    assert usable(groups, {"memory.max": limit}) == PHYSICAL
    assert usable(f"{groups}0::/\udcff\n", {"memory.max": "7000000"}) == 7_000_000


def test_a_machine_of_unknown_memory_has_8_gb(usable, monkeypatch):
    monkeypatch.setattr(os, "sysconf", lambda name: -1 if "PHYS" in name else 4096)
    assert usable("", {}) == 8 * 10**9
    assert usable("0::/\n", {"memory.max": "9000000"}) == 9_000_000


@pytest.mark.skipif(
    not Path("/proc/self/statm").exists() or not hasattr(ctypes.CDLL(None), "malloc_trim"),
    reason="no /proc to read memory from, or no malloc_trim",
)
def test_freed_memory_is_returned_to_the_system():
    """Small arrays lie on a heap that shrinks at its end only, where one array stays alive."""
    program = """
import resource
import numpy as np
from slts.execution import release_memory

def resident():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * resource.getpagesize()

before = resident()
arrays = [np.ones(8_000) for _ in range(2_000)]
full = resident() - before
last = arrays.pop()
arrays.clear()
kept = resident() - before
release_memory()
print(full, kept, resident() - before)
"""
    environment = {"MALLOC_TRIM_THRESHOLD_": str(10**9), "OMP_NUM_THREADS": "1"}
    full, kept, left = map(int, run_python(program, **environment).split())
    assert full > 100_000_000
    assert kept > 0.9 * full
    assert left < 0.2 * full
