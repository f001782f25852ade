"""Queries about rows: replies are true, and merge independently of blocks and parts."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from slts.learning import row_queries
from slts.learning.hinge import HingeExamples
from slts.learning.row_queries import (
    CheckQuery,
    CheckReply,
    NearQuery,
    NearReply,
    ReducedRows,
    row_keys,
)
from tests.learning.problems import answer, merged_by_hand, one_class_of_equal_rows, problem


def check_query(
    coef: np.ndarray, reference: np.ndarray, width: float, known: Any, limit: int
) -> CheckQuery:
    return CheckQuery(coef, reference, width, 0.0, (np.asarray(known, np.uint64),), (limit,))


def keys_of(rows: Any, index: Any) -> np.ndarray:
    return row_keys((rows[0] * rows[1][:, None])[index])


def test_equal_rows_and_both_zeros_have_equal_keys(rng: np.random.Generator) -> None:
    rows = np.round(rng.normal(size=(5000, 3)), 1)
    keys = row_keys(rows)
    assert len(np.unique(keys)) == len(np.unique(rows, axis=0)) < 5000
    np.testing.assert_array_equal(row_keys(-0.0 * rows), row_keys(0.0 * rows))


@pytest.mark.parametrize("limit", [0, 5, 10_000])
def test_replies_merge_associatively(rng: np.random.Generator, limit: int) -> None:
    rows = problem("weights", rng, 400, 3)
    reference, coef = rng.normal(size=3), rng.normal(size=3)
    known = keys_of(rows, slice(None, None, 9))
    queries: list[tuple[Any, Any]] = [
        (NearQuery(reference, 0.3), NearReply),
        (NearQuery(reference, 0.5, rate=100.0, seed=3), NearReply),
        (check_query(coef, reference, 0.1, known, limit), CheckReply),
    ]
    for query, kind in queries:
        blocks = [answer(query, [array[b : b + 50] for array in rows]) for b in range(0, 400, 50)]
        whole = answer(query, rows)
        left = kind.merged([kind.merged(blocks[:3]), kind.merged(blocks[3:])])
        right = kind.merged([kind.merged(blocks[:6]), blocks[6], kind.merged(blocks[7:])])
        for other in (left, right):
            assert other.loss == pytest.approx(whole.loss, rel=1e-12)
            one, two = (r.near if kind is NearReply else r.wrong for r in (other, whole))
            np.testing.assert_array_equal(one.keys, two.keys)
            np.testing.assert_array_equal(one.features, two.features)
            np.testing.assert_array_equal(one.weights, two.weights)
            if kind is NearReply:
                assert (other.n_rows, other.n_left) == (whole.n_rows, whole.n_left)
                np.testing.assert_allclose(other.vector, whole.vector, rtol=1e-10, atol=1e-14)
            else:
                assert other.n_wrong == whole.n_wrong
                assert not np.isin(two.keys, known).any()
                assert two.n_rows == min(limit, whole.n_wrong)


def test_replies_are_true(rng: np.random.Generator) -> None:
    X, y, w = rows = problem("weights", rng, 300, 4)
    reference, coef = rng.normal(size=4), rng.normal(size=4)
    before, after = y * (X @ reference), y * (X @ coef)
    reply = answer(NearQuery(reference, 0.4), rows)
    near = (np.abs(before - 1.0) <= 0.4) & (w > 0.0)
    below = (before < 1.0) & ~near & (w > 0.0)
    np.testing.assert_array_equal(reply.near.keys, keys_of(rows, near))
    np.testing.assert_allclose(reply.near.features, (X * y[:, None])[near])
    np.testing.assert_allclose(reply.vector, (w * y * below) @ X, atol=1e-15)
    assert reply.weight == pytest.approx(w[below].sum())
    assert reply.n_left == np.count_nonzero(w > 0.0) - np.count_nonzero(near)
    wrong = ((before < 1.0) != (after < 1.0)) & ~near & (w > 0.0)
    known = np.flatnonzero(wrong)[::3]
    checked = answer(check_query(coef, reference, 0.4, keys_of(rows, known), 7), rows)
    wrong[known] = False
    assert checked.n_wrong == np.count_nonzero(wrong)
    far = np.argsort(-np.abs(after - 1.0) * wrong)[:7]
    np.testing.assert_array_equal(checked.wrong.keys, keys_of(rows, far))
    np.testing.assert_allclose(checked.wrong.short, 1.0 - after[far])
    assert checked.loss == pytest.approx(float(w @ np.maximum(1.0 - after, 0.0)))


def test_rows_in_memory_are_known_by_position(rng: np.random.Generator) -> None:
    rows = one_class_of_equal_rows(rng, 500)
    near = answer(NearQuery(np.zeros(16), np.inf, by_position=True), rows, step=70).near
    np.testing.assert_array_equal(near.keys, np.arange(500))


def test_a_random_choice_is_right_on_average(rng: np.random.Generator) -> None:
    rows = problem("weights", rng, 20_000, 3)
    reference = rng.normal(size=3)
    whole = answer(NearQuery(reference, 0.5), rows)
    some = answer(NearQuery(reference, 0.5, rate=4000.0, seed=1), rows)
    assert 0 < some.near.n_rows < 0.5 * whole.near.n_rows
    assert some.near.weights.sum() == pytest.approx(whole.near.weights.sum(), rel=0.1)
    assert some.weight == whole.weight
    other = answer(NearQuery(reference, 0.5, rate=4000.0, seed=2), rows)
    assert np.isin(some.near.keys, other.near.keys).mean() < 0.9


@pytest.mark.parametrize("limit", [3, 10_000])
def test_equal_rows_are_sent_as_one(rng: np.random.Generator, limit: int) -> None:
    rows = one_class_of_equal_rows(rng, 2000)
    signed, _, weights = merged_by_hand(rows)
    heavy = np.argmax(weights)
    reference, coef = np.zeros(16), rng.normal(size=16)
    coef[15] = 1.5
    reply = answer(NearQuery(reference, np.inf), rows, step=300)
    assert reply.near.n_rows == len(signed) < 1300
    assert (reply.n_rows, reply.n_left) == (2000, 0)
    one = reply.near.keys == row_keys(signed[[heavy]])
    assert reply.near.weights[one] == pytest.approx([weights[heavy]])
    checked = answer(check_query(coef, reference, 0.1, [], limit), rows, step=300)
    moved = signed @ coef > 1.0
    n_moved = np.count_nonzero(moved)
    assert n_moved <= checked.n_wrong < n_moved + 10
    far = np.argsort(-np.abs(signed @ coef - 1.0) * moved)[: min(limit, n_moved)]
    order, found = np.argsort(row_keys(signed[far])), np.argsort(checked.wrong.keys)
    np.testing.assert_array_equal(checked.wrong.features[found], signed[far][order])
    np.testing.assert_allclose(checked.wrong.weights[found], weights[far][order])


def test_the_limit_is_shared_evenly_and_by_rows_sent_or_wrong(rng: np.random.Generator) -> None:
    rows = problem("noisy", rng, 400, 2)
    ends = [0, 100, 200, 300, 400]
    parts = [[array[a:b] for array in rows] for a, b in pairwise(ends)]
    reference = np.zeros(2)
    none = ReducedRows([answer(NearQuery(reference, 0.5), part) for part in parts])
    assert none.limits(100) == (25,) * 4
    last = [answer(NearQuery(reference, 0.5 if k < 3 else np.inf), parts[k]) for k in range(4)]
    assert ReducedRows(last).limits(100) == (13, 13, 13, 63)
    query = CheckQuery(rng.normal(size=2), reference, 0.5, 0.0, none.known, none.limits(100))
    wrong = [answer(query, part, part=k) for k, part in enumerate(parts)]
    none.join(wrong, 100)
    share = np.array([reply.n_wrong for reply in wrong]) / sum(reply.n_wrong for reply in wrong)
    assert none.limits(100) == tuple(np.ceil(12.5 + 50 * share).tolist())


def test_rows_that_join_leave_the_mean_and_are_known(rng: np.random.Generator) -> None:
    rows = one_class_of_equal_rows(rng, 900)
    parts = [[array[a : a + 300] for array in rows] for a in (0, 300, 600)]
    reference, coef = rng.normal(size=16), rng.normal(size=16)
    reduced = ReducedRows([answer(NearQuery(reference, 0.05), part) for part in parts])

    def check() -> list[CheckReply]:
        query = CheckQuery(coef, reference, 0.05, 0.0, reduced.known, (900,) * 3)
        return [answer(query, part, part=k) for k, part in enumerate(parts)]

    total = reduced.rows()
    sums = total.combine(total.weights), total.weights.sum()
    first = check()
    above = [reply.wrong.take(reply.wrong.short > 0.0) for reply in first]
    reduced.join(first, 10_000)
    assert sum(reply.n_wrong for reply in check()) == 0
    now = reduced.rows()
    # Rows below stay in the sum; rows above are added to it.
    added = sum(rows.weights @ rows.features for rows in above)
    np.testing.assert_allclose(now.combine(now.weights), sums[0] + added, atol=1e-12)
    assert now.weights.sum() == pytest.approx(sums[1] + sum(rows.weights.sum() for rows in above))
    assert np.unique(now.features, axis=0).shape == now.features.shape


def test_a_reduction_knows_what_it_left_out() -> None:
    rows = np.array([[1.0], [0.0], [0.2]]), np.ones(3), np.array([0.5, 0.25, 0.25])

    def reduced(width: float) -> ReducedRows:
        return ReducedRows([answer(NearQuery(np.ones(1), width), rows)])

    two = reduced(0.5)
    # The second and the third row are one row, their mean.
    assert two.rows().features.tolist() == [[1.0], [0.1]]
    assert two.rows().weights.tolist() == [0.5, 0.5]
    assert two.mean_is_tight(np.array([10.0]))
    assert not two.mean_is_tight(np.array([9.9]))
    assert not two.mean_is_tight(np.array([10.1]))
    assert [reduced(width).whole for width in (0.5, 0.9, 1.0)] == [False, False, True]
    assert not reduced(1.0).mean_is_tight(np.array([10.0]))
    assert reduced(1.0).rows().n_rows == 3


def test_margins_whose_sum_overflows_are_finite() -> None:
    rows = HingeExamples(np.full((4000, 1), 1e305), np.ones(4000), np.ones(4000))
    assert np.isfinite(row_queries._margins(rows, 0, np.ones(1))).all()
