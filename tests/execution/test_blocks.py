"""partition: every cell once, in blocks of bounded cost."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from slts.execution import Block, partition

COSTS = st.lists(st.integers(1, 1000), min_size=1, max_size=40)
LIMITS = st.floats(1.0, 1e8)


@given(COSTS, COSTS, LIMITS, st.booleans())
def test_every_cell_is_covered_once(rows, columns, limit, split):
    covered = np.zeros((len(rows), len(columns)), dtype=int)
    for block in partition(rows, columns, block_cost=limit, split_columns=split):
        covered[block.row_begin : block.row_end, block.column_begin : block.column_end] += 1
    assert (covered == 1).all()


@given(COSTS, COSTS, LIMITS, st.booleans())
def test_the_cost_of_a_block_is_that_of_its_cells(rows, columns, limit, split):
    cells = np.outer(rows, columns)
    for block in partition(rows, columns, block_cost=limit, split_columns=split):
        inside = cells[block.row_begin : block.row_end, block.column_begin : block.column_end]
        assert block.cost == pytest.approx(inside.sum())


@given(COSTS, COSTS, LIMITS)
def test_only_single_rows_exceed_the_limit(rows, columns, limit):
    for block in partition(rows, columns, block_cost=limit):
        # Column runs are cut for the heaviest row: what exceeds the limit is one cell.
        one_row = block.row_end - block.row_begin == 1
        one_column = block.column_end - block.column_begin == 1
        assert block.cost <= limit * (1 + 1e-9) or (one_row and one_column)


@given(COSTS, COSTS, LIMITS)
def test_without_splitting_every_block_has_all_columns(rows, columns, limit):
    for block in partition(rows, columns, block_cost=limit, split_columns=False):
        assert (block.column_begin, block.column_end) == (0, len(columns))
        assert block.cost <= limit * (1 + 1e-9) or block.row_end - block.row_begin == 1


def test_work_below_the_limit_is_one_block():
    assert partition([1, 2], [3, 4, 5], block_cost=36) == [Block(0, 2, 0, 3, 36.0)]


def test_blocks_are_not_needlessly_small():
    assert len(partition(np.ones(100), np.ones(100), block_cost=1000)) == 10


def test_no_rows_need_no_blocks():
    assert partition([], [1, 2], block_cost=10) == []


@pytest.mark.parametrize("columns", [[], [0, 0]])
def test_free_columns_keep_their_rows_together(columns):
    assert partition([1, 2], columns, block_cost=1) == [Block(0, 2, 0, len(columns), 0.0)]
