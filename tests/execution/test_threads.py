"""BLAS has one thread while there are threads of ours, and its own number afterwards."""

import os
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
            assert fit_threads() == 2
        with one_blas_thread(), use_fit_threads(None):
            assert fit_threads() == 1
        # Another thread does not see our limit.
        found = []
        other = threading.Thread(target=lambda: found.append(product_threads_without_n_jobs()))
        other.start()
        other.join()
        assert found == [2]
    assert fit_threads() == 1


def product_threads_without_n_jobs():
    with use_fit_threads(None):
        return fit_threads()


@pytest.mark.parametrize("when", ["before", "after"])
def test_an_interrupt_while_blas_is_limited_leaves_no_limit(monkeypatch, when):
    class Interrupted:
        def limit(self, **given):
            if when == "after":
                libraries.limit(**given)
            raise KeyboardInterrupt

        def select(self, **given):
            return libraries.select(**given)

    libraries = threads._libraries()
    with monkeypatch.context() as patched:
        own = Interrupted()
        patched.setattr(threads, "_libraries", lambda: own)
        with pytest.raises(KeyboardInterrupt), one_blas_thread():
            pass
    assert not threads._LIMITS
    # What BLAS itself has done at an interrupt is restored here for the other tests.
    libraries.limit(limits=2, user_api="blas")
    with one_blas_thread():
        assert now() == {1}


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_process_that_is_forked_inside_restores_the_threads():
    with one_blas_thread():
        child = os.fork()
        if child == 0:
            with one_blas_thread():
                pass
            os._exit(0 if now() == {2} else 1)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


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
    paths = [own.filepath for own in libraries.select(user_api="blas").lib_controllers]
    if len(paths) < 2:
        pytest.skip("needs two libraries")
    first = libraries.select(filepath=paths[0])
    monkeypatch.setattr(threads, "_libraries", lambda: first)
    with one_blas_thread():
        assert now() == {1, 2}
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
