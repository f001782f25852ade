"""A queue of steps for several threads."""

import threading
import time
from functools import partial

import pytest

from slts.execution import StepQueue

# Long enough for any machine: only a test that fails waits so long.
PATIENCE = 60


@pytest.mark.parametrize("n_jobs", [1, 3])
def test_steps_that_steps_put_are_run(n_jobs):
    steps, leaves, told = StepQueue(), [], []

    def grow(depth, place):
        if depth == 0:
            leaves.append((place, threading.get_ident()))
        else:
            steps.put(partial(grow, depth - 1, 2 * place))
            steps.put(partial(grow, depth - 1, 2 * place + 1))

    steps.put(partial(grow, 6, 0))
    steps.run(n_jobs, lambda: told.append(threading.get_ident()))
    assert sorted(place for place, _ in leaves) == list(range(64))
    assert len({thread for _, thread in leaves}) <= n_jobs
    # This thread alone tells, after its own steps.
    assert set(told) <= {threading.get_ident()}
    assert n_jobs > 1 or len(told) == 2 * 64 - 1


def test_the_newest_step_is_next_unless_it_is_put_last():
    steps, order = StepQueue(), []

    def first():
        order.append("first")
        for name in ("old", "new"):
            steps.put(partial(order.append, name))
        for name in ("last", "very last"):
            steps.put(partial(order.append, name), last=True)

    steps.put(first)
    steps.run(1)
    assert order == ["first", "new", "old", "last", "very last"]


@pytest.mark.parametrize("fails_here", [True, False], ids=["this thread", "another"])
@pytest.mark.parametrize("error", [RuntimeError, KeyboardInterrupt])
def test_an_error_of_a_step_is_raised_and_no_other_begins(fails_here, error):
    steps, here = StepQueue(), threading.get_ident()
    both, later = threading.Barrier(2, timeout=PATIENCE), []

    def step():
        both.wait()
        if (threading.get_ident() == here) == fails_here:
            raise error("broken")
        # The other thread has failed before this step puts one more.
        for _ in range(PATIENCE * 1000):
            if steps._failed:
                break
            time.sleep(0.001)
        steps.put(partial(later.append, 1))

    for _ in range(2):
        steps.put(step)
    with pytest.raises(error, match="broken"):
        steps.run(2)
    assert not later
