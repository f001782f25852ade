"""How many threads there are: ours, by `n_jobs`, and those of BLAS.

A fit has the threads of `n_jobs` (`blas_threads`, around a whole fit): for large products, which
are cut into tiles (`fit_threads`), and in BLAS for the few large factorisations that run one after
the other. Without `n_jobs`, both have as many as BLAS has already. Wherever this package starts
threads of its own, each of them has one thread of BLAS (`one_blas_thread`): the two never multiply.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from numbers import Integral
from typing import Any

from joblib import cpu_count, effective_n_jobs
from threadpoolctl import ThreadpoolController

# More threads than this only wait for each other; each needs memory for its stack and its batch.
_THREADS_PER_CORE = 4

_LOCK = threading.Lock()
# Limits in force, the newest last, and what restores the number before all of them.
_LIMITS: list[tuple[object, int]] = []
_ORIGINAL: list[Any] = []
_current = threading.local()


def thread_count(n_jobs: int | None) -> int:
    """Return the number of threads by joblib's convention, at most four for each core."""
    if n_jobs is not None and not isinstance(n_jobs, Integral):
        raise TypeError(f"n_jobs must be a whole number or None, got {n_jobs!r}")
    if n_jobs == 0:
        raise ValueError("n_jobs must not be 0: 1 is one thread, and -1 uses all cores")
    wanted = int(effective_n_jobs(n_jobs))
    # Counting cores reads files, which takes as long as a prediction.
    if wanted <= _THREADS_PER_CORE:
        return wanted
    return int(min(wanted, _THREADS_PER_CORE * cpu_count()))


@contextmanager
def blas_threads(n_jobs: int | None) -> Iterator[None]:
    """Give BLAS as many threads as `n_jobs` means, at most one per core; None leaves it as it is.

    Threads of BLAS spin while they wait, so more of them than cores take many times as long.
    """
    if n_jobs is None:
        found = _libraries().select(user_api="blas").info()
        with _products_in(max([1, *(library["num_threads"] for library in found)])):
            yield
        return
    n_threads = thread_count(n_jobs)
    own = object(), n_threads if n_threads == 1 else min(n_threads, cpu_count())
    # Limits hold for the whole process, so those of several threads may overlap in any order.
    with _LOCK:
        limiter = _libraries().limit(limits=own[1], user_api="blas")
        if not _LIMITS:
            _ORIGINAL.append(limiter)
        _LIMITS.append(own)
    try:
        with _products_in(n_threads):
            yield
    finally:
        with _LOCK:
            _LIMITS.remove(own)
            if _LIMITS:
                _libraries().limit(limits=_LIMITS[-1][1], user_api="blas")
            else:
                _ORIGINAL.pop().restore_original_limits()


@contextmanager
def _products_in(n_threads: int) -> Iterator[None]:
    """Set `fit_threads` for this thread. Contexts of generators may end in any order."""
    own = object(), n_threads
    entered: list[tuple[object, int]] = _current.__dict__.setdefault("entered", [])
    entered.append(own)
    try:
        yield
    finally:
        entered.remove(own)


def fit_threads() -> int:
    """Return the number of threads for large products: one in threads that a map has started."""
    entered = getattr(_current, "entered", ())
    return entered[-1][1] if entered else 1


def one_blas_thread() -> Any:
    """Limit BLAS to one thread: threads that call BLAS must not start more of them."""
    return blas_threads(1)


def _libraries() -> Any:
    # SciPy has a BLAS of its own, which may be loaded later.
    return _find_libraries("scipy.linalg" in sys.modules)


@cache
def _find_libraries(_: bool) -> Any:
    # The search takes milliseconds, as long as a fit on few series.
    return ThreadpoolController()
