"""Speed of the reductions on one GPU, and their share of its arithmetic limit.

    SLTS_DATA=folder/with/zips python benchmarks/gpu.py

Needs no native extension. Rates are given for the kernel alone (CUDA events) and from host to host,
which adds layouts, transfers and the allocation of the result. The limit counts the multiply-adds
of the affinities only and is measured by a loop of multiply-adds on the same device.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
import zipfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
from measure import Call

import slts
from slts.alignment import Aligner, AlignmentSettings
from slts.alignment.cuda.programs import Program
from slts.alignment.settings import require_gpu
from slts.series import normalize_rows

PEAK = r"""
extern "C" __global__ void multiply_add(REAL* out, REAL x) {
    REAL v[8];
    for (int k = 0; k < 8; ++k) v[k] = threadIdx.x + k;
    for (int i = 0; i < 4096; ++i)
        for (int u = 0; u < 8; ++u)
            for (int k = 0; k < 8; ++k) v[k] = fma(v[k], x, x);
    REAL total = 0;
    for (int k = 0; k < 8; ++k) total += v[k];
    out[blockIdx.x * blockDim.x + threadIdx.x] = total;
}
"""


def timed_on_device(cupy: Any, call: Call) -> float:
    """Seconds between two events."""
    start, stop = cupy.cuda.Event(), cupy.cuda.Event()
    start.record()
    call()
    stop.record()
    stop.synchronize()
    return float(cupy.cuda.get_elapsed_time(start, stop)) / 1e3


def multiply_adds_per_second(cupy: Any, dtype: str) -> float:
    """Rate of a loop of multiply-adds."""
    real = "float" if dtype == "float32" else "double"
    kernel = cupy.RawModule(code=PEAK, options=("-std=c++17", f"-DREAL={real}")).get_function(
        "multiply_add"
    )
    blocks = 32 * cupy.cuda.Device().attributes["MultiProcessorCount"]
    out, x = cupy.empty(blocks * 256, dtype=dtype), np.dtype(dtype).type(0.999)
    seconds = [timed_on_device(cupy, lambda: kernel((blocks,), (256,), (out, x))) for _ in range(5)]
    return float(blocks * 256 * 4096 * 64) / min(seconds)


class KernelTime:
    """Sums the device time of all launches of the recurrence."""

    def __init__(self, cupy: Any) -> None:
        self.seconds = 0.0
        launch = Program.launch

        def timed(*args: Any, **kwargs: Any) -> None:
            self.seconds += timed_on_device(cupy, lambda: launch(*args, **kwargs))

        patch.object(Program, "launch", timed).start()


def random_batch(
    rng: np.random.Generator, count: int, d: int, shortest: int, longest: int
) -> slts.SeriesBatch:
    """Unit rows of random directions."""
    lengths = rng.integers(shortest, longest + 1, size=count)
    values = rng.normal(size=(int(lengths.sum()), d))
    batch = slts.SeriesBatch(values, np.concatenate([[0], np.cumsum(lengths)]))
    return normalize_rows(batch)


def best_of(repeats: int, kernel: KernelTime, call: Call) -> tuple[float, float]:
    """Smallest kernel and wall times in seconds, after one run that compiles and warms up."""
    call()
    times = []
    for _ in range(repeats):
        kernel.seconds, start = 0.0, time.perf_counter()
        call()
        times.append((kernel.seconds, time.perf_counter() - start))
    on_device, wall = zip(*times, strict=True)
    return min(on_device), min(wall)


class Bench:
    """Measures a reduction and prints one line."""

    def __init__(self, peak: dict[str, float], kernel: KernelTime) -> None:
        self.peak, self.kernel = peak, kernel

    def __call__(
        self,
        name: str,
        reduction: Callable[..., object],
        x: slts.SeriesBatch,
        y: slts.SeriesBatch,
        how: AlignmentSettings,
        *extra: np.ndarray,
        **options: int,
    ) -> None:
        """Measure a method of `Aligner` on the GPU, with the layout of the landmarks."""

        def call() -> object:
            return reduction(Aligner(y, how, device="cuda"), x, *extra, **options)

        on_device, wall = best_of(3, self.kernel, call)
        pairs, needed = len(x) * len(y), float(x.n_steps) * float(y.n_steps) * x.n_channels
        share = needed / on_device / self.peak[how.dtype]
        print(
            f"{name:<13} {how.dtype} {how.objective:<8} {len(x)} x {len(y)}: kernel "
            f"{pairs / on_device:.3g} pairs/s ({share:.0%} of the limit), host to host "
            f"{pairs / wall:.3g} pairs/s",
            flush=True,
        )


def rates(bench: Bench, size: int) -> None:
    """All reductions at the sizes of the paper's data, and some at other sizes."""
    rng = np.random.default_rng(0)
    for d, shortest, longest, count in (
        (13, 20, 60, size),
        (6, 20, 60, size),
        (32, 20, 60, size // 2),
        (13, 150, 250, size // 8),
        (3, 1500, 2000, 256),
    ):
        x, y = (random_batch(rng, count, d, shortest, longest) for _ in range(2))
        groups = np.eye(10)[np.arange(len(y)) % 10].T
        print(f"d = {d}, lengths {shortest}-{longest}, 10 groups")
        single = AlignmentSettings(dtype="float32")
        bench("score", Aligner.similarities, x, y, single)
        bench("grouped", Aligner.grouped, x, y, single, groups)
        if (d, longest) != (13, 60):
            continue
        bench("grouped/phases", Aligner.grouped, x, y, single, groups, n_phases=3)
        bench("projected", Aligner.projected, x, y, single, rng.normal(size=(1, d, d)))
        bench("products", Aligner.products, x[: size // 4], y[: size // 4], single)
        bench("score", Aligner.similarities, x, y, AlignmentSettings("cost", dtype="float32"))
        banded = AlignmentSettings(band=10, dtype="float32")
        bench("score, band 10", Aligner.similarities, x, y, banded)
        bench("score", Aligner.similarities, x, y, AlignmentSettings())
        bench("grouped", Aligner.grouped, x, y, AlignmentSettings(), groups)


def arabic_digits(folder: str, kernel: KernelTime) -> None:
    """Nearest neighbours of 2200 series among 6600."""
    parts = []
    with zipfile.ZipFile(Path(folder) / "arabic_digits.zip") as files:
        for member in ("Train_Arabic_Digit.txt", "Test_Arabic_Digit.txt"):
            text = files.read(member).decode("ascii").replace("\r", "")
            blocks = [b for b in "\n".join(map(str.strip, text.split("\n"))).split("\n\n") if b]
            parts.append([np.loadtxt(block.split("\n")).reshape(-1, 13).T for block in blocks])
    train, test = parts
    labels = np.arange(10).repeat(len(train) // 10), np.arange(10).repeat(len(test) // 10)
    for dtype in ("float32", "float64"):
        call = partial(slts.similarity, test, train, dtype=dtype, device="cuda")
        on_device, wall = best_of(3, kernel, call)
        K = call()
        accuracy = float(np.mean(labels[0][K.argmax(axis=1)] == labels[1]))
        print(
            f"Arabic digits, similarity(test, train) {K.shape}, {dtype}: {wall:.3f} s host to "
            f"host, {on_device:.3f} s in the kernel; 1NN accuracy {accuracy:.2%}",
            flush=True,
        )


def main() -> int:
    """Print everything."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--size", type=int, default=8192, help="series and landmarks")
    arguments = parser.parse_args()
    cupy = require_gpu()
    name = cupy.cuda.runtime.getDeviceProperties(0)["name"].decode()
    peak = {dtype: multiply_adds_per_second(cupy, dtype) for dtype in ("float32", "float64")}
    print(f"{name}; CuPy {cupy.__version__}; multiply-adds/s: float32 {peak['float32']:.3g}, "
          f"float64 {peak['float64']:.3g}")  # fmt: skip
    kernel = KernelTime(cupy)
    if os.environ.get("SLTS_DATA"):
        arabic_digits(os.environ["SLTS_DATA"], kernel)
    rates(Bench(peak, kernel), arguments.size)
    return 0


if __name__ == "__main__":
    sys.exit(main())
