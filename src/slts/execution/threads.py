"""How many threads there are: ours, by `n_jobs`, and those of BLAS.

BLAS has one thread while this package works (`one_blas_thread`): its threads spin while they wait
for each other, which can take many times as long as the work if other programs use the cores.
Large products of a fit are cut into tiles for our threads instead (`fit_threads`).
"""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from numbers import Integral
from typing import Any

from joblib import cpu_count, effective_n_jobs
from threadpoolctl import OpenBLASController, ThreadpoolController

# More threads than this only wait for each other; each needs memory for its stack and its batch.
_THREADS_PER_CORE = 4

# Reentrant: the garbage collector may end a map in a thread that holds it.
_LOCK = threading.RLock()
# The limits of BLAS that are in force; what restores the threads before them, and their number.
_LIMITS: list[object] = []
_ORIGINAL: dict[Any, Any] = {}
_before = 1
_current = threading.local()
if hasattr(os, "register_at_fork"):
    # The first limit of a forked process that ends restores the threads.
    os.register_at_fork(after_in_child=_LIMITS.clear)


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
def one_blas_thread() -> Iterator[None]:
    """Limit BLAS to one thread, and large products to this thread."""
    own = object()
    # The limit holds for the whole process, so those of several threads may overlap in any order.
    try:
        with _LOCK:
            if not _LIMITS:
                global _before
                _before = _blas_threads()
            if _libraries() not in _ORIGINAL:
                with _in_control():
                    _ORIGINAL[_libraries()] = _libraries().limit(limits=1, user_api="blas")
            _LIMITS.append(own)
        with _products_in(1):
            yield
    finally:
        with _LOCK:
            if own in _LIMITS:
                _LIMITS.remove(own)
            while _ORIGINAL and not _LIMITS:
                with _in_control():
                    _ORIGINAL.popitem()[1].restore_original_limits()


@contextmanager
def use_fit_threads(n_jobs: int | None) -> Iterator[None]:
    """Cut large products of this thread into tiles for the threads of `n_jobs`.

    None means as many threads as BLAS has without our limit. Inside another context, it means the
    threads of that context.
    """
    if n_jobs is not None:
        n_threads = thread_count(n_jobs)
    elif getattr(_current, "entered", ()):
        n_threads = fit_threads()
    else:
        with _LOCK:
            n_threads = _before if _LIMITS else _blas_threads()
    with one_blas_thread(), _products_in(n_threads):
        yield


def _blas_threads() -> int:
    found = _libraries().select(user_api="blas").info()
    return max([1, *(int(library["num_threads"]) for library in found)])


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


@contextmanager
def _in_control() -> Iterator[None]:
    """Let this thread set the threads of BLAS, and any other thread afterwards.

    Since threadpoolctl 3.8, the first thread that sets them keeps this right to itself.
    """
    clear = getattr(OpenBLASController, "clear_controlling_thread", lambda **_: None)
    clear(force=True)
    try:
        yield
    finally:
        clear(force=True)


def _libraries() -> Any:
    # SciPy has a BLAS of its own, which may be loaded later.
    return _find_libraries("scipy.linalg" in sys.modules)


@cache
def _find_libraries(_: bool) -> Any:
    # The search takes milliseconds, as long as a fit on few series.
    return ThreadpoolController()
