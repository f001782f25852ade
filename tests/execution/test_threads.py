"""BLAS has one thread while there are threads of ours, and its own number afterwards."""

import threading

import pytest
from threadpoolctl import ThreadpoolController, threadpool_info, threadpool_limits

from slts.execution import ThreadRunner, fit_threads, one_blas_thread, threads, use_fit_threads


def now():
    return {pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"}


@pytest.fixture(autouse=True)
def two_at_first(monkeypatch):
    monkeypatch.setattr(threads, "cpu_count", lambda: 4)
    with threadpool_limits(2, user_api="blas"):
        if now() != {2}:
            pytest.skip("needs a BLAS whose threads can be limited")
        yield
        assert now() == {2}


def test_a_fit_has_its_threads_for_products_and_one_of_blas():
    assert fit_threads() == 1
    with use_fit_threads(3):
        assert (fit_threads(), now()) == (3, {1})
        found = list(ThreadRunner(2).map(lambda *_: (fit_threads(), now()), range(3)))
        assert found == [(1, {1})] * 3
        with one_blas_thread():
            assert fit_threads() == 1
        assert (fit_threads(), now()) == (3, {1})
    assert fit_threads() == 1


def test_without_n_jobs_products_have_the_threads_of_blas():
    with use_fit_threads(None):
        assert (fit_threads(), now()) == (2, {1})
        with use_fit_threads(None):
            assert fit_threads() == 1
    assert fit_threads() == 1


def test_limits_that_overlap_in_any_order_restore_the_first_number():
    """As those of two fits in two threads do."""
    one, other = one_blas_thread(), use_fit_threads(3)
    one.__enter__()
    other.__enter__()
    one.__exit__(None, None, None)
    assert now() == {1}
    other.__exit__(None, None, None)
    assert now() == {2}


def test_every_thread_may_limit_blas_and_restore_it():
    """Also if another thread was the first to do so: threads may begin and end in any order."""
    with one_blas_thread():
        pass
    for first_to_leave in (0, 1):
        inside, leave = threading.Barrier(3), [threading.Event() for _ in range(2)]

        def work(k, inside=inside, leave=leave):
            with one_blas_thread():
                inside.wait(60)
                leave[k].wait(60)

        workers = [threading.Thread(target=work, args=(k,)) for k in range(2)]
        for worker in workers:
            worker.start()
        inside.wait(60)
        assert now() == {1}
        for k in (first_to_leave, 1 - first_to_leave):
            leave[k].set()
            workers[k].join()
            assert now() == ({1} if k == first_to_leave else {2})
    with threadpool_limits(3, user_api="blas"):
        assert now() == {3}


def test_a_blas_that_is_loaded_later_is_limited_too(monkeypatch):
    libraries = ThreadpoolController()
    none = libraries.select(filepath="no library")
    monkeypatch.setattr(threads, "_libraries", lambda: none)
    with one_blas_thread():
        assert now() == {2}
        monkeypatch.setattr(threads, "_libraries", lambda: libraries)
        with one_blas_thread():
            assert now() == {1}
        assert now() == {1}
    assert now() == {2}


def test_maps_that_overlap_restore_the_threads_of_products():
    with use_fit_threads(4):
        one, other = (ThreadRunner(2).map(lambda *_: None, range(20)) for _ in range(2))
        next(one)
        next(other)
        one.close()
        assert fit_threads() == 1
        other.close()
        assert fit_threads() == 4
