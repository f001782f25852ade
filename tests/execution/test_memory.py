"""Usable memory of the machine or container, and releasing it."""

import ctypes
import os
import subprocess
import sys
from pathlib import Path

import pytest

from slts.execution import memory


@pytest.fixture
def groups(tmp_path, monkeypatch):
    """Write control groups: the content of /proc/self/cgroup, and limits by file."""

    def write(said, **limits):
        (tmp_path / "cgroup").write_text(said)
        for name, text in limits.items():
            path = tmp_path / "sys" / name.replace("__", "/").replace("_dot_", ".")
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)

    monkeypatch.setattr(memory, "_CGROUP", tmp_path / "cgroup")
    monkeypatch.setattr(memory, "_CGROUPS", tmp_path / "sys")
    return write


def test_without_limits_all_memory_of_the_machine_is_usable(groups):
    physical = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    assert memory.usable_memory() == physical
    groups("0::/user\n", user__memory_dot_max="max\n")
    assert memory.usable_memory() == physical


def test_the_smallest_limit_of_the_group_and_its_parents_counts(groups):
    groups(
        "0::/job/step\n", job__step__memory_dot_max="max\n", job__memory_dot_max="3000000\n",
        memory_dot_max="4000000\n",
    )  # fmt: skip
    assert memory.usable_memory() == 3_000_000


def test_in_a_container_the_path_may_be_the_hosts(groups):
    groups("0::/docker/0123\n", memory_dot_max="5000000\n")
    assert memory.usable_memory() == 5_000_000


def test_cgroups_of_version_1(groups):
    groups(
        "5:cpu,cpuacct:/a\n4:memory:/a\n", memory__a__memory_dot_limit_in_bytes="6000000",
        memory__memory_dot_limit_in_bytes="9223372036854771712",
    )  # fmt: skip
    assert memory.usable_memory() == 6_000_000


@pytest.mark.parametrize("said", ["\n", "garbage\n", "1:memory\n", "0::/\0\n", "0::/\udcff\n"])
@pytest.mark.parametrize("limit", ["", "0", "-1", "\u00b2", "many", "7 000"])
def test_limits_that_cannot_be_parsed_are_ignored(said, limit, groups):
    physical = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    groups("0::/\n", memory_dot_max=limit)
    assert memory.usable_memory() == physical
    memory._CGROUP.write_text(said, errors="surrogateescape")
    assert memory.usable_memory() == physical


def test_a_machine_of_unknown_memory(groups, monkeypatch):
    monkeypatch.setattr(os, "sysconf", lambda name: -1 if "PHYS" in name else 4096)
    assert memory.usable_memory() == 8 * 10**9
    monkeypatch.delattr(os, "sysconf")
    assert memory.usable_memory() == 8 * 10**9


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
    environment = os.environ | {"MALLOC_TRIM_THRESHOLD_": str(10**9), "OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, env=environment, check=True
    )
    full, kept, left = map(int, done.stdout.split())
    assert full > 100_000_000
    assert kept > 0.9 * full
    assert left < 0.2 * full
