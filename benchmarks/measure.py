"""Timing, results in files, and an anonymous description of the machine."""

from __future__ import annotations

import json
import os
import platform
import subprocess
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path

from slts.alignment.cpu import available_targets

Call = Callable[[], object]
_SLOW = 5.0


@dataclass(frozen=True, slots=True)
class Contender:
    """A call and its number of grid cells, by which times are divided."""

    call: Call
    cells: float


def best_per_cell(
    contenders: Mapping[str, Contender], *, repeats: int, least_s: float = 0.0
) -> dict[str, float]:
    """Best time per cell in seconds, over `repeats` rounds in which every contender has a turn.

    Turns alternate, so that a slow period of the machine affects all contenders. A turn repeats its
    call until it takes `least_s`. A first call warms up caches and compilers. Contenders that take
    longer than `_SLOW` seconds have one turn only.
    """
    loops, best = {}, {}
    for name, contender in contenders.items():
        took = seconds_of(contender.call)
        best[name] = took / contender.cells
        loops[name] = max(1, round(least_s / max(took, 1e-7))) if took < _SLOW else 0
    for _ in range(repeats):
        for name, contender in contenders.items():
            if loops[name]:
                took = _time(contender.call, loops[name])
                best[name] = min(best[name], took / loops[name] / contender.cells)
    return best


def seconds_of(call: Call) -> float:
    """Time of one call, after another call to warm up."""
    call()
    return _time(call, 1)


def best_of(call: Call, repeats: int = 3) -> float:
    """Smallest time of several calls, in seconds."""
    return min(_time(call, 1) for _ in range(repeats))


def _time(call: Call, loops: int) -> float:
    start = time.perf_counter()
    for _ in range(loops):
        call()
    return time.perf_counter() - start


def write_json(path: Path | None, content: object) -> None:
    """Write results to a file; do nothing without a path."""
    if path is not None:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(content, indent=1, default=str) + "\n", encoding="utf-8")


def describe_machine() -> dict[str, object]:
    """Processor, cores, versions and instruction sets."""
    return {
        "cpu": _cpu_model(),
        "cores": usable_cores(),
        "system": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
        "numpy": version("numpy"),
        "slts_isa": [target.name for target in available_targets()],
        "commit": _commit(),
    }


def usable_cores() -> int:
    """Number of cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def load() -> float | None:
    """Load average of the last minute."""
    return round(os.getloadavg()[0], 2) if hasattr(os, "getloadavg") else None


def _cpu_model() -> str:
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as file:
            for line in file:
                if line.startswith("model name"):
                    return line.partition(":")[2].strip()
    except OSError:
        pass
    return platform.processor() or platform.machine()


def _commit() -> str | None:
    here = os.path.dirname(os.path.abspath(__file__))
    try:
        done = subprocess.run(
            ["git", "describe", "--always", "--dirty", "--abbrev=40"],
            cwd=here, capture_output=True, text=True, check=True,
        )  # fmt: skip
    except (OSError, subprocess.CalledProcessError):
        return None
    return done.stdout.strip()
