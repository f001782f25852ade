"""What learning from many series costs, measured piece by piece, and what that predicts.

Measures on one thread: seconds per million alignments by channels, length and precision; seconds
per million rows read from Parquet; seconds per million rows of a solver's pass. Puts them together
to the time of `slts fit --method slts` and compares it with `benchmarks/large.py --json`.

    python benchmarks/cost_model.py --against bench-output/large.json --json bench-output/cost.json
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
from large import draw, write_file
from measure import describe_machine

import slts
from slts.alignment import AlignmentSettings
from slts.alignment.reductions import grouped_products, projected_similarities, similarities
from slts.estimators.memory_plan import MemoryPlan
from slts.estimators.streams import memory_bytes
from slts.execution.shelf import Shelf
from slts.learning.hinge import HingeRows
from slts.learning.part_queries import Split
from slts.learning.partitioned import rows_of_metric, rows_of_separator

_LANDMARKS, _CLASSES, _CHANNELS, _MEAN_STEPS = 100, 5, 6, 40
# Passes over the results until a metric and a separator are solved; `benchmarks/solvers.py` and
# tests see 3 to 11.
_ROUNDS = 6
_SIZES = ((3, 20, 60), (6, 20, 60), (13, 20, 60), (32, 20, 60), (6, 150, 250), (13, 150, 250))


def best_of(call: Callable[[], object], repeats: int = 3) -> float:
    """Least seconds of several calls."""
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        call()
        times.append(time.perf_counter() - start)
    return min(times)


def alignment_costs(d: int, shortest: int, longest: int, dtype: str) -> dict[str, float]:
    """Seconds of one thread for a million alignments."""
    rng = np.random.default_rng(0)
    settings = AlignmentSettings("affinity", None, normalize=True, dtype=dtype)

    def batch(count: int) -> slts.SeriesBatch:
        lengths = rng.integers(shortest, longest + 1, size=count)
        return settings.prepare(slts.as_series([rng.normal(size=(d, n)) for n in lengths]))

    landmarks = batch(_LANDMARKS)
    count = max(64, int(1e8 / (d + 4) / longest**2))
    series = batch(count)
    groups = np.zeros((_CLASSES, _LANDMARKS))
    groups[np.arange(_LANDMARKS) % _CLASSES, np.arange(_LANDMARKS)] = 1.0
    metrics = rng.normal(size=(_CLASSES, d, d))
    calls = {
        "score": lambda: similarities(series, landmarks, settings, n_jobs=1),
        "grouped": lambda: grouped_products(series, landmarks, groups, settings, n_jobs=1),
        "projected": lambda: projected_similarities(series, landmarks, metrics, settings, n_jobs=1),
    }
    pairs = count * _LANDMARKS
    return {name: best_of(call) / pairs * 1e6 for name, call in calls.items()}


def reading_cost() -> float:
    """Seconds of one thread for a million rows of six channels, read and made unit rows."""
    settings = AlignmentSettings("affinity", None, normalize=True)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "rows.parquet"
        write_file(path, 20_000)
        parts = slts.scan_series(path).parts()

        def read() -> int:
            return sum(
                settings.prepare(piece.series).n_steps
                for part in parts
                for piece in part.batches(labels=True, batch_size=4096)
            )

        rows = read()
        return best_of(read) / rows * 1e6


def solver_costs(dtype: str) -> dict[str, float]:
    """Seconds of one thread for one pass of one problem over a million series."""
    rng = np.random.default_rng(0)
    costs = {}
    for name, width in (("metric", _CHANNELS**2), ("separator", _LANDMARKS)):
        features = rng.normal(size=(50_000, width)).astype(dtype)
        labels, weights = np.sign(rng.normal(size=50_000)), np.full(50_000, 1 / 50_000)
        query = Split(rng.normal(size=width), 1e-3)
        rows = HingeRows(features, labels, weights)
        costs[name] = best_of(lambda q=query, r=rows: q.answer(r, 0)) / 50_000 * 1e6
    return costs


def file_costs() -> dict[str, float]:
    """Seconds of one thread to write a GB of results to temporary files, and to map it again."""
    block = (np.random.default_rng(0).normal(size=(4096, 500)),)
    blocks = [block] * 60
    size = sum(array.nbytes for (array,) in blocks) / 1e9
    with Shelf(0.0) as shelf:
        start = time.perf_counter()
        kept = shelf.keep(blocks)
        write = time.perf_counter() - start
        read = best_of(lambda: [float(array[:, ::8].sum()) for (array,) in kept])
    return {"write": write / size, "map": read / size}


def start_cost() -> float:
    """Seconds until a command of slts begins."""
    command = [sys.executable, "-m", "slts", "fit", "--help"]
    return best_of(lambda: subprocess.run(command, check=True, stdout=subprocess.DEVNULL))


def constant_cost(n_tuning: int, n_threads: int) -> float:
    """Seconds for what does not grow: the sample, its alignments, parameters and calibration."""
    values, lengths, labels = draw(np.random.default_rng(0), n_tuning)
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    batch = slts.SeriesBatch(values, offsets)
    model = slts.SLTSClassifier(_LANDMARKS, gamma=1e-3, lam=0.1, n_jobs=n_threads, random_state=0)
    return best_of(lambda: model.fit(batch, labels), repeats=1)


def growing_costs(
    m: float,
    alignment: dict[str, float],
    reading: float,
    solving: dict[str, float],
    files: dict[str, float],
    item: int,
) -> dict[str, float]:
    """Seconds of one thread that grow with the number of series, by what they are for."""
    gigabytes = m * item * _CLASSES * (_CHANNELS**2 + _LANDMARKS) / 1e9
    return {
        "temporary files": gigabytes * (files["write"] + _ROUNDS * files["map"]),
        "reading": m / 1e6 * 3 * _MEAN_STEPS * reading,
        "aligning": m / 1e6 * _LANDMARKS * (alignment["grouped"] + alignment["projected"]),
        "solving": m / 1e6 * _ROUNDS * _CLASSES * sum(solving.values()),
    }


def plan(
    alignment: dict[str, float], reading: float, solving: dict[str, float], m: float = 1e8
) -> dict[str, object]:
    """What 10^8 series need on a cluster, by calculation; results in float32, in memory."""
    none = {"write": 0.0, "map": 0.0}
    seconds = growing_costs(m, alignment, reading, solving, none, 4)
    sums, similar = 4 * _CLASSES * _CHANNELS**2, 4 * _CLASSES * _LANDMARKS
    n_numbers = _CHANNELS**2
    near = n_numbers * rows_of_metric(int(m), n_numbers, np.inf)
    near += _LANDMARKS * rows_of_separator(int(m), _LANDMARKS, np.inf)
    cores = 64
    return {
        "series": m,
        "Parquet GB": m * _MEAN_STEPS * (8 * _CHANNELS + 10) / 1e9,
        "core hours": {name: value / 3600 for name, value in seconds.items()},
        f"hours on {cores} cores": sum(seconds.values()) / 3600 / cores,
        "GB held by the workers, metrics then separators": [m * sums / 1e9, m * similar / 1e9],
        "GB to the coordinator": {
            "digests of identifiers": 8 * m / 1e9,
            "rows near the margin, every problem": 8 * near / 1e9,
        },
        "MB to every worker": _LANDMARKS * _MEAN_STEPS * _CHANNELS * 8 / 1e6,
    }  # fmt: skip


def main() -> None:
    """Measure, predict, compare."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--against", type=Path, help="JSON of benchmarks/large.py")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    table = []
    print("seconds of one thread per million alignments")
    print(f"{'d':>4}{'steps':>10}{'dtype':>9}{'score':>8}{'grouped':>9}{'projected':>11}")
    for d, shortest, longest in _SIZES:
        for dtype in ("float64", "float32"):
            found = alignment_costs(d, shortest, longest, dtype)
            table.append({"d": d, "steps": [shortest, longest], "dtype": dtype, **found})
            print(
                f"{d:>4}{f'{shortest}-{longest}':>10}{dtype:>9}{found['score']:>8.2f}"
                f"{found['grouped']:>9.2f}{found['projected']:>11.2f}",
                flush=True,
            )
    reading = reading_cost()
    solving = {dtype: solver_costs(dtype) for dtype in ("float64", "float32")}
    print(f"seconds of one thread per million rows read: {reading:.2f}")
    print(f"seconds of one thread per million series, problem and pass of a solver: {solving}")
    files, start = file_costs(), start_cost()
    print(f"seconds of one thread per GB of temporary files: {files}; start: {start:.1f} s")
    result = {
        "files": files,
        "start": start,
        "machine": describe_machine(),
        "alignments": table,
        "reading": reading,
        "solving": solving,
    }
    costs = {
        dtype: next(row for row in table if row["d"] == _CHANNELS and row["dtype"] == dtype)
        for dtype in ("float64", "float32")
    }
    result["plan"] = plan(costs["float32"], reading, solving["float32"])
    print(json.dumps(result["plan"], indent=1))
    if options.against:
        measured = json.loads(options.against.read_text(encoding="utf-8"))
        limit = memory_bytes(measured["options"]["memory_limit"], "fit")
        rows = [row for row in measured["rows"] if row["command"] == "fit"]
        result["predictions"] = predictions = []
        for row in rows:
            m = row["series"]
            memory = MemoryPlan.make(
                limit=limit, n_series=m, n_steps=m * _MEAN_STEPS, n_channels=_CHANNELS,
                n_rows=_CHANNELS, n_classes=_CLASSES, n_landmarks=_LANDMARKS,
                n_sample=min(m, 10_000), sample=min(m, 10_000) * _MEAN_STEPS * _CHANNELS * 8.0,
                item=8, learns_metric=True, n_workers=options.threads, remote=False,
            )  # fmt: skip
            pieces = growing_costs(m, costs["float64"], reading, solving["float64"], files, 8)
            constant = start + constant_cost(memory.n_tuning, options.threads)
            seconds = constant + sum(pieces.values()) / options.threads
            predictions.append({"series": m, "predicted": seconds, "measured": row["seconds"]})
            print(
                f"fit of {m:>9,} series: predicted {seconds:.0f} s, measured {row['seconds']:.0f} s"
            )
    if options.json:
        options.json.parent.mkdir(parents=True, exist_ok=True)
        options.json.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
