"""The arithmetic limit: how many multiply-adds a second one core can do.

Measured with a matrix product on one BLAS thread, which runs close to the limit of the
processor. `python benchmarks/peak.py` prints it.
"""

from __future__ import annotations

import time

import numpy as np
from threadpoolctl import threadpool_limits

_SIZE = 1024


def peak_rate(dtype: str, *, seconds: float = 0.3) -> float:
    """Multiply-adds a second of one core, the best of the products that fit in `seconds`."""
    rng = np.random.default_rng(0)
    a = rng.random((_SIZE, _SIZE)).astype(dtype)
    b = rng.random((_SIZE, _SIZE)).astype(dtype)
    out = np.empty_like(a)
    best, spent = np.inf, 0.0
    with threadpool_limits(limits=1, user_api="blas"):
        np.matmul(a, b, out=out)
        while spent < seconds:
            start = time.perf_counter()
            np.matmul(a, b, out=out)
            took = time.perf_counter() - start
            best, spent = min(best, took), spent + took
    return float(_SIZE**3 / best)


if __name__ == "__main__":
    for name in ("float64", "float32"):
        print(f"{name}: {peak_rate(name) / 1e9:.1f} billion multiply-adds a second")
