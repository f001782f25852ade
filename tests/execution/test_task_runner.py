"""ThreadRunner: results in order, errors that end all work, and no file left behind."""

import _thread
import signal
import tempfile
import threading

import numpy as np
import pytest
from threadpoolctl import threadpool_info, threadpool_limits

from slts.execution import ThreadRunner, check_stopped
from slts.execution.task_runner import Stopped

# Long enough for any machine: only a test that fails waits so long.
PATIENCE = 60


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    """Where temporary files go; every thread that was started has ended."""
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr(tempfile, "tempdir", None)
    before = set(threading.enumerate())
    yield tmp_path
    assert set(threading.enumerate()) <= before


def files_in(folder):
    return [path for path in folder.rglob("*") if path.is_file()]


class Endless:
    """Work that ends only when it is told to; counts how often it was."""

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
        raise AssertionError("nobody stopped this task")


def square(part, common, own):
    return part * part


# -- results


@pytest.mark.parametrize("n_jobs", [1, 2, 5])
def test_results_come_in_the_order_of_the_parts(n_jobs):
    """The first parts end last: each waits for the one behind it, as far as that is running."""
    ended = [threading.Event() for _ in range(20)]

    def task(part, common, own):
        if part % n_jobs < n_jobs - 1:
            assert ended[part + 1].wait(PATIENCE)
        ended[part].set()
        return part, common, own

    found = ThreadRunner(n_jobs).map(task, range(20), "common", lambda k: -k)
    assert list(found) == [(k, "common", -k) for k in range(20)]


def test_threads_are_those_asked_for():
    mapper = ThreadRunner(3)
    barrier = threading.Barrier(3)
    found = list(mapper.map(lambda *_: barrier.wait(PATIENCE), range(3)))
    assert mapper.n_workers == 3
    assert sorted(found) == [0, 1, 2]


def test_one_thread_is_this_one():
    found = list(ThreadRunner(1).map(lambda *_: threading.get_ident(), range(3)))
    assert set(found) == {threading.get_ident()}


@pytest.mark.parametrize("n_jobs", [1, 4])
def test_no_parts_are_no_work(n_jobs):
    mapper = ThreadRunner(n_jobs)
    assert list(mapper.map(pytest.fail, [], own=pytest.fail, progress=pytest.fail)) == []
    assert list(mapper.keep(pytest.fail, [], memory=0)) == []


@pytest.mark.parametrize("count", [1, 2, 4])
def test_fewer_parts_than_threads(count):
    assert list(ThreadRunner(5).map(square, range(count))) == [k * k for k in range(count)]


def test_nothing_begins_before_the_first_result_is_wanted():
    found = ThreadRunner(2).map(pytest.fail, range(3), own=pytest.fail)
    found.close()


@pytest.mark.parametrize("n_jobs", [1, 2, 5])
def test_own_is_asked_shortly_before_a_part_begins(n_jobs):
    received, asked = [], []

    def own(number):
        asked.append(number)
        return len(received)

    for result in ThreadRunner(n_jobs).map(lambda part, common, mine: mine, range(40), own=own):
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


