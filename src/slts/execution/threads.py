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

# Reentrant: the garbage collector may end a context in a thread that holds it.
_LOCK = threading.RLock()
# The limit holds for the whole process. It ends when the last context that uses it ends.
_CONTEXTS: set[object] = set()
# Numbers of threads before the limit, by the path of the library.
_BEFORE: dict[str, int] = {}
_current = threading.local()

if hasattr(os, "register_at_fork"):
    # Other threads do not exist in a forked process: the first context to end restores BLAS.
    os.register_at_fork(after_in_child=_CONTEXTS.clear)


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
    """Limit BLAS to one thread. Contexts of several threads may overlap in any order."""
    context = object()
    try:
        with _LOCK:
            for library in _libraries():
                _BEFORE.setdefault(library.filepath, library.num_threads)
            _CONTEXTS.add(context)
            _set_blas_threads(dict.fromkeys(_BEFORE, 1))
        yield
    finally:
        with _LOCK:
            _CONTEXTS.discard(context)
            if not _CONTEXTS:
                _set_blas_threads(_BEFORE)
                _BEFORE.clear()


@contextmanager
def use_fit_threads(n_jobs: int | None) -> Iterator[None]:
    """Cut large products of this thread into tiles for the threads of `n_jobs`.

    None means as many threads as BLAS has without our limit. Inside another context, it means the
    threads of that context.
    """
    outer: int | None = getattr(_current, "fit_threads", None)
    with one_blas_thread():
        try:
            if n_jobs is not None:
                _current.fit_threads = thread_count(n_jobs)
            elif outer is None:
                _current.fit_threads = max(_BEFORE.values(), default=1)
            yield
        finally:
            _current.fit_threads = outer


def use_one_thread() -> None:
    """Leave large products of this thread whole, until it ends."""
    _current.fit_threads = 1


def fit_threads() -> int:
    """Return the number of threads for large products: one in threads that a map has started."""
    return getattr(_current, "fit_threads", None) or 1


def _set_blas_threads(numbers: dict[str, int]) -> None:
    # Since threadpoolctl 3.8, the first thread that sets them keeps this right to itself.
    clear = getattr(OpenBLASController, "clear_controlling_thread", lambda **_: None)
    clear(force=True)
    for library in _libraries():
        if library.filepath in numbers:
            library.set_num_threads(numbers[library.filepath])
    clear(force=True)


def _libraries() -> list[Any]:
    # SciPy has a BLAS of its own, which may be loaded later.
    return _find_libraries("scipy.linalg" in sys.modules)


@cache
def _find_libraries(_: bool) -> list[Any]:
    # The search takes milliseconds, as long as a fit on few series.
    return list(ThreadpoolController().select(user_api="blas").lib_controllers)
