"""Time and peak memory of `slts fit` and `slts predict` on Parquet files larger than the memory.

Writes files of growing size (long form, 6 channels, 20 to 60 steps, 5 classes; 2,000,000 series are
4.8 GB), trains on each in a separate process under a memory limit, and predicts the same file. The
peak is that of the whole process, Python and libraries included (Linux only). On a busy machine,
compare seconds of the processor.

    python benchmarks/large.py --sizes 20000 200000 2000000 --folder /tmp/large
    python benchmarks/large.py --method slts --param gamma=0.001 lam=0.1
"""

from __future__ import annotations

import argparse
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from inputs import write_parquet
from measure import describe_machine, write_json

_PROGRAM = """
import sys
from slts.cli import main
code = main(sys.argv[1:])
for line in open("/proc/self/status"):
    if line.startswith("VmHWM"):
        print("peak_kb", line.split()[1])
sys.exit(code)
"""


def run(*arguments: str) -> dict[str, float]:
    """Run a command of slts; return its peak memory, its time and that of the processor."""
    start, before = time.perf_counter(), _processor_seconds()
    done = subprocess.run(
        [sys.executable, "-c", _PROGRAM, *arguments], stdout=subprocess.PIPE, text=True, check=True
    )
    seconds = time.perf_counter() - start
    peak = next(line for line in done.stdout.split("\n") if line.startswith("peak_kb"))
    processor = _processor_seconds() - before
    return {
        "peak_mb": int(peak.split()[1]) / 1000,
        "seconds": seconds,
        "processor_seconds": processor,
    }


def _processor_seconds() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def main() -> None:
    """Print one line per size and command."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sizes", type=int, nargs="+", default=[2_000, 20_000])
    parser.add_argument("--method", default="local")
    parser.add_argument("--param", nargs="*", default=[])
    parser.add_argument("--memory-limit", default="1GB")
    parser.add_argument("--folder", type=Path, help="keep the data here, and use data that is here")
    parser.add_argument("--json", type=Path, help="write the results to this file")
    options = parser.parse_args()
    rows = []
    with tempfile.TemporaryDirectory() as scratch:
        folder = options.folder or Path(scratch)
        model, out = f"{scratch}/model.slts", f"{scratch}/predictions.parquet"
        test = write_parquet(folder / "test.parquet", 5_000, seed=1)
        print(f"{'series':>10}{'file MB':>9}  command{'peak MB':>9}{'seconds':>9}{'processor':>11}")
        for size in options.sizes:
            data = write_parquet(folder / f"{size}.parquet", size)
            megabytes = data.stat().st_size / 1e6
            commands = {
                "fit": [
                    "fit", str(data), "--model", model, "--method", options.method,
                    "--memory-limit", options.memory_limit, "--test", str(test),
                    *(text for param in options.param for text in ("--param", param)),
                ],
                "predict": ["predict", model, str(data), "--out", out],
            }  # fmt: skip
            for name, arguments in commands.items():
                used = run(*arguments)
                rows.append({"command": name, "series": size, "file_mb": megabytes, **used})
                print(
                    f"{size:>10,}{megabytes:>9.0f}  {name:<7}{used['peak_mb']:>9.0f}"
                    f"{used['seconds']:>9.1f}{used['processor_seconds']:>11.1f}",
                    flush=True,
                )
    write_json(
        options.json, {"machine": describe_machine(), "options": vars(options), "rows": rows}
    )


if __name__ == "__main__":
    main()
