"""map_blocks: every block once, errors at once, progress that grows."""

import threading
import time

import joblib
import pytest

from slts.execution import Block, ThreadRunner, map_blocks, thread_count


def blocks_of(*costs):
    return [Block(k, k + 1, 0, 1, float(cost)) for k, cost in enumerate(costs)]


BLOCKS = blocks_of(*range(1, 31))


def meeting(parties):
    """A task that returns only once `parties` threads are in it, and the set of threads seen."""
    barrier, seen = threading.Barrier(parties), set()

    def task(block):
        seen.add(threading.get_ident())
        barrier.wait(timeout=30)

    return task, seen


@pytest.mark.parametrize("n_jobs", [None, 1, 2, 4, -1])
def test_every_block_is_called_once(n_jobs):
    called = []
    map_blocks(called.append, BLOCKS, n_jobs=n_jobs)
    assert sorted(block.row_begin for block in called) == list(range(30))


def test_serial_work_keeps_the_order_and_the_thread():
    called, threads = [], set()

    def task(block):
        called.append(block)
        threads.add(threading.get_ident())

    map_blocks(task, BLOCKS, n_jobs=1)
    assert called == BLOCKS
    assert threads == {threading.get_ident()}


@pytest.mark.parametrize("n_jobs", [1, 4])
def test_no_blocks_are_no_work(n_jobs):
    map_blocks(pytest.fail, [], n_jobs=n_jobs)


# -- n_jobs


def test_threads_are_limited_by_the_cores(monkeypatch):
    monkeypatch.setattr("slts.execution.threads.cpu_count", lambda: 3)
    assert [thread_count(n_jobs) for n_jobs in (None, 2, 12, 13, 4096)] == [1, 2, 12, 12, 12]
    assert ThreadRunner(4096).n_workers == 12


def test_cores_are_not_counted_for_few_threads(monkeypatch):
    """Counting reads files, which takes as long as a prediction."""
    monkeypatch.setattr("slts.execution.threads.cpu_count", lambda: pytest.fail("counted"))
    assert [thread_count(n_jobs) for n_jobs in (None, 1, 4)] == [1, 1, 4]


def test_as_many_threads_run_as_asked_for():
    task, seen = meeting(3)
    map_blocks(task, blocks_of(1, 1, 1), n_jobs=3)
    assert len(seen) == 3


def test_minus_one_is_every_core():
    cores = joblib.cpu_count()
    task, seen = meeting(cores)
    map_blocks(task, blocks_of(*[1] * cores), n_jobs=-1)
    assert len(seen) == cores


def test_none_is_one_thread():
    task, seen = meeting(1)
    map_blocks(task, BLOCKS, n_jobs=None)
    assert seen == {threading.get_ident()}


@pytest.mark.parametrize("backend", ["threading", "loky"])
def test_none_follows_the_configuration_of_joblib(backend):
    task, seen = meeting(2)
    with joblib.parallel_config(backend=backend, n_jobs=2):
        map_blocks(task, blocks_of(1, 1), n_jobs=None)
    assert len(seen) == 2


def test_a_number_overrides_the_configuration_of_joblib():
    task, seen = meeting(1)
    with joblib.parallel_config(backend="threading", n_jobs=2):
        map_blocks(task, BLOCKS, n_jobs=1)
    assert len(seen) == 1


@pytest.mark.parametrize("blocks", [BLOCKS, []])
def test_zero_threads_are_refused(blocks):
    with pytest.raises(ValueError, match="n_jobs"):
        map_blocks(pytest.fail, blocks, n_jobs=0)


# -- errors


@pytest.mark.parametrize("n_jobs", [1, 2, 4])
@pytest.mark.parametrize("error", [RuntimeError, KeyboardInterrupt])
def test_errors_of_a_task_are_raised_and_spare_the_rest(n_jobs, error):
    called, stop = [], threading.Event()

    def task(block):
        called.append(block)
        if len(called) == 3:
            raise error("third")
        if len(called) > 3:
            stop.wait(timeout=30)  # as a kernel that runs until it is cancelled

    with pytest.raises(error, match="third"):
        map_blocks(task, BLOCKS, n_jobs=n_jobs, cancel=stop.set)
    assert len(called) <= 3 + n_jobs


def test_an_error_tells_running_tasks_to_stop():
    cancelled = threading.Event()

    def task(block):
        if block.cost == 2:
            raise RuntimeError("broken")
        assert cancelled.wait(timeout=30)

    start = time.monotonic()
    with pytest.raises(RuntimeError, match="broken"):
        map_blocks(task, blocks_of(1, 2), n_jobs=2, cancel=cancelled.set)
    assert cancelled.is_set()
    assert time.monotonic() - start < 10


def test_work_that_succeeds_is_not_cancelled():
    map_blocks(lambda block: None, BLOCKS, n_jobs=2, cancel=pytest.fail)


def test_an_error_of_the_progress_stops_the_work():
    cancelled = threading.Event()

    def progress(done, total):
        raise RuntimeError("no terminal")

    with pytest.raises(RuntimeError, match="no terminal"):
        map_blocks(lambda block: None, BLOCKS, n_jobs=2, cancel=cancelled.set, progress=progress)
    assert cancelled.is_set()


# -- progress


@pytest.mark.parametrize("n_jobs", [1, 3])
def test_progress_grows_up_to_the_total(n_jobs):
    seen = []
    map_blocks(
        lambda block: time.sleep(0.01),
        BLOCKS,
        n_jobs=n_jobs,
        progress=lambda done, total: seen.append((done, total, threading.get_ident())),
    )
    done = [now for now, _, _ in seen]
    assert done == sorted(set(done))
    assert done[-1] == sum(range(31))
    assert {(total, thread) for _, total, thread in seen} == {(465.0, threading.get_ident())}


def test_progress_comes_before_the_end_of_threaded_work():
    seen = []
    map_blocks(
        lambda block: time.sleep(0.08),
        blocks_of(*[1] * 8),
        n_jobs=2,
        progress=lambda done, total: seen.append(done),
    )
    assert len(seen) > 1