def blas_threads():
    return {pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"}


def test_blas_starts_no_threads_inside_of_threads():
    with threadpool_limits(2, user_api="blas"):
        if blas_threads() != {2}:
            pytest.skip("no BLAS here whose threads can be told")
        found = list(ThreadRunner(2).map(lambda *_: blas_threads(), range(4)))
        assert found == [{1}] * 4
        assert blas_threads() == {2}
        assert list(ThreadRunner(1).map(lambda *_: blas_threads(), range(1))) == [{2}]


def test_blas_is_free_again_after_an_error():
    def task(part, common, own):
        raise RuntimeError("broken")

    with threadpool_limits(2, user_api="blas"):
        before = blas_threads()
        with pytest.raises(RuntimeError, match="broken"):
            list(ThreadRunner(2).map(task, range(4)))
        assert blas_threads() == before


# -- work that ends early


@pytest.mark.parametrize("n_jobs", [1, 2, 5])
@pytest.mark.parametrize("error", [RuntimeError, TimeoutError, KeyboardInterrupt])
def test_an_error_of_a_task_is_raised_and_the_others_stop(n_jobs, error):
    endless = Endless()

    def task(part, common, own):
        if part == 0:
            assert n_jobs == 1 or endless.started.wait(PATIENCE)
            raise error("broken")
        endless.work(part)

    with pytest.raises(error, match="broken"):
        list(ThreadRunner(n_jobs).map(task, range(100)))
    assert sorted(endless.stopped) == sorted(endless.begun)
    # The thread that failed may take one more before it hears of the end.
    assert (n_jobs == 1) == (endless.begun == [])
    assert len(endless.begun) <= n_jobs


def test_results_before_an_error_are_given():
    received = []

    def task(part, common, own):
        if part == 3:
            raise RuntimeError("broken")
        return part

    def run():
        for result in ThreadRunner(2).map(task, range(10)):
            received.append(result)

    with pytest.raises(RuntimeError, match="broken"):
        run()
    assert received == [0, 1, 2]


@pytest.mark.parametrize("n_jobs", [2, 5])
def test_nobody_works_for_one_who_left(n_jobs):
    endless = Endless()

    def task(part, common, own):
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

    def task(part, common, own):
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
    def broken(part, common, own):
        raise RuntimeError("broken")

    def checked(part, common, own):
        check_stopped()
        return part

    mapper = ThreadRunner(2)
    with pytest.raises(RuntimeError, match="broken"):
        list(mapper.map(broken, range(4)))
    check_stopped()
    assert list(mapper.map(checked, range(4))) == [0, 1, 2, 3]


# -- what is held


def blocks_of(part, rng):
    values = rng.normal(size=(part + 6, 4, 3))
    yield np.arange(part, dtype=np.int32), values.astype(np.float32)
    yield np.empty(0, np.int32), np.empty((0, 3, 3))
    yield np.arange(part + 3, dtype=np.int32), values[::2].transpose(0, 2, 1)


def held_task(part, common, own):
    return blocks_of(part, np.random.default_rng([common, part]))


@pytest.mark.parametrize("n_jobs", [1, 3])
@pytest.mark.parametrize("memory", [0, 1000, float("inf")])
def test_what_is_held_comes_back_as_it_was(n_jobs, memory, folder):
    expected = [list(held_task(part, 7, None)) for part in range(6)]
    with ThreadRunner(n_jobs) as mapper:
        held = mapper.keep(held_task, range(6), 7, memory=memory)
        assert len(held) == 6
        assert bool(files_in(folder)) == (memory < float("inf"))
        for _ in range(2):
            found = list(mapper.map(lambda kept, common, own: list(kept), held))
            for blocks, originals in zip(found, expected, strict=True):
                assert len(blocks) == len(originals)
                for block, original in zip(blocks, originals, strict=True):
                    assert len(block) == len(original)
                    for array, known in zip(block, original, strict=True):
                        assert (array.dtype, array.shape) == (known.dtype, known.shape)
                        np.testing.assert_array_equal(array, known)
    assert list(folder.iterdir()) == []


def test_release_removes_the_files_of_what_is_named_only(folder):
    with ThreadRunner(2) as mapper:
        one = mapper.keep(held_task, range(4), 1, memory=0)
        n_files = len(files_in(folder))
        # Equal to the first in all but identity.
        two = mapper.keep(held_task, range(4), 1, memory=0)
        assert len(files_in(folder)) == 2 * n_files
        mapper.release(one)
        assert len(files_in(folder)) == n_files
        assert sum(len(list(kept)) for kept in two) == 12
        mapper.release(one)
        assert len(files_in(folder)) == n_files
    assert list(folder.iterdir()) == []


@pytest.mark.parametrize("n_jobs", [1, 3])
def test_progress_of_holding(n_jobs):
    seen = []
    with ThreadRunner(n_jobs) as mapper:
        mapper.keep(
            held_task,
            range(5),
            0,
            memory=0,
            progress=lambda done, total: seen.append((done, total)),
        )
    assert seen == [(k, 5) for k in range(1, 6)]


@pytest.mark.parametrize("n_jobs", [1, 2])
@pytest.mark.parametrize("memory", [0, float("inf")])
def test_an_error_while_holding_leaves_no_file(n_jobs, memory, folder):
    endless = Endless()
    filed = []

    def task(part, common, own):
        yield (np.arange(10.0),)
        if part == 0:
            assert n_jobs == 1 or endless.started.wait(PATIENCE)
            filed.extend(files_in(folder))
            raise RuntimeError("broken")
        endless.work(part)

    mapper = ThreadRunner(n_jobs)
    with pytest.raises(RuntimeError, match="broken"):
        mapper.keep(task, range(8), memory=memory)
    # Already before the mapper is left.
    assert bool(filed) == (memory == 0)
    assert list(folder.iterdir()) == []
    assert sorted(endless.stopped) == sorted(endless.begun)


def test_an_error_while_holding_spares_what_was_held_before(folder):
    def broken(part, common, own):
        yield (np.zeros(3),)
        raise RuntimeError("broken")

    with ThreadRunner(2) as mapper:
        held = mapper.keep(held_task, range(3), 0, memory=0)
        before = files_in(folder)
        with pytest.raises(RuntimeError, match="broken"):
            mapper.keep(broken, range(3), memory=0)
        assert sorted(files_in(folder)) == sorted(before)
        assert sum(len(list(kept)) for kept in held) == 9
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

    def task(part, common, own):
        yield (np.arange(10.0),)
        if barrier.wait(PATIENCE) == 0:
            filed.extend(files_in(folder))
            _thread.interrupt_main()
        endless.work(part)

    mapper = ThreadRunner(n_jobs)
    with pytest.raises(KeyboardInterrupt):
        mapper.keep(task, range(20), memory=0)
    assert len(filed) == n_jobs
    assert sorted(endless.stopped) == sorted(endless.begun) == list(range(n_jobs))
    assert list(folder.iterdir()) == []
