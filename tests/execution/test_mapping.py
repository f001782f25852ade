"""Maps in threads: results in order, errors stop all work, no thread is left; blocks of a grid."""

import _thread
import signal
import threading
import time
import weakref

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from slts.execution import Block, ThreadRunner, check_stopped, map_blocks, map_threads, partition
from slts.execution.threads import Stopped

# Long enough for any machine: only a test that fails waits so long.
PATIENCE = 60

several_n_jobs = pytest.mark.parametrize("n_jobs", [1, 2, 5])


@pytest.fixture(autouse=True)
def no_thread_is_left():
    before = set(threading.enumerate())
    yield
    assert set(threading.enumerate()) <= before


class Endless:
    """Work that ends only when it is stopped; records its parts."""

    def __init__(self):
        self.begun, self.stopped, self.started = [], [], threading.Event()

    def work(self, part):
        self.begun.append(part)
        self.started.set()
        for _ in range(PATIENCE * 1000):
            try:
                check_stopped()
            except Stopped:
                self.stopped.append(part)
                raise
            time.sleep(0.001)
        raise AssertionError("this task was not stopped")

    def break_while_it_runs(self, *_):
        assert self.started.wait(PATIENCE)
        broken()

    @property
    def all_stopped(self):
        return sorted(self.stopped) == sorted(self.begun)


def broken(*_):
    raise RuntimeError("broken")


@several_n_jobs
def test_results_come_in_the_order_of_the_parts(n_jobs):
    """The first parts end last: each waits for the one behind it, as far as that is running."""
    ended = [threading.Event() for _ in range(20)]

    def task(part, shared, own):
        if part % n_jobs < n_jobs - 1:
            assert ended[part + 1].wait(PATIENCE)
        ended[part].set()
        return part, shared, own

    results = ThreadRunner(n_jobs).map(task, range(20), "shared", lambda k: -k)
    assert list(results) == [(k, "shared", -k) for k in range(20)]


@several_n_jobs
def test_items_are_mapped_in_n_jobs_threads_and_progress_is_told_in_this_one(n_jobs):
    seen, barrier = [], threading.Barrier(n_jobs)

    def function(item):
        barrier.wait(PATIENCE)
        return -item, threading.get_ident()

    results = map_threads(
        function, iter(range(10)), n_jobs=n_jobs,
        progress=lambda *now: seen.append((*now, threading.get_ident())), cancel=pytest.fail,
    )  # fmt: skip
    assert [result for result, _ in results] == [-k for k in range(10)]
    assert len({thread for _, thread in results}) == n_jobs
    assert seen == [(k, 10, threading.get_ident()) for k in range(1, 11)]


@pytest.mark.parametrize(("n_jobs", "n_items"), [(1, 5), (None, 5), (4, 1)])
def test_one_thread_is_that_of_the_caller(n_jobs, n_items):
    def threads(_=None):
        return threading.get_ident(), threading.active_count()

    assert map_threads(threads, range(n_items), n_jobs=n_jobs) == [threads()] * n_items


@several_n_jobs
def test_own_is_called_shortly_before_a_part_starts(n_jobs):
    received = []

    def task(part, shared, own):
        return part, own

    for result in ThreadRunner(n_jobs).map(task, range(40), own=lambda _: len(received)):
        received.append(result)
    ahead = 1 if n_jobs == 1 else 2 * n_jobs
    assert received == [(k, max(0, k - ahead + 1)) for k in range(40)]


@several_n_jobs
@pytest.mark.parametrize("error", [RuntimeError, TimeoutError, KeyboardInterrupt])
def test_an_error_of_a_task_is_raised_and_the_others_stop(n_jobs, error):
    endless, cancelled = Endless(), []

    def function(part):
        if part == 0:
            assert n_jobs == 1 or endless.started.wait(PATIENCE)
            raise error("broken")
        endless.work(part)

    with pytest.raises(error, match="broken"):
        map_threads(function, range(100), n_jobs=n_jobs, cancel=lambda: cancelled.append(1))
    assert endless.all_stopped
    assert len(endless.begun) <= n_jobs
    # In the thread of the caller, nothing else is running.
    assert (endless.begun == []) == (cancelled == []) == (n_jobs == 1)
    # Later maps are not stopped.
    assert map_threads(lambda _: check_stopped(), range(4), n_jobs=n_jobs) == [None] * 4


@pytest.mark.parametrize("how", ["the iterator is closed", "own fails", "the progress fails"])
def test_tasks_stop_if_the_caller_stops(how):
    endless = Endless()

    def fail(number, *total):
        if how == "the progress fails" or number > 1:
            endless.break_while_it_runs()

    results = ThreadRunner(2).map(
        lambda part, *_: part if part == 0 else endless.work(part), range(9),
        own=fail if how == "own fails" else None,
        progress=fail if how == "the progress fails" else lambda *_: None,
    )  # fmt: skip
    if how == "the iterator is closed":
        assert next(results) == 0
        assert endless.started.wait(PATIENCE)
        results.close()
    else:
        with pytest.raises(RuntimeError, match="broken"):
            list(results)
    assert endless.all_stopped
    assert 0 < len(endless.begun) <= 2


