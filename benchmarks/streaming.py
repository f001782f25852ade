"""Peak memory and speed of `slts predict` on Parquet files of growing size.

`python benchmarks/streaming.py` writes files of 2,000 and 200,000 series (long form, 6 channels, 20
to 60 steps) into a temporary folder, trains a model on some of the kind, and predicts each file in
a process of its own. The peak is that of the whole process, Python and libraries included.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import slts

_CHANNELS, _CLASSES = 6, 5
_AT_A_TIME = 2_000
_PROGRAM = """
import sys
from slts.cli import main
code = main(sys.argv[1:])
for line in open("/proc/self/status"):
    if line.startswith("VmHWM"):
        print("peak_kb", line.split()[1])
sys.exit(code)
"""


def draw(rng: np.random.Generator, count: int) -> tuple[list[np.ndarray], np.ndarray]:
    """Series of five classes: noise around curves of different frequency."""
    labels = rng.integers(_CLASSES, size=count)
    phases = np.arange(_CHANNELS)[:, np.newaxis]
    series = []
    for label in labels:
        steps = np.linspace(0.0, 1.0, rng.integers(20, 61))
        curve = np.sin(2 * np.pi * (1 + label) * steps + phases)
        series.append(curve + 0.5 * rng.normal(size=(_CHANNELS, len(steps))))
    return series, labels


def write_file(path: Path, count: int, *, seed: int = 0) -> None:
    """Write a long Parquet file piece by piece; its row groups end anywhere."""
    rng = np.random.default_rng(seed)
    writer = None
    for start in range(0, count, _AT_A_TIME):
        series, labels = draw(rng, min(_AT_A_TIME, count - start))
        lengths = [x.shape[1] for x in series]
        values = np.concatenate(series, axis=1)
        columns = {
            "series": np.repeat(np.arange(start, start + len(series)), lengths),
            "t": np.concatenate([np.arange(n) for n in lengths]),
            "label": np.repeat(labels, lengths),
            **{f"c{c}": values[c] for c in range(_CHANNELS)},
        }
        table = pa.table(columns)
        writer = writer or pq.ParquetWriter(path, table.schema)
        writer.write_table(table, row_group_size=50_001)
    if writer is not None:
        writer.close()


def predict(model: Path, data: Path, out: Path) -> dict[str, float]:
    """Run `slts predict` and return its peak memory and time."""
    command = [sys.executable, "-c", _PROGRAM, "predict", str(model), str(data), "--out", str(out)]
    start = time.perf_counter()
    done = subprocess.run([*command, "--quiet"], capture_output=True, text=True, check=True)
    seconds = time.perf_counter() - start
    peak = next(line for line in done.stdout.split("\n") if line.startswith("peak_kb"))
    return {"peak_mb": int(peak.split()[1]) / 1000, "seconds": seconds}


def main() -> None:
    """Print a row per size; write JSON if asked."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sizes", type=int, nargs="+", default=[2_000, 200_000])
    parser.add_argument("--json", type=Path, help="write the results there")
    options = parser.parse_args()
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        model = Path(folder) / "model.slts"
        series, labels = draw(np.random.default_rng(1), 300)
        named = slts.as_series(series)
        named = slts.SeriesBatch(named.values, named.offsets, [f"c{c}" for c in range(_CHANNELS)])
        slts.save(slts.SLTSClassifier(random_state=0).fit(named, labels), model)
        print(f"{'series':>10}{'file MB':>10}{'peak MB':>10}{'seconds':>10}{'series/s':>10}")
        for size in options.sizes:
            data = Path(folder) / f"{size}.parquet"
            write_file(data, size)
            found = predict(model, data, Path(folder) / "predictions.csv")
            row = {"series": size, "file_mb": data.stat().st_size / 1e6, **found}
            rows.append(row)
            print(
                f"{size:>10,}{row['file_mb']:>10.1f}{row['peak_mb']:>10.1f}"
                f"{row['seconds']:>10.1f}{size / row['seconds']:>10,.0f}",
                flush=True,
            )
            data.unlink()
    if options.json:
        options.json.parent.mkdir(parents=True, exist_ok=True)
        options.json.write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
