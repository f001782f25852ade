"""ThreadRunner: results in order, errors stop all work, no file is left behind."""

import _thread
import gc
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
import weakref
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from threadpoolctl import threadpool_info, threadpool_limits

from slts.execution import ThreadRunner, check_stopped, task_runner
from slts.execution.task_runner import Stopped

# Long enough for any machine: only a test that fails waits so long.
PATIENCE = 60


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    """Where temporary files go; check that every thread has ended or is idle."""
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr(tempfile, "tempdir", None)
    before = set(threading.enumerate())
    yield tmp_path
    for pool in list(task_runner._IDLE):
        pool.shutdown()
    task_runner._IDLE.clear()
    assert set(threading.enumerate()) <= before


def files_in(folder):
    return [path for path in folder.rglob("*") if path.is_file()]


class Endless:
    """Work that ends only when it is stopped; records its parts."""

    def __init__(self):
        self.begun, self.stopped, self.lock = [], [], threading.Lock()
        self.started = threading.Event()

    def work(self, part):
        with self.lock:
            self.begun.append(part)
        self.started.set()
        pause = threading.Event()
        for _ in range(PATIENCE * 1000):
            try:
                check_stopped()
            except Stopped:
                with self.lock:
                    self.stopped.append(part)
                raise
            pause.wait(0.001)
        raise AssertionError("this task was not stopped")


def square(part, shared, own):
    return part * part


# -- results


@pytest.mark.parametrize("n_jobs", [1, 2, 5])
def test_results_come_in_the_order_of_the_parts(n_jobs):
    """The first parts end last: each waits for the one behind it, as far as that is running."""
    ended = [threading.Event() for _ in range(20)]

    def task(part, shared, own):
        if part % n_jobs < n_jobs - 1:
            assert ended[part + 1].wait(PATIENCE)
        ended[part].set()
        return part, shared, own

    found = ThreadRunner(n_jobs).map(task, range(20), "shared", lambda k: -k)
    assert list(found) == [(k, "shared", -k) for k in range(20)]


def test_n_jobs_threads_run():
    runner = ThreadRunner(3)
    barrier = threading.Barrier(3)
    found = list(runner.map(lambda *_: barrier.wait(PATIENCE), range(3)))
    assert runner.n_workers == 3
    assert sorted(found) == [0, 1, 2]


def test_one_thread_is_the_calling_thread():
    found = list(ThreadRunner(1).map(lambda *_: threading.get_ident(), range(3)))
    assert set(found) == {threading.get_ident()}


@pytest.mark.parametrize("n_jobs", [1, 4])
def test_no_parts_are_no_work(n_jobs):
    runner = ThreadRunner(n_jobs)
    assert list(runner.map(pytest.fail, [], own=pytest.fail, progress=pytest.fail)) == []
    assert list(runner.keep(pytest.fail, [], memory=0)) == []


@pytest.mark.parametrize("count", [1, 2, 4])
def test_fewer_parts_than_threads(count):
    assert list(ThreadRunner(5).map(square, range(count))) == [k * k for k in range(count)]


def test_no_task_starts_before_the_first_result_is_read():
    found = ThreadRunner(2).map(pytest.fail, range(3), own=pytest.fail)
    found.close()


@pytest.mark.parametrize("n_jobs", [1, 2, 5])
def test_own_is_called_shortly_before_a_part_starts(n_jobs):
    received, asked = [], []

    def own(number):
        asked.append(number)
        return len(received)

    for result in ThreadRunner(n_jobs).map(lambda part, shared, mine: mine, range(40), own=own):
        received.append(result)
        assert len(asked) <= len(received) + 2 * n_jobs
    assert asked == list(range(40))
    ahead = 1 if n_jobs == 1 else 2 * n_jobs
    assert received == [max(0, k - ahead + 1) for k in range(40)]


@pytest.mark.parametrize("n_jobs", [1, 3])
def test_progress_follows_the_results(n_jobs):
    seen = []

    def progress(done, total):
        seen.append((done, total, threading.get_ident()))

    list(ThreadRunner(n_jobs).map(square, range(7), progress=progress))
    assert seen == [(k, 7, threading.get_ident()) for k in range(1, 8)]


