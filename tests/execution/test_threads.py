"""Threads of BLAS: one while ours work, and their own number afterwards."""

import os
import threading
from contextlib import ExitStack

import joblib
import pytest
from threadpoolctl import threadpool_info, threadpool_limits

from slts import execution
from slts.execution import fit_threads, map_threads, one_blas_thread, use_fit_threads
from tests.data import run_python


def blas_threads(_=None):
    return {pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"}


def fit_threads_without_n_jobs(_=None):
    with use_fit_threads(None):
        return fit_threads()


@pytest.fixture(autouse=True)
def two_at_first():
    with threadpool_limits(2, user_api="blas"):
        if blas_threads() != {2}:
            pytest.skip("needs a BLAS whose threads can be limited")
        yield
        assert blas_threads() == {2}


def test_thread_counts_follow_joblib_up_to_four_for_each_core():
    cores = joblib.cpu_count()
    assert [execution.thread_count(n_jobs) for n_jobs in (None, 1, 2, -1)] == [1, 1, 2, cores]
    assert execution.thread_count(10**6) == execution.ThreadRunner(10**6).n_workers == 4 * cores
    for backend in ("threading", "loky"):
        with joblib.parallel_config(backend=backend, n_jobs=2):
            assert (execution.thread_count(None), execution.thread_count(1)) == (2, 1)


@pytest.mark.parametrize(("n_jobs", "error"), [(0, ValueError), (1.5, TypeError)])
def test_other_numbers_of_threads_are_errors(n_jobs, error):
    with pytest.raises(error, match="n_jobs"):
        map_threads(pytest.fail, [], n_jobs=n_jobs)
    with pytest.raises(error, match="n_jobs"), use_fit_threads(n_jobs):
        pass


def test_blas_has_one_thread_in_maps_of_several_threads():
    assert map_threads(blas_threads, range(4), n_jobs=2) == [{1}] * 4
    assert blas_threads() == {2}
    assert map_threads(blas_threads, range(4), n_jobs=1) == [{2}] * 4
    with pytest.raises(ZeroDivisionError):
        map_threads(lambda k: 1 // k, range(4), n_jobs=2)
    assert blas_threads() == {2}


def test_a_fit_has_its_threads_for_products_and_one_of_blas():
    def now(_=None):
        return fit_threads(), fit_threads_without_n_jobs(), blas_threads()

    assert (fit_threads(), fit_threads_without_n_jobs()) == (1, 2)
    with use_fit_threads(3):
        assert now() == (3, 3, {1})
        assert map_threads(now, range(3), n_jobs=2) == [(1, 1, {1})] * 3
        with use_fit_threads(1):
            assert now() == (1, 1, {1})
        assert now() == (3, 3, {1})
        # A thread that is not ours sees the threads of BLAS without our limit.
        seen = []
        other = threading.Thread(target=lambda: seen.append(now()))
        other.start()
        other.join()
        assert seen == [(1, 2, {1})]
    assert fit_threads() == 1


@pytest.mark.parametrize("in_threads", [False, True])
@pytest.mark.parametrize("first_to_leave", [0, 1])
def test_limits_that_overlap_in_any_order_restore_the_first_number(in_threads, first_to_leave):
    """As those of generators and of other threads do."""

    def call(function, *arguments):
        if not in_threads:
            return function(*arguments)
        thread = threading.Thread(target=function, args=arguments)
        thread.start()
        return thread.join()

    contexts = ExitStack(), ExitStack()
    for context in contexts:
        call(context.enter_context, one_blas_thread())
    call(contexts[first_to_leave].close)
    assert blas_threads() == {1}
    call(contexts[1 - first_to_leave].close)
    assert blas_threads() == {2}
    # This thread may set them again, although others were the last to do so.
    with threadpool_limits(3, user_api="blas"):
        assert blas_threads() == {3}


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_process_that_is_forked_inside_a_limit_restores_the_threads():
    with one_blas_thread():
        child = os.fork()
        if child == 0:
            with one_blas_thread():
                pass
            os._exit(0 if blas_threads() == {2} else 1)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def test_a_blas_that_is_loaded_inside_a_limit_is_limited_next_time():
    program = """
import sys, numpy
from threadpoolctl import threadpool_info
from slts.execution import one_blas_thread
threads = lambda: [p["num_threads"] for p in threadpool_info() if p["user_api"] == "blas"]
assert "scipy.linalg" not in sys.modules
with one_blas_thread():
    import scipy.linalg
    with one_blas_thread():
        print(*threads())
print(*threads())
"""
    printed = run_python(program, OMP_NUM_THREADS="2", OPENBLAS_NUM_THREADS="2")
    if " " not in printed:
        pytest.skip("needs a BLAS for SciPy alone")
    assert printed == "1 1\n2 2\n"
