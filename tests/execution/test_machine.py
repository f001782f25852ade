"""Memory of the machine, or of the container."""

import os

import pytest

from slts.execution import machine


@pytest.fixture
def groups(tmp_path, monkeypatch):
    """Write control groups: what /proc says, and limits by file."""

    def write(said, **limits):
        (tmp_path / "cgroup").write_text(said)
        for name, text in limits.items():
            path = tmp_path / "sys" / name.replace("__", "/").replace("_dot_", ".")
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)

    monkeypatch.setattr(machine, "_CGROUP", tmp_path / "cgroup")
    monkeypatch.setattr(machine, "_CGROUPS", tmp_path / "sys")
    return write


def test_without_limits_it_is_that_of_the_machine(groups):
    physical = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    assert machine.usable_memory() == physical
    groups("0::/user\n", user__memory_dot_max="max\n")
    assert machine.usable_memory() == physical


def test_a_limit_of_the_group_or_of_one_above_it_holds(groups):
    groups(
        "0::/job/step\n", job__step__memory_dot_max="max\n", job__memory_dot_max="3000000\n",
        memory_dot_max="4000000\n",
    )  # fmt: skip
    assert machine.usable_memory() == 3_000_000


def test_in_a_container_the_path_may_be_that_of_the_host(groups):
    groups("0::/docker/0123\n", memory_dot_max="5000000\n")
    assert machine.usable_memory() == 5_000_000


def test_the_first_version(groups):
    groups(
        "5:cpu,cpuacct:/a\n4:memory:/a\n", memory__a__memory_dot_limit_in_bytes="6000000",
        memory__memory_dot_limit_in_bytes="9223372036854771712",
    )  # fmt: skip
    assert machine.usable_memory() == 6_000_000


def test_a_machine_that_does_not_tell(groups, monkeypatch):
    monkeypatch.delattr(os, "sysconf")
    assert machine.usable_memory() == 8 * 10**9