# -- idle threads


def threads_of(runner):
    barrier = threading.Barrier(runner.n_workers)

    def meet(*_):
        barrier.wait(PATIENCE)
        return threading.get_ident()

    return set(runner.map(meet, range(runner.n_workers)))


def test_maps_one_after_the_other_have_the_same_threads():
    assert threads_of(ThreadRunner(3)) == threads_of(ThreadRunner(3))


def test_a_map_inside_a_map_has_threads_of_its_own():
    barrier = threading.Barrier(4)

    def meet(*_):
        barrier.wait(PATIENCE)
        return threading.get_ident()

    def task(part, shared, own):
        return {threading.get_ident(), *ThreadRunner(2).map(meet, range(2))}

    assert len(set.union(*ThreadRunner(2).map(task, range(2)))) == 6


def test_few_threads_stay_idle():
    before = threading.active_count()
    for n_jobs in (2, 3, 4, 5, 6, 7):
        threads_of(ThreadRunner(n_jobs))
    assert threading.active_count() <= before + 4 + 5 + 6 + 7


def test_idle_threads_hold_nothing(monkeypatch):
    """When a map ends, its threads may still hold what was submitted: here for ever."""

    class Large:
        pass

    class Holding(ThreadPoolExecutor):
        def submit(self, *call):
            held.append((call, super().submit(*call)))
            return held[-1][1]

    held, alive = [], []

    def large(*_):
        alive.append(weakref.ref(made := Large()))
        return made

    monkeypatch.setattr(task_runner, "ThreadPoolExecutor", Holding)
    list(ThreadRunner(2).map(large, [large() for _ in range(4)], large(), large))
    assert len(held) == 4
    assert len(alive) == 13
    assert [own for own in alive if own() is not None] == []


@pytest.mark.parametrize("how", ["closed", "failed"])
def test_cancelled_tasks_hold_nothing(how):
    class Large:
        pass

    alive, begun = [], threading.Barrier(3)

    def task(part, shared, own):
        alive.append(weakref.ref(made := Large()))
        if part == 0 and how == "closed":
            return part
        begun.wait(PATIENCE)
        while how == "closed":
            check_stopped()
            time.sleep(0.001)
        raise RuntimeError(f"broken {made}")

    found = ThreadRunner(3).map(task, range(9 if how == "closed" else 3))
    gc.disable()
    try:
        if how == "closed":
            assert next(found) == 0
            found.close()
        else:
            with pytest.raises(RuntimeError, match="broken"):
                list(found)
        del found
        assert [own for own in alive if own() is not None] == []
    finally:
        gc.enable()


def test_an_error_is_raised_while_an_earlier_part_is_running():
    endless = Endless()

    def task(part, shared, own):
        if part == 0:
            return endless.work(part)
        assert endless.started.wait(PATIENCE)
        raise RuntimeError("broken")

    with pytest.raises(RuntimeError, match="broken"):
        list(ThreadRunner(2).map(task, range(2)))
    assert endless.stopped == [0]


def test_a_thread_of_a_failed_map_is_not_used_again():
    with pytest.raises(ZeroDivisionError):
        list(ThreadRunner(2).map(lambda part, *_: 1 / part, range(2)))
    assert len(task_runner._IDLE) == 0


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
def test_a_forked_process_starts_threads_of_its_own_and_ends():
    program = """
import os, signal, sys
from slts.execution import ThreadRunner

def squares():
    return list(ThreadRunner(2).map(lambda part, *_: part * part, range(5)))

squares()
child = os.fork()
signal.alarm(30)
assert squares() == [0, 1, 4, 9, 16]
if child:
    sys.exit(os.waitpid(child, 0)[1])
"""
    done = subprocess.run([sys.executable, "-c", program], check=False, timeout=PATIENCE)
    assert done.returncode == 0


