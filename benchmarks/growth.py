"""How the cost of fit and predict grows with series, steps, channels and classes.

Synthetic series, one axis at a time. Every point is a separate process with one thread; its time
is that of the processor, which depends little on other load. Compilation is left out. A classifier
leaves an axis at the first point beyond the limits of time or memory. With a figure, the times in
the JSON file are drawn (extra `plots`).

    python benchmarks/growth.py --json bench-output/growth.json --figure docs/growth.png
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
from inputs import waves
from measure import describe_machine, write_json

import slts

# The sizes that are not on the axis.
_USUAL = {"series": 1000, "steps": 40, "channels": 3, "classes": 5}
_AXES = {
    "series": [10**3, 10**4, 10**5, 10**6],
    "steps": [10, 100, 1000, 10_000],
    "channels": [1, 3, 10, 30, 100],
    "classes": [2, 5, 20, 100, 500],
}
_CLASSIFIERS = ("LocalSLTSClassifier", "SLTSClassifier", "MiniRocket")
# Series of each class, at least.
_PER_CLASS = 10
_PREDICTED = 500


def model_of(name: str) -> Any:
    """Return a classifier with its defaults and one thread."""
    if name == "MiniRocket":
        from aeon.classification.convolution_based import MiniRocketClassifier

        return MiniRocketClassifier(n_jobs=1, random_state=0)
    return getattr(slts, name)(n_jobs=1, random_state=0)


def measure(name: str, sizes: dict[str, int]) -> dict[str, float]:
    """Return the seconds of fit and of the prediction of some series."""
    rng = np.random.default_rng(1)
    few = {**_USUAL, "channels": sizes["channels"]}
    X, y = waves(rng, few, 60)
    # Compiles, and starts what starts once.
    model_of(name).fit(X, y).predict(X)
    X, y = waves(rng, sizes, max(sizes["series"], _PER_CLASS * sizes["classes"]))
    X_test, y_test = waves(rng, sizes, _PREDICTED)
    model = model_of(name)
    begin = time.process_time()
    model.fit(X, y)
    fitted = time.process_time()
    labels = model.predict(X_test)
    end = time.process_time()
    accuracy = float(np.mean(labels == y_test))
    return {"fit": fitted - begin, "predict": end - fitted, "accuracy": accuracy}


def run(name: str, axis: str, size: int, seconds: int, memory: float) -> dict[str, float] | None:
    """Measure in a separate process; None if it needs more time or memory."""
    limits = ["--seconds", str(seconds), "--memory", str(memory)]
    one_thread = dict.fromkeys(
        ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS"), "1"
    )
    done = subprocess.run(
        [sys.executable, __file__, *limits, "--one", name, axis, str(size)],
        capture_output=True, text=True, env=os.environ | one_thread,
    )  # fmt: skip
    if done.returncode < 0 or "MemoryError" in done.stderr:
        return None
    if done.returncode:
        raise SystemExit(done.stderr)
    seconds_by_call: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return seconds_by_call


def figure(report: dict[str, Any], path: Path) -> None:
    """Draw one panel for each axis."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    plots, panels = plt.subplots(1, len(_AXES), figsize=(13, 3.6), sharey=True)
    for panel, axis in zip(panels, _AXES, strict=True):
        for color, name in enumerate(_CLASSIFIERS):
            rows = report.get(axis, {}).get(name, {})
            sizes = sorted(rows, key=int)
            for kind, style in (("fit", "o-"), ("predict", "s:")):
                times = [rows[size][kind] for size in sizes]
                panel.plot([int(s) for s in sizes], times, style, color=f"C{color}", markersize=4,
                           label=f"{name}, {kind}")  # fmt: skip
        panel.set(xscale="log", yscale="log", xlabel=axis)
        panel.grid(alpha=0.3)
    panels[0].set_ylabel("seconds of one core")
    handles, labels = panels[0].get_legend_handles_labels()
    plots.legend(handles, labels, loc="lower center", ncols=len(_CLASSIFIERS), frameon=False)
    plots.tight_layout(rect=(0, 0.14, 1, 1))
    plots.savefig(path, dpi=110)


def main() -> None:
    """Measure what is not in the file yet, print one line per point, and draw."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--axes", nargs="+", default=list(_AXES), choices=list(_AXES))
    parser.add_argument("--classifiers", nargs="+", default=list(_CLASSIFIERS))
    parser.add_argument("--processes", type=int, default=1, help="points that run at a time")
    parser.add_argument("--seconds", type=int, default=60, help="most time of one point")
    parser.add_argument("--memory", type=float, default=8e9, help="most memory of one point")
    parser.add_argument("--json", type=Path, help="add the results to this file")
    parser.add_argument("--figure", type=Path, help="draw the results")
    parser.add_argument("--one", nargs=3, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one is not None:
        resource.setrlimit(resource.RLIMIT_CPU, (options.seconds, options.seconds + 1))
        resource.setrlimit(resource.RLIMIT_AS, (int(options.memory), int(options.memory)))
        name, axis, size = options.one
        print(json.dumps(measure(name, {**_USUAL, axis: int(size)})))
        return
    report: dict[str, Any] = {"machine": describe_machine()}
    if options.json is not None and options.json.exists():
        report = json.loads(options.json.read_text(encoding="utf-8"))
    print(f"{'axis':<10}{'size':>9} {'classifier':<22}{'fit':>9}{'predict':>9}{'accuracy':>10}")

    def climb(axis: str, name: str) -> None:
        rows = report.setdefault(axis, {}).setdefault(name, {})
        for size in _AXES[axis]:
            if str(size) in rows:
                continue
            row = run(name, axis, size, options.seconds, options.memory)
            if row is None:
                print(f"{axis:<10}{size:>9} {name:<22}   beyond the limits", flush=True)
                break
            rows[str(size)] = row
            print(
                f"{axis:<10}{size:>9} {name:<22}{row['fit']:>9.2f}{row['predict']:>9.2f}"
                f"{row['accuracy']:>10.3f}",
                flush=True,
            )
            write_json(options.json, report)

    chains = [(axis, name) for axis in options.axes for name in options.classifiers]
    with ThreadPoolExecutor(options.processes) as pool:
        list(pool.map(lambda chain: climb(*chain), chains))
    if options.figure is not None:
        figure(report, options.figure)


if __name__ == "__main__":
    main()