def test_a_map_inside_a_task_stops_with_the_task():
    endless = Endless()

    def inner(_):
        map_threads(endless.work, range(2), n_jobs=2)

    with pytest.raises(RuntimeError, match="broken"):
        map_threads(lambda call: call(0), [inner, endless.break_while_it_runs], n_jobs=2)
    assert endless.all_stopped


@pytest.mark.parametrize("n_jobs", [2, 4])
def test_ctrl_c_cancels_tasks_that_would_never_end(n_jobs):
    """The interrupt comes while the main thread waits; one task does not ask whether to stop."""
    endless, cancelled, barrier = Endless(), threading.Event(), threading.Barrier(n_jobs)

    def function(part):
        if barrier.wait(PATIENCE) > 0:
            endless.work(part)
        _thread.interrupt_main()
        assert cancelled.wait(PATIENCE)

    # Ctrl-C raises, even where the tests run in the background.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with pytest.raises(KeyboardInterrupt):
            map_threads(function, range(20), n_jobs=n_jobs, cancel=cancelled.set)
    finally:
        signal.signal(signal.SIGINT, before)
    assert endless.all_stopped
    assert len(endless.begun) == n_jobs - 1


class Large:
    """Something that must not be held."""

    def __init__(self, alive):
        alive.append(weakref.ref(self))


def test_a_thread_that_waits_holds_nothing():
    alive = []
    results = ThreadRunner(2).map(lambda *_: Large(alive), range(6), own=lambda _: Large(alive))
    for _ in range(6):
        next(results)
    assert len(alive) == 12
    # The threads have the last results, and then wait.
    for _ in range(PATIENCE * 100):
        if not any(reference() for reference in alive):
            break
        time.sleep(0.01)
    assert not any(reference() for reference in alive)
    results.close()


COSTS = st.lists(st.integers(1, 1000), min_size=1, max_size=40)
LIMITS = st.floats(1.0, 1e8)
N_BLOCKS = 30
BLOCKS = [Block(k, k + 1, 0, 1, float(k + 1)) for k in range(N_BLOCKS)]


@given(COSTS, COSTS, LIMITS, st.booleans(), st.integers(1, 4))
def test_every_cell_is_in_one_block_of_known_cost(rows, columns, limit, split, workers):
    covered, cells = np.zeros((len(rows), len(columns)), dtype=int), np.outer(rows, columns)
    for block in partition(rows, columns, block_cost=limit, split_columns=split, workers=workers):
        where = slice(block.row_begin, block.row_end), slice(block.column_begin, block.column_end)
        covered[where] += 1
        assert block.cost == pytest.approx(cells[where].sum())
        one_row = block.row_end - block.row_begin == 1
        if split:
            # Column runs are cut for the heaviest row: what exceeds the limit is one cell.
            one_column = block.column_end - block.column_begin == 1
            assert block.cost <= limit * (1 + 1e-9) or (one_row and one_column)
        else:
            assert (block.column_begin, block.column_end) == (0, len(columns))
            assert block.cost <= limit * (1 + 1e-9) or one_row
    assert (covered == 1).all()


@pytest.mark.parametrize(("cost", "n_blocks"), [(1, 1), (50, 12), (1000, 120)])
def test_several_workers_share_work_that_is_worth_it(cost, n_blocks):
    """Each of two workers gets six blocks, unless they would be small."""
    assert len(partition(np.ones(120), [cost], block_cost=1000, workers=2)) == n_blocks


@pytest.mark.parametrize("columns", [[], [0, 0]])
def test_free_columns_keep_their_rows_together(columns):
    assert partition([1, 2], columns, block_cost=1) == [Block(0, 2, 0, len(columns), 0.0)]
    assert partition([], [1, 2], block_cost=10) == []


def test_one_thread_keeps_the_order_and_several_begin_with_the_largest():
    called = []
    map_blocks(called.append, BLOCKS, n_jobs=1)
    assert called == BLOCKS
    both, first = threading.Barrier(2), []

    def task(block):
        first.append(block.row_begin)
        if len(first) <= 2:
            both.wait(60)

    map_blocks(task, BLOCKS, n_jobs=2)
    assert sorted(first[:2]) == [N_BLOCKS - 2, N_BLOCKS - 1]


@pytest.mark.parametrize("n_jobs", [None, 1, 2, 4, -1])
def test_every_block_is_called_once_and_progress_grows_up_to_the_total_cost(n_jobs):
    called, seen = [], []
    tell = {"progress": lambda *now: seen.append(now), "cancel": pytest.fail}
    map_blocks(called.append, BLOCKS, n_jobs=n_jobs, **tell)
    assert sorted(block.row_begin for block in called) == list(range(N_BLOCKS))
    done = [now for now, _ in seen]
    assert (len(done), done) == (N_BLOCKS, sorted(set(done)))
    assert {total for _, total in seen} == {done[-1]} == {sum(range(N_BLOCKS + 1))}
