"""Costs of alignments and of reading, on one thread.

Measures seconds per million alignments by channels, length and precision, and seconds per million
rows that are read from Parquet.

    python benchmarks/cost_model.py --json bench-output/cost.json
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from inputs import N_CLASSES, write_parquet
from measure import best_of, describe_machine, write_json

import slts
from slts.alignment import Aligner, AlignmentSettings
from slts.execution import ThreadRunner
from slts.training.first_pass import count_and_sample
from slts.training.sampling import SampleSize

_LANDMARKS = 100
_SIZES = ((3, 20, 60), (6, 20, 60), (13, 20, 60), (32, 20, 60), (6, 150, 250), (13, 150, 250))


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


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", type=Path, help="write the results to this file")
    options = parser.parse_args()
    table: list[dict[str, Any]] = []
    print("seconds of one thread per million alignments")
    print(f"{'d':>4}{'steps':>10}{'dtype':>9}{'score':>8}{'grouped':>9}{'projected':>11}")
    for d, shortest, longest in _SIZES:
        for dtype in ("float64", "float32"):
            costs = alignment_costs(d, shortest, longest, dtype)
            table.append({"d": d, "steps": [shortest, longest], "dtype": dtype, **costs})
            print(
                f"{d:>4}{f'{shortest}-{longest}':>10}{dtype:>9}{costs['score']:>8.2f}"
                f"{costs['grouped']:>9.2f}{costs['projected']:>11.2f}",
                flush=True,
            )
    reading = reading_costs()
    print(f"seconds of one thread per million rows read: {reading}")
    result = {"machine": describe_machine(), "alignments": table, "reading": reading}
    write_json(options.json, result)


if __name__ == "__main__":
    main()
