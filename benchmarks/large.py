"""Time and peak memory of `slts fit` and `slts predict` on Parquet files larger than memory allows.

Writes files of growing size (long form, 6 channels, 20 to 60 steps, 5 classes; 2,000,000 series are
4.8 GB), trains on each in a process of its own under a memory limit, and predicts the same file.
The peak is that of the whole process, Python and libraries included.

    python benchmarks/large.py --sizes 20000 200000 2000000 --folder /tmp/large
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
from measure import describe_machine

_CHANNELS, _CLASSES = 6, 5
_AT_A_TIME = 5_000
_PROGRAM = """
import sys
from slts.cli import main
code = main(sys.argv[1:])
for line in open("/proc/self/status"):
    if line.startswith("VmHWM"):
        print("peak_kb", line.split()[1])
sys.exit(code)
"""


def draw(rng: np.random.Generator, count: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Rows (steps, channels), lengths and labels: noise around curves of different frequency."""
    labels = rng.integers(_CLASSES, size=count)
    lengths = rng.integers(20, 61, size=count)
    ends = np.cumsum(lengths)
    step = np.arange(ends[-1]) - np.repeat(ends - lengths, lengths)
    angle = 2 * np.pi * step / np.repeat(lengths - 1, lengths) * np.repeat(1 + labels, lengths)
    curves = np.sin(angle[:, np.newaxis] + np.arange(_CHANNELS))
    return curves + 0.5 * rng.normal(size=curves.shape), lengths, labels


def write_file(path: Path, count: int, *, seed: int = 0) -> None:
    """Write a long Parquet file piece by piece; its row groups end anywhere."""
    rng = np.random.default_rng(seed)
    fresh, writer = path.with_suffix(".part"), None
    for start in range(0, count, _AT_A_TIME):
        values, lengths, labels = draw(rng, min(_AT_A_TIME, count - start))
        numbers = np.arange(start, start + len(lengths))
        table = pa.table(
            {
                "series": np.repeat(numbers, lengths),
                "t": np.concatenate([np.arange(n) for n in lengths]),
                "label": np.repeat(labels, lengths),
                **{f"c{c}": values[:, c] for c in range(_CHANNELS)},
            }
        )
        writer = writer or pq.ParquetWriter(fresh, table.schema)
        writer.write_table(table, row_group_size=150_001)
    if writer is not None:
        writer.close()
    fresh.rename(path)


def run(*arguments: str) -> dict[str, float]:
    """Run a command of slts and return its peak memory and time; what it says is shown."""
    command = [sys.executable, "-c", _PROGRAM, *arguments]
    start = time.perf_counter()
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    seconds = time.perf_counter() - start
    peak = next(line for line in done.stdout.split("\n") if line.startswith("peak_kb"))
    return {"peak_mb": int(peak.split()[1]) / 1000, "seconds": seconds}


def main() -> None:
    """Print a row per size and command; write JSON if asked."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sizes", type=int, nargs="+", default=[2_000, 20_000])
    parser.add_argument("--method", default="slts")
    parser.add_argument("--param", nargs="*", default=["gamma=0.001", "lam=0.1"])
    parser.add_argument("--memory-limit", default="500MB")
    parser.add_argument("--folder", type=Path, help="keep the files there, and take those there")
    parser.add_argument("--json", type=Path, help="write the results there")
    options = parser.parse_args()
    rows = []
    with tempfile.TemporaryDirectory() as scratch:
        folder = options.folder or Path(scratch)
        folder.mkdir(parents=True, exist_ok=True)
        test = folder / "test.parquet"
        if not test.exists():
            write_file(test, 5_000, seed=1)
        print(f"{'series':>10}{'file MB':>9}  command{'peak MB':>9}{'seconds':>9}{'series/s':>10}")
        for size in options.sizes:
            data, model = folder / f"{size}.parquet", Path(scratch) / "model.slts"
            if not data.exists():
                write_file(data, size)
            commands = {
                "fit": [
                    "fit", str(data), "--model", str(model), "--method", options.method,
                    "--memory-limit", options.memory_limit, "--test", str(test),
                    *(text for param in options.param for text in ("--param", param)),
                ],
                "predict": [
                    "predict", str(model), str(data),
                    "--out", str(Path(scratch) / "predictions.parquet"),
                ],
            }  # fmt: skip
            for name, arguments in commands.items():
                found = run(*arguments)
                megabytes = data.stat().st_size / 1e6
                rows.append({"command": name, "series": size, "file_mb": megabytes, **found})
                print(
                    f"{size:>10,}{megabytes:>9.0f}  {name:<7}{found['peak_mb']:>9.0f}"
                    f"{found['seconds']:>9.1f}{size / found['seconds']:>10,.0f}",
                    flush=True,
                )
    if options.json:
        options.json.parent.mkdir(parents=True, exist_ok=True)
        content = {"machine": describe_machine(), "options": vars(options), "rows": rows}
        text = json.dumps(content, indent=1, default=str)
        options.json.write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