def blas_threads():
    return {pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"}


def test_blas_starts_no_threads_inside_threads():
    with threadpool_limits(2, user_api="blas"):
        if blas_threads() != {2}:
            pytest.skip("needs a BLAS whose threads can be limited")
        found = list(ThreadRunner(2).map(lambda *_: blas_threads(), range(4)))
        assert found == [{1}] * 4
        assert blas_threads() == {2}
        assert list(ThreadRunner(1).map(lambda *_: blas_threads(), range(1))) == [{2}]


def test_blas_threads_are_restored_after_an_error():
    def task(part, shared, own):
        raise RuntimeError("broken")

    with threadpool_limits(2, user_api="blas"):
        before = blas_threads()
        with pytest.raises(RuntimeError, match="broken"):
            list(ThreadRunner(2).map(task, range(4)))
        assert blas_threads() == before


# -- errors and interruption


@pytest.mark.parametrize("n_jobs", [1, 2, 5])
@pytest.mark.parametrize("error", [RuntimeError, TimeoutError, KeyboardInterrupt])
def test_an_error_of_a_task_is_raised_and_the_others_stop(n_jobs, error):
    endless = Endless()

    def task(part, shared, own):
        if part == 0:
            assert n_jobs == 1 or endless.started.wait(PATIENCE)
            raise error("broken")
        endless.work(part)

    with pytest.raises(error, match="broken"):
        list(ThreadRunner(n_jobs).map(task, range(100)))
    assert sorted(endless.stopped) == sorted(endless.begun)
    # The thread that failed may start one more part before it is stopped.
    assert (n_jobs == 1) == (endless.begun == [])
    assert len(endless.begun) <= n_jobs


def test_results_before_an_error_are_yielded():
    received, three = [], threading.Event()

    def task(part, shared, own):
        if part == 3:
            assert three.wait(PATIENCE)
            raise RuntimeError("broken")
        return part

    def run():
        for result in ThreadRunner(2).map(task, range(10)):
            received.append(result)
            if len(received) == 3:
                three.set()

    with pytest.raises(RuntimeError, match="broken"):
        run()
    assert received == [0, 1, 2]


@pytest.mark.parametrize("n_jobs", [2, 5])
def test_closing_the_iterator_stops_the_tasks(n_jobs):
    endless = Endless()

    def task(part, shared, own):
        return part if part == 0 else endless.work(part)

    found = ThreadRunner(n_jobs).map(task, range(100))
    assert next(found) == 0
    assert endless.started.wait(PATIENCE)
    found.close()
    assert endless.begun
    assert sorted(endless.stopped) == sorted(endless.begun)
    assert len(endless.begun) <= n_jobs


@pytest.mark.parametrize("who", ["own", "progress"])
def test_an_error_of_the_caller_stops_the_work(who):
    endless = Endless()

    def task(part, shared, own):
        return part if part == 0 else endless.work(part)

    def fail(*arguments):
        if arguments != (0,) and arguments != (1,):
            assert endless.started.wait(PATIENCE)
            raise RuntimeError("no more")

    with pytest.raises(RuntimeError, match="no more"):
        list(ThreadRunner(2).map(task, range(9), **{who: fail}))
    assert endless.begun
    assert sorted(endless.stopped) == sorted(endless.begun)


def test_tasks_of_other_threads_and_later_ones_are_not_stopped():
    def broken(part, shared, own):
        raise RuntimeError("broken")

    def checked(part, shared, own):
        check_stopped()
        return part

    runner = ThreadRunner(2)
    with pytest.raises(RuntimeError, match="broken"):
        list(runner.map(broken, range(4)))
    check_stopped()
    assert list(runner.map(checked, range(4))) == [0, 1, 2, 3]


# -- kept blocks


def blocks_of(part, rng):
    values = rng.normal(size=(part + 6, 4, 3))
    yield np.arange(part, dtype=np.int32), values.astype(np.float32)
    yield np.empty(0, np.int32), np.empty((0, 3, 3))
    yield np.arange(part + 3, dtype=np.int32), values[::2].transpose(0, 2, 1)


def blocks_task(part, shared, own):
    return blocks_of(part, np.random.default_rng([shared, part]))


@pytest.mark.parametrize("n_jobs", [1, 3])
@pytest.mark.parametrize("memory", [0, 1000, float("inf")])
def test_kept_blocks_are_read_back_unchanged(n_jobs, memory, folder):
    expected = [list(blocks_task(part, 7, None)) for part in range(6)]
    with ThreadRunner(n_jobs) as runner:
        stored = runner.keep(blocks_task, range(6), 7, memory=memory)
        assert len(stored) == 6
        assert bool(files_in(folder)) == (memory < float("inf"))
        for _ in range(2):
            found = list(runner.map(lambda kept, shared, own: list(kept), stored))
            for blocks, originals in zip(found, expected, strict=True):
                assert len(blocks) == len(originals)
                for block, original in zip(blocks, originals, strict=True):
                    assert len(block) == len(original)
                    for array, known in zip(block, original, strict=True):
                        assert (array.dtype, array.shape) == (known.dtype, known.shape)
                        np.testing.assert_array_equal(array, known)
    assert list(folder.iterdir()) == []


def test_release_removes_the_files_of_the_given_blocks_only(folder):
    with ThreadRunner(2) as runner:
        one = runner.keep(blocks_task, range(4), 1, memory=0)
        n_files = len(files_in(folder))
        # Equal to the first in all but identity.
        two = runner.keep(blocks_task, range(4), 1, memory=0)
        assert len(files_in(folder)) == 2 * n_files
        runner.release(one)
        assert len(files_in(folder)) == n_files
        assert sum(len(list(kept)) for kept in two) == 12
        runner.release(one)
        assert len(files_in(folder)) == n_files
    assert list(folder.iterdir()) == []


@pytest.mark.parametrize("n_jobs", [1, 3])
def test_progress_of_keeping(n_jobs):
    seen = []
    with ThreadRunner(n_jobs) as runner:
        runner.keep(
            blocks_task,
            range(5),
            0,
            memory=0,
            progress=lambda done, total: seen.append((done, total)),
        )
    assert seen == [(k, 5) for k in range(1, 6)]


@pytest.mark.parametrize("n_jobs", [1, 2])
@pytest.mark.parametrize("memory", [0, float("inf")])
def test_an_error_while_keeping_leaves_no_file(n_jobs, memory, folder):
    endless = Endless()
    filed = []

    def task(part, shared, own):
        yield (np.arange(10.0),)
        if part == 0:
            assert n_jobs == 1 or endless.started.wait(PATIENCE)
            filed.extend(files_in(folder))
            raise RuntimeError("broken")
        endless.work(part)

    runner = ThreadRunner(n_jobs)
    with pytest.raises(RuntimeError, match="broken"):
        runner.keep(task, range(8), memory=memory)
    # Even before the runner is closed.
    assert bool(filed) == (memory == 0)
    assert list(folder.iterdir()) == []
    assert sorted(endless.stopped) == sorted(endless.begun)


def test_an_error_while_keeping_leaves_earlier_blocks_alone(folder):
    def broken(part, shared, own):
        yield (np.zeros(3),)
        raise RuntimeError("broken")

    with ThreadRunner(2) as runner:
        stored = runner.keep(blocks_task, range(3), 0, memory=0)
        before = files_in(folder)
        with pytest.raises(RuntimeError, match="broken"):
            runner.keep(broken, range(3), memory=0)
        assert sorted(files_in(folder)) == sorted(before)
        assert sum(len(list(kept)) for kept in stored) == 9
    assert list(folder.iterdir()) == []


@pytest.fixture
def interruptible():
    """Ctrl-C raises, even where the tests run in the background."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.parametrize("n_jobs", [2, 4])
def test_ctrl_c_ends_the_work_and_leaves_no_file(n_jobs, folder, interruptible):
    """The interrupt comes while the main thread waits: no task ends unless it is told to."""
    endless = Endless()
    barrier = threading.Barrier(n_jobs)
    filed = []

    def task(part, shared, own):
        yield (np.arange(10.0),)
        if barrier.wait(PATIENCE) == 0:
            filed.extend(files_in(folder))
            _thread.interrupt_main()
        endless.work(part)

    runner = ThreadRunner(n_jobs)
    with pytest.raises(KeyboardInterrupt):
        runner.keep(task, range(20), memory=0)
    assert len(filed) == n_jobs
    assert sorted(endless.stopped) == sorted(endless.begun) == list(range(n_jobs))
    assert list(folder.iterdir()) == []
