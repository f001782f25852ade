"""Queries about rows: replies are true, and merge independently of blocks and parts."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from slts.learning.row_queries import (
    CheckQuery,
    CheckReply,
    NearQuery,
    NearReply,
    Own,
    ReducedRows,
)
from tests.learning.problems import answer, one_class_of_equal_rows, problem


def check_query(
    coef: np.ndarray, reference: np.ndarray, known: np.ndarray, limit: int
) -> CheckQuery:
    return CheckQuery(coef, reference, 0.0, (Own(known, limit),))


@pytest.mark.parametrize("limit", [0, 5, 10_000])
def test_replies_merge_associatively(rng: np.random.Generator, limit: int) -> None:
    rows = problem("weights", rng, 400, 3)
    reference, coef = rng.normal(size=3), rng.normal(size=3)
    known = np.arange(0, 400, 9)
    queries: list[tuple[Any, Any]] = [
        (NearQuery(reference, 0.3), NearReply),
        (NearQuery(reference, 0.5, rate=100.0, seed=3), NearReply),
        (check_query(coef, reference, known, limit), CheckReply),
    ]
    for query, kind in queries:
        blocks = [
            answer(query, [array[b : b + 50] for array in rows], first=b) for b in range(0, 400, 50)
        ]
        whole = answer(query, rows)
        left = kind.merged([kind.merged(blocks[:3]), kind.merged(blocks[3:])])
        right = kind.merged([kind.merged(blocks[:6]), blocks[6], kind.merged(blocks[7:])])
        for other in (left, right):
            assert other.loss == pytest.approx(whole.loss, rel=1e-12)
            one, two = (r.near if kind is NearReply else r.wrong for r in (other, whole))
            np.testing.assert_array_equal(one.index, two.index)
            np.testing.assert_array_equal(one.features, two.features)
            np.testing.assert_array_equal(one.weights, two.weights)
            if kind is NearReply:
                assert (other.n_rows, other.n_below) == (whole.n_rows, whole.n_below)
                np.testing.assert_allclose(other.vector, whole.vector, rtol=1e-10, atol=1e-14)
            else:
                assert other.n_wrong == whole.n_wrong
                assert not np.isin(two.index, known).any()
                assert len(two.index) == min(limit, whole.n_wrong)


def test_replies_are_true(rng: np.random.Generator) -> None:
    X, y, w = rows = problem("weights", rng, 300, 4)
    reference, coef = rng.normal(size=4), rng.normal(size=4)
    before, after = y * (X @ reference), y * (X @ coef)
    reply = answer(NearQuery(reference, 0.4), rows, first=10)
    near = (np.abs(before - 1.0) <= 0.4) & (w > 0.0)
    below = (before < 1.0) & ~near & (w > 0.0)
    np.testing.assert_array_equal(reply.near.index, np.flatnonzero(near) + 10)
    np.testing.assert_allclose(reply.near.features, (X * y[:, None])[near])
    np.testing.assert_allclose(reply.vector, (w * y * below) @ X, atol=1e-15)
    assert reply.weight == pytest.approx(w[below].sum())
    checked = answer(check_query(coef, reference, reply.near.index, 7), rows, first=10)
    wrong = ((before < 1.0) != (after < 1.0)) & ~near & (w > 0.0)
    score = w * np.abs(after - 1.0) * wrong
    assert checked.n_wrong == np.count_nonzero(wrong)
    np.testing.assert_array_equal(checked.wrong.index, np.sort(np.argsort(-score)[:7]) + 10)
    assert checked.loss == pytest.approx(float(w @ np.maximum(1.0 - after, 0.0)))


def test_a_random_choice_is_right_on_average(rng: np.random.Generator) -> None:
    rows = problem("weights", rng, 20_000, 3)
    reference = rng.normal(size=3)
    whole = answer(NearQuery(reference, 0.5), rows)
    some = answer(NearQuery(reference, 0.5, rate=4000.0, seed=1), rows)
    assert 0 < some.near.index.size < 0.5 * whole.near.index.size
    assert some.near.weights.sum() == pytest.approx(whole.near.weights.sum(), rel=0.1)
    assert some.weight == whole.weight


@pytest.mark.parametrize("limit", [3, 10_000])
def test_a_merged_row_stands_for_all_its_positions(rng: np.random.Generator, limit: int) -> None:
    X, y, w = rows = one_class_of_equal_rows(rng, 2000)
    signed = X * y[:, None]
    reference, coef = np.zeros(16), rng.normal(size=16)
    coef[15] = 1.5
    reply = answer(NearQuery(reference, np.inf), rows, step=300)
    checked = answer(check_query(coef, reference, np.arange(0, 2000, 7), limit), rows, step=300)
    assert reply.near.n_rows < 1300 < reply.near.index.size == reply.n_rows == 2000
    assert checked.wrong.n_rows == min(limit, checked.n_wrong) < checked.wrong.index.size
    assert not np.any(checked.wrong.index % 7 == 0)
    heaviest = checked.wrong.take(checked.score >= checked.score.max())
    for found in (reply.near, checked.wrong, heaviest):
        assert np.all(np.diff(found.index) > 0)
        np.testing.assert_array_equal(found.features[found.owner], signed[found.index])
        sums = np.bincount(found.owner, weights=w[found.index])
        np.testing.assert_allclose(found.weights, sums, rtol=1e-12)
    again = answer(check_query(coef, reference, reply.near.index, limit), rows, step=300)
    assert again.n_wrong == 0


def test_merged_rows_are_drawn_once_and_others_as_often_as_they_occur(
    rng: np.random.Generator,
) -> None:
    rows = one_class_of_equal_rows(rng, 2000)
    for merge, copies in ((True, 1), (False, 200)):
        query = NearQuery(np.zeros(16), np.inf, rate=500.0, seed=1, merge=merge)
        drawn = answer(query, rows).near
        same = drawn.features[:, 15] == 1.0
        assert np.count_nonzero(same) == pytest.approx(copies, rel=0.2)
        assert drawn.weights[same].sum() == pytest.approx(0.4, rel=0.2)
        assert np.count_nonzero(~same) == pytest.approx(300, rel=0.2)


def test_only_known_rows_and_limits_differ_between_parts(rng: np.random.Generator) -> None:
    owns = (Own(np.arange(3), 10), Own(np.arange(5, 9), 4))
    check = CheckQuery(rng.normal(size=4), rng.normal(size=4), 1e-9, owns)
    near = NearQuery(rng.normal(size=4), 0.3)
    assert near.own(1) is None
    assert near.common().with_own(near.own(1)) is near
    assert check.common().owns == ()
    for part in (0, 1):
        joined = check.common().with_own(check.own(part))
        assert joined.owns == (owns[part],)
        assert joined.slack == check.slack
        assert joined.coef is check.coef
        assert joined.reference is check.reference


def test_the_limit_is_shared_evenly_and_by_rows_sent_or_wrong(rng: np.random.Generator) -> None:
    rows = problem("noisy", rng, 400, 2)
    ends = [0, 100, 200, 300, 400]
    parts = [[array[a:b] for array in rows] for a, b in pairwise(ends)]
    reference = np.zeros(2)
    none = ReducedRows([answer(NearQuery(reference, 0.5), part) for part in parts])
    assert [own.limit for own in none.owns(100)] == [25] * 4
    last = [answer(NearQuery(reference, 0.5 if k < 3 else np.inf), parts[k]) for k in range(4)]
    assert [own.limit for own in ReducedRows(last).owns(100)] == [13, 13, 13, 63]
    coef = rng.normal(size=2)
    queries = [check_query(coef, reference, own.known, own.limit) for own in none.owns(100)]
    wrong = [answer(query, part) for query, part in zip(queries, parts, strict=True)]
    none.join(wrong, 100)
    share = np.array([reply.n_wrong for reply in wrong]) / sum(reply.n_wrong for reply in wrong)
    assert [own.limit for own in none.owns(100)] == np.ceil(12.5 + 50 * share).tolist()
