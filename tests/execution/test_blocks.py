"""Blocks of a grid: every cell once, blocks of bounded cost, progress that grows."""

import threading

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from slts.execution import Block, map_blocks, partition

COSTS = st.lists(st.integers(1, 1000), min_size=1, max_size=40)
LIMITS = st.floats(1.0, 1e8)
N_BLOCKS = 30
BLOCKS = [Block(k, k + 1, 0, 1, float(k + 1)) for k in range(N_BLOCKS)]

# -- partition


@given(COSTS, COSTS, LIMITS, st.booleans(), st.integers(1, 4))
def test_every_cell_is_in_one_block_whose_cost_is_that_of_its_cells(
    rows, columns, limit, split, workers
):
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


# -- map_blocks


@pytest.mark.parametrize("n_jobs", [None, 1, 2, 4, -1])
def test_every_block_is_called_once(n_jobs):
    called = []
    map_blocks(called.append, BLOCKS, n_jobs=n_jobs, cancel=pytest.fail)
    assert sorted(block.row_begin for block in called) == list(range(N_BLOCKS))


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


@pytest.mark.parametrize("n_jobs", [1, 4])
def test_progress_grows_up_to_the_total_cost(n_jobs):
    seen = []
    map_blocks(lambda _: None, BLOCKS, n_jobs=n_jobs, progress=lambda *now: seen.append(now))
    done = [now for now, _ in seen]
    assert len(done) == N_BLOCKS
    assert done == sorted(set(done))
    assert {total for _, total in seen} == {done[-1]} == {sum(range(N_BLOCKS + 1))}
