"""Costs of learning from many series, measured step by step, and the times they predict.

Measures on one thread: seconds per million alignments by channels, length and precision; seconds
per million rows read from Parquet; seconds per million rows of one pass of a solver; seconds per GB
of temporary files. Predicts from them the time of `slts fit --method slts`, and compares it with
the results of `benchmarks/large.py --json`.

    python benchmarks/cost_model.py --against bench-output/large.json --json bench-output/cost.json
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from inputs import N_CLASSES, draw, write_parquet
from measure import best_of, describe_machine, write_json

import slts
from slts.alignment import Aligner, AlignmentSettings
from slts.execution import ThreadRunner
from slts.execution.memory import Spill
from slts.learning.hinge import HingeExamples
from slts.quantities import parse_bytes
from slts.training.first_pass import count_and_sample
from slts.training.memory_plan import MOST_TUNING, LandmarkWork, MemoryPlan
from slts.training.sampling import SampleSize

_LANDMARKS, _CHANNELS, _MEAN_STEPS = 100, 6, 40
# Passes over the results until a metric or a separator is solved; tests see 3 to 11.
_ROUNDS = 6
_SIZES = ((3, 20, 60), (6, 20, 60), (13, 20, 60), (32, 20, 60), (6, 150, 250), (13, 150, 250))
_ITEMS = {"float64": 8, "float32": 4}


@dataclass(frozen=True)
class Costs:
    """Seconds of one thread, for one precision.

    Attributes
    ----------
    alignment
        Per million alignments, by reduction.
    reading
        Per million rows, in the first pass and in later ones.
    solving
        Per million series, problem and pass, by solver.
    files
        Per GB of temporary files, to write and to read.
    """

    alignment: dict[str, float]
    reading: dict[str, float]
    solving: dict[str, float]
    files: dict[str, float]

    def seconds(self, m: float, item: int) -> dict[str, float]:
        """Return the seconds that grow with the number of series, by purpose."""
        gigabytes = m * item * N_CLASSES * (_CHANNELS**2 + _LANDMARKS) / 1e9
        align = self.alignment["grouped"] + self.alignment["projected"]
        return {
            "temporary files": gigabytes * (self.files["write"] + _ROUNDS * self.files["read"]),
            "reading": m / 1e6 * _MEAN_STEPS * (self.reading["first"] + 2 * self.reading["later"]),
            "aligning": m / 1e6 * _LANDMARKS * align,
            "solving": m / 1e6 * _ROUNDS * N_CLASSES * sum(self.solving.values()),
        }


def alignment_costs(d: int, shortest: int, longest: int, dtype: str) -> dict[str, float]:
    """Seconds per million alignments."""
    rng = np.random.default_rng(0)
    settings = AlignmentSettings("affinity", None, normalize=True, dtype=dtype)

    def batch(count: int) -> slts.SeriesBatch:
        lengths = rng.integers(shortest, longest + 1, size=count)
        return settings.prepare(slts.as_series([rng.normal(size=(d, n)) for n in lengths]))

    aligner = Aligner(batch(_LANDMARKS), settings, n_jobs=1)
    count = max(64, int(1e8 / (d + 4) / longest**2))
    series = batch(count)
    groups = np.eye(N_CLASSES)[:, np.arange(_LANDMARKS) % N_CLASSES]
    metrics = rng.normal(size=(N_CLASSES, d, d))
    calls = {
        "score": lambda: aligner.similarities(series),
        "grouped": lambda: aligner.grouped(series, groups),
        "projected": lambda: aligner.projected(series, metrics),
    }
    return {name: best_of(call) / (count * _LANDMARKS) * 1e6 for name, call in calls.items()}


def reading_costs() -> dict[str, float]:
    """Seconds per million rows of six channels: counted and sampled, or read and normalised."""
    settings = AlignmentSettings("affinity", None, normalize=True)
    with tempfile.TemporaryDirectory() as folder:
        # A smaller file would be read whole.
        scan = slts.scan_series(write_parquet(Path(folder) / "rows.parquet", 40_000), label="label")

        def read() -> int:
            return sum(
                settings.prepare(piece.series).n_steps
                for part in scan.parts()
                for piece in part.batches(labels=True, batch_size=4096)
            )

        sample = SampleSize(np.inf, 2**26)
        passes = {
            "first": lambda: count_and_sample(scan, ThreadRunner(1), sample, seed=0),
            "later": read,
        }
        return {name: best_of(call) / read() * 1e6 for name, call in passes.items()}


def solver_costs(dtype: str) -> dict[str, float]:
    """Seconds per million series of one pass of one problem: margins, and a sum of rows."""
    rng, n = np.random.default_rng(0), 50_000
    costs = {}

    def one_pass(rows: HingeExamples, coef: np.ndarray, below: np.ndarray) -> object:
        return rows.margins(coef), rows.combine(below)

    for name, width in (("metric", _CHANNELS**2), ("separator", _LANDMARKS)):
        features, coef = rng.normal(size=(n, width)).astype(dtype), rng.normal(size=width)
        rows = HingeExamples(features, np.sign(rng.normal(size=n)), np.full(n, 1 / n))
        below = (rows.margins(coef) < 1.0) / n
        costs[name] = best_of(partial(one_pass, rows, coef, below)) / n
    return {name: 1e6 * seconds for name, seconds in costs.items()}


def file_costs() -> dict[str, float]:
    """Seconds per GB of results, to write them to temporary files and to read them again."""
    blocks = [(np.random.default_rng(0).normal(size=(4096, 500)),)] * 60
    gigabytes = sum(array.nbytes for (array,) in blocks) / 1e9
    with closing(Spill(0.0)) as spill:
        start = time.perf_counter()
        stored = spill.store(blocks)
        write = time.perf_counter() - start
        read = best_of(lambda: [float(array[:, ::8].sum()) for (array,) in stored])
    return {"write": write / gigabytes, "read": read / gigabytes}


def start_cost() -> float:
    """Seconds until a command of slts begins."""
    command = [sys.executable, "-m", "slts", "fit", "--help"]
    return best_of(lambda: subprocess.run(command, check=True, stdout=subprocess.DEVNULL))


def sample_cost(n_tuning: int, n_threads: int) -> float:
    """Seconds of what does not grow: alignments of the sample, parameters and calibration."""
    series, labels = draw(np.random.default_rng(0), n_tuning)
    model = slts.SLTSClassifier(_LANDMARKS, gamma=1e-3, lam=0.1, n_jobs=n_threads, random_state=0)
    return best_of(lambda: model.fit(series, labels), repeats=1)


def landmark_work(m: int, item: int) -> LandmarkWork:
    """Return the numbers that decide how much memory `m` series need."""
    n_sample = min(m, MOST_TUNING)
    return LandmarkWork(
        n_series=m, n_steps=m * _MEAN_STEPS, n_channels=_CHANNELS, row_width=_CHANNELS,
        n_classes=N_CLASSES, n_landmarks=_LANDMARKS, n_sample=n_sample, n_extra=0,
        sample_bytes=8.0 * n_sample * _MEAN_STEPS * _CHANNELS, complete=n_sample == m,
        item=item, learns_metric=True,
    )  # fmt: skip


def cluster_plan(costs: Costs, m: int = 10**8, cores: int = 64) -> dict[str, object]:
    """Calculate what many series need on a cluster; results in float32, in memory."""
    seconds = costs.seconds(m, 4)
    del seconds["temporary files"]
    numbers = {"metrics": N_CLASSES * _CHANNELS**2, "separators": N_CLASSES * _LANDMARKS}
    return {
        "series": m,
        "Parquet GB": m * _MEAN_STEPS * (8 * _CHANNELS + 10) / 1e9,
        "core hours": {name: value / 3600 for name, value in seconds.items()},
        f"hours on {cores} cores": sum(seconds.values()) / 3600 / cores,
        "GB on the workers": {name: 4 * m * count / 1e9 for name, count in numbers.items()},
        "GB to the coordinator": {
            "digests of identifiers": 8 * m / 1e9,
            "rows near the margin, for each problem": landmark_work(m, 4).row_bytes(np.inf) / 1e9,
        },
        "MB to every worker": _LANDMARKS * _MEAN_STEPS * _CHANNELS * 8 / 1e6,
    }


def predict(m: int, limit: int, costs: Costs, start: float, n_threads: int) -> float:
    """Predict the seconds of `slts fit` for `m` series in float64."""
    plan = MemoryPlan.make(landmark_work(m, 8), limit, ThreadRunner(n_threads))
    if plan is None:
        return start + sample_cost(m, n_threads)
    return (
        start
        + sample_cost(plan.n_tuning, n_threads)
        + sum(costs.seconds(m, 8).values()) / n_threads
    )


def main() -> None:
    """Measure, predict and compare."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--against", type=Path, help="results of benchmarks/large.py --json")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--json", type=Path, help="write the results to this file")
    options = parser.parse_args()
    table: list[dict[str, Any]] = []
    print("seconds of one thread per million alignments")
    print(f"{'d':>4}{'steps':>10}{'dtype':>9}{'score':>8}{'grouped':>9}{'projected':>11}")
    for d, shortest, longest in _SIZES:
        for dtype in _ITEMS:
            found = alignment_costs(d, shortest, longest, dtype)
            table.append({"d": d, "steps": [shortest, longest], "dtype": dtype, **found})
            print(
                f"{d:>4}{f'{shortest}-{longest}':>10}{dtype:>9}{found['score']:>8.2f}"
                f"{found['grouped']:>9.2f}{found['projected']:>11.2f}",
                flush=True,
            )
    reading, files, start = reading_costs(), file_costs(), start_cost()
    costs = {}
    for dtype in _ITEMS:
        alignment = next(r for r in table if r["d"] == _CHANNELS and r["dtype"] == dtype)
        costs[dtype] = Costs(alignment, reading, solver_costs(dtype), files)
    solving = {dtype: of_dtype.solving for dtype, of_dtype in costs.items()}
    result = {
        "machine": describe_machine(), "alignments": table, "reading": reading,
        "solving": solving, "files": files, "start": start, "plan": cluster_plan(costs["float32"]),
    }  # fmt: skip
    print(f"seconds of one thread per million rows read: {reading}")
    print(f"seconds of one thread per million series, problem and pass of a solver: {solving}")
    print(f"seconds of one thread per GB of temporary files: {files}; start: {start:.1f} s")
    print(json.dumps(result["plan"], indent=1))
    if options.against:
        measured = json.loads(options.against.read_text(encoding="utf-8"))
        limit = parse_bytes(measured["options"]["memory_limit"])
        result["predictions"] = predictions = []
        for row in (row for row in measured["rows"] if row["command"] == "fit"):
            m, seconds = row["series"], row["seconds"]
            predicted = predict(m, limit, costs["float64"], start, options.threads)
            predictions.append({"series": m, "predicted": predicted, "measured": seconds})
            print(f"fit of {m:>9,} series: predicted {predicted:.0f} s, measured {seconds:.0f} s")
    write_json(options.json, result)


if __name__ == "__main__":
    main()
