"""BLAS has the threads of a fit, one in each thread of ours, and its own number afterwards."""

import pytest
from threadpoolctl import threadpool_info, threadpool_limits

from slts.execution import ThreadRunner, blas_threads, fit_threads, threads


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


def test_blas_has_the_threads_of_n_jobs_and_one_inside_our_threads():
    with blas_threads(3):
        assert now() == {3}
        assert list(ThreadRunner(2).map(lambda *_: now(), range(3))) == [{1}] * 3
        assert now() == {3}


def test_products_have_the_threads_of_the_fit_and_one_inside_our_threads():
    assert fit_threads() == 1
    with blas_threads(3):
        assert fit_threads() == 3
        assert list(ThreadRunner(2).map(lambda *_: fit_threads(), range(3))) == [1] * 3
        with blas_threads(1):
            assert fit_threads() == 1
        assert fit_threads() == 3
    assert fit_threads() == 1


def test_blas_has_at_most_one_thread_per_core(monkeypatch):
    monkeypatch.setattr(threads, "cpu_count", lambda: 2)
    with blas_threads(8):
        assert now() == {2}


def test_without_n_jobs_blas_stays_as_it_is():
    with blas_threads(None):
        assert now() == {2}
        # Products take these threads for their tiles, not in addition to them.
        assert fit_threads() == 2
        with blas_threads(1), blas_threads(None):
            assert fit_threads() == 1
    assert fit_threads() == 1


def test_limits_that_overlap_in_any_order_restore_the_first_number():
    """As those of two fits in two threads do."""
    one, other = blas_threads(1), blas_threads(3)
    one.__enter__()
    other.__enter__()
    one.__exit__(None, None, None)
    assert now() == {3}
    other.__exit__(None, None, None)
    assert now() == {2}


def test_maps_that_overlap_restore_the_threads_of_products():
    with blas_threads(4):
        one, other = (ThreadRunner(2).map(lambda *_: None, range(20)) for _ in range(2))
        next(one)
        next(other)
        one.close()
        assert fit_threads() == 1
        other.close()
        assert fit_threads() == 4
