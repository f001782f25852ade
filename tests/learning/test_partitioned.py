from __future__ import annotations

import pickle
import tracemalloc
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from scipy.optimize import linprog
from scipy.sparse import csr_matrix, hstack, identity, vstack
from sklearn.exceptions import ConvergenceWarning

from slts.errors import DataError
from slts.learning import metric, separator, solve_metric, solve_separator
from slts.learning.equal_rows import distinct, lone
from slts.learning.hinge import HingeRows
from slts.learning.part_queries import (
    Check,
    CheckParts,
    CheckReply,
    PartsQuery,
    Reply,
    Split,
    SplitReply,
)
from slts.learning.partitioned import (
    MetricInParts,
    SeparatorInParts,
    metric_in_parts,
    rows_of_metric,
    rows_of_separator,
    separator_in_parts,
    solve_together,
)

Part = tuple[np.ndarray, np.ndarray, np.ndarray]
Block = tuple[np.ndarray, np.ndarray, np.ndarray, int]


def answer(query: Split | Check, blocks: Sequence[Block]) -> Any:
    """What a part answers, given as features, labels, weights and first position of its blocks."""
    replies = [query.answer(HingeRows(X, y, w), first) for X, y, w, first in blocks]
    return type(replies[0]).merged(replies)


class Parts:
    """Rows cut in parts and blocks, asked as another process would be: through pickles."""

    def __init__(self, rows: Part, cuts: Sequence[int] = (), step: int = 1 << 40) -> None:
        pieces = [np.split(array, list(cuts)) for array in rows]
        self.parts: list[Part] = list(zip(*pieces, strict=True))
        self.step = step
        self.passes = 0

    def blocks(self, part: int) -> list[tuple[np.ndarray, np.ndarray, np.ndarray, int]]:
        X, y, w = self.parts[part]
        starts = range(0, max(1, len(y)), self.step)
        return [(X[b:][: self.step], y[b:][: self.step], w[b:][: self.step], b) for b in starts]

    def ask(self, queries: dict[Any, PartsQuery]) -> dict[Any, list[Reply]]:
        self.passes += 1
        return {key: self.reply(query) for key, query in queries.items()}

    def reply(self, query: PartsQuery) -> list[Reply]:
        tasks = [
            pickle.loads(pickle.dumps(query.common().with_own(query.own(i))))
            for i in range(len(self.parts))
        ]
        return [answer(task, self.blocks(i)) for i, task in enumerate(tasks)]


def sample_of(rows: Part, index: Any) -> HingeRows:
    return HingeRows(*(array[index] for array in rows))


def metric_of(
    rows: Part, sample: HingeRows, parts: Parts, lam: float, **options: Any
) -> MetricInParts:
    solver = metric_in_parts(sample, len(rows[1]), gamma=0.5, lam=lam, **options)
    return solve_together({0: solver}, parts.ask)[0]


def separator_of(
    rows: Part, sample: HingeRows, parts: Parts, gamma: float, **options: Any
) -> SeparatorInParts:
    solver = separator_in_parts(sample, len(rows[1]), gamma=gamma, **options)
    return solve_together({0: solver}, parts.ask)[0]


def problem(kind: str, rng: np.random.Generator, m: int, p: int) -> Part:
    X = np.tanh(rng.normal(size=(m, p)) + 0.3 * rng.normal(size=(m, 1)))
    y = np.where(X @ rng.normal(size=p) > 0.0, 1.0, -1.0)
    w = np.ones(m)
    if kind != "separable":
        y[rng.random(m) < 0.1] *= -1.0
    if kind == "duplicated":
        chosen = rng.integers(max(1, m // 50), size=m)
        X, y = X[chosen], y[chosen]
    elif kind == "zero rows":
        X[::3] = 0.0
    elif kind == "all zero":
        X[:] = 0.0
    elif kind == "weights":
        w = 10.0 ** rng.uniform(-5, 1, size=m)
        w[::7] = 0.0
    elif kind == "float32":
        X = X.astype(np.float32)
    elif kind == "huge":
        X *= 1e8
    elif kind == "small":
        X *= 1e-6
    elif kind == "sorted labels":
        order = np.argsort(y, kind="stable")
        X, y = X[order], y[order]
    return X, y, w / w.sum()


KINDS = [
    "noisy",
    "separable",
    "duplicated",
    "zero rows",
    "all zero",
    "weights",
    "float32",
    "huge",
    "small",
    "sorted labels",
]
SHAPES = [(50, 1), (50, 7), (40, 100), (6000, 1), (9000, 5), (20_000, 12)]


@pytest.mark.parametrize("kind", ["noisy", "separable", "duplicated"])
def test_little_memory_gives_the_same_solution(kind: str, rng: np.random.Generator) -> None:
    """With a budget fewer rows come at a time, and perhaps more often."""
    rows = problem(kind, rng, 60_000, 40)
    sample = sample_of(rows, slice(0, 3000))
    most = []
    for budget in (np.inf, 0.0):
        parts = Parts(rows, [20_000, 45_000])
        metric_found = metric_of(rows, sample, parts, 1e-3, most_bytes=budget)
        separator_found = separator_of(rows, sample, parts, 0.1, most_bytes=budget)
        assert metric_found.converged
        assert separator_found.converged
        most.append((metric_found.primal, separator_found.objective))
    np.testing.assert_allclose(most[0], most[1], rtol=2e-6, atol=1e-8)
    assert rows_of_separator(60_000, 40, np.inf) == 8000
    assert rows_of_separator(60_000, 40, 0.0) == 5000
    assert rows_of_metric(60_000, 40, 0.0) < rows_of_metric(60_000, 40, np.inf) == 8000
    assert rows_of_metric(500, 40, np.inf) == 500


def loss_of(rows: Part, coef: np.ndarray) -> float:
    X, y, w = rows
    return float(w @ np.maximum(1.0 - y * (X.astype(np.float64) @ coef), 0.0))


def assert_same_signs(rows: Part, first: np.ndarray, second: np.ndarray, close: float) -> None:
    a, b = (rows[0].astype(np.float64) @ coef for coef in (first, second))
    sure = (np.abs(a) > close) & (np.abs(b) > close)
    np.testing.assert_array_equal(np.sign(a[sure]), np.sign(b[sure]))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("m", "p"), SHAPES)
@pytest.mark.parametrize("lam", [10.0, 1e-1, 1e-3, 1e-6])
def test_metric_is_that_of_all_rows_in_memory(
    rng: np.random.Generator, kind: str, m: int, p: int, lam: float
) -> None:
    rows = problem(kind, rng, m, p)
    unit = np.linalg.norm(rows[0].astype(float), axis=1).max() or 1.0
    lam *= unit**2
    parts = Parts(rows, [0, m // 3, m // 3, m - 2])
    sample = sample_of(rows, np.sort(rng.choice(m, min(m, 1500), replace=False)))
    found = metric_of(rows, sample, parts, lam)
    known = solve_metric(rows[0], rows[1], gamma=0.5, lam=lam, sample_weight=rows[2])
    assert found.converged
    assert found.primal == pytest.approx(
        loss_of(rows, found.metric / 0.5) + lam * np.sum(found.metric**2), rel=1e-9, abs=1e-14
    )
    assert -1e-12 <= found.gap <= 1e-6 * max(found.primal, 1e-9)
    assert found.dual <= known.primal * (1.0 + 1e-12)
    assert abs(found.primal - known.primal) <= 1e-6 * max(known.primal, 1e-9)
    assert found.loss + 2.0 * lam * np.sum(found.metric**2) <= 1.0 + 1e-9
    assert found.n_rounds == parts.passes <= 25
    assert_same_signs(rows, found.metric / 0.5, known.metric / 0.5, 5e-3)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("m", "p"), SHAPES)
@pytest.mark.parametrize("gamma", [100.0, 0.3, 0.05, 1e-4])
def test_separator_is_that_of_all_rows_in_memory(
    rng: np.random.Generator, kind: str, m: int, p: int, gamma: float
) -> None:
    rows = problem(kind, rng, m, p)
    gamma *= float(np.abs(rows[0]).max()) or 1.0
    parts = Parts(rows, [0, m // 3, m // 3, m - 2])
    sample = sample_of(rows, np.sort(rng.choice(m, min(m, 1500), replace=False)))
    found = separator_of(rows, sample, parts, gamma)
    known = solve_separator(rows[0], rows[1], gamma=gamma, sample_weight=rows[2])
    assert found.converged
    assert found.vertex
    assert found.objective == pytest.approx(loss_of(rows, found.coef), rel=1e-9, abs=1e-12)
    assert -1e-12 <= found.gap <= 1e-6 * max(found.objective, 1e-2)
    assert found.dual <= known.objective + 1e-12
    assert abs(found.objective - known.objective) <= 1e-6 * max(known.objective, 1e-2)
    assert np.abs(found.coef).sum() <= (1.0 + 1e-12) / gamma
    assert found.n_rounds == parts.passes <= 25
    if kind != "duplicated":
        assert_same_signs(rows, found.coef, known.coef, 1e-3)


@pytest.mark.parametrize("gamma", [1e-8, 1e-5])
def test_separable_rows_get_the_smallest_separator(rng: np.random.Generator, gamma: float) -> None:
    rows = problem("separable", rng, 30_000, 6)
    parts = Parts(rows, [10_000, 11_000])
    found = separator_of(rows, sample_of(rows, slice(None, None, 20)), parts, gamma)
    signed = rows[0] * rows[1][:, None]
    smallest = linprog(np.ones(12), A_ub=np.hstack([-signed, signed]), b_ub=-np.ones(30_000))
    assert found.objective <= 1e-9
    assert np.abs(found.coef).sum() == pytest.approx(smallest.fun, rel=1e-6)


@pytest.mark.parametrize("kind", ["noisy", "weights", "duplicated", "zero rows"])
@pytest.mark.parametrize("gamma", [0.05, 0.5])
def test_separator_agrees_with_the_full_linear_program(
    rng: np.random.Generator, kind: str, gamma: float
) -> None:
    m, p = 5600, 3
    rows = problem(kind, rng, m, p)
    found = separator_of(rows, sample_of(rows, slice(300)), Parts(rows, [1000, 4000]), gamma)
    A = rows[0] * rows[1][:, None]
    upper = vstack(
        [
            hstack([csr_matrix(-A), csr_matrix(A), -identity(m)]),
            csr_matrix(np.append(np.ones(2 * p), np.zeros(m))),
        ]
    )
    truth = linprog(
        np.append(np.zeros(2 * p), m * rows[2]), A_ub=upper, b_ub=np.append(-np.ones(m), 1 / gamma)
    )
    assert found.objective == pytest.approx(truth.fun / m, rel=1e-6)
    assert found.dual <= truth.fun / m * (1.0 + 1e-7)


@pytest.mark.parametrize("which", ["all", "one row", "none", "one label", "shifted"])
def test_a_bad_sample_costs_passes_not_the_answer(rng: np.random.Generator, which: str) -> None:
    rows = problem("noisy", rng, 30_000, 6)
    index: dict[str, Any] = {
        "all": slice(None),
        "one row": slice(1),
        "none": slice(0),
        "one label": np.flatnonzero(rows[1] > 0.0)[:2000],
        "shifted": slice(2000),
    }
    sample = sample_of(rows, index[which])
    if which == "shifted":
        sample = HingeRows(100.0 * sample.features[:, ::-1], -sample.labels, sample.weights)
    known = solve_metric(*rows[:2], gamma=0.5, lam=1e-2)
    found = metric_of(rows, sample, Parts(rows, [9000]), 1e-2)
    assert found.converged
    assert found.primal == pytest.approx(known.primal, rel=1e-6)
    plane = separator_of(rows, sample, Parts(rows, [9000]), 0.1)
    assert plane.converged
    assert plane.objective == pytest.approx(
        solve_separator(*rows[:2], gamma=0.1).objective, rel=1e-6
    )
    assert max(found.n_rounds, plane.n_rounds) <= 40


@pytest.mark.parametrize("kind", ["noisy", "float32", "weights"])
def test_neither_parts_nor_blocks_matter(rng: np.random.Generator, kind: str) -> None:
    rows = problem(kind, rng, 20_000, 8)
    sample = sample_of(rows, slice(None, None, 10))
    ways = [
        Parts(rows),
        Parts(rows, [0, 1, 7000, 7000, 19_999, 20_000]),
        Parts(rows, list(range(500, 20_000, 500)), step=77),
    ]
    metrics = [metric_of(rows, sample, parts, 1e-2) for parts in ways]
    planes = [separator_of(rows, sample, parts, 0.1) for parts in ways]
    for found, plane in zip(metrics[1:], planes[1:], strict=True):
        np.testing.assert_allclose(found.metric, metrics[0].metric, rtol=1e-6, atol=1e-8)
        assert found.n_rounds == metrics[0].n_rounds
        np.testing.assert_allclose(plane.coef, planes[0].coef, rtol=1e-8, atol=1e-10)
        assert plane.n_rounds == planes[0].n_rounds


def test_far_fewer_rows_travel_than_there_are(rng: np.random.Generator) -> None:
    rows = problem("noisy", rng, 200_000, 10)
    sample = sample_of(rows, slice(None, None, 50))
    parts = Parts(rows, list(range(5000, 200_000, 5000)))
    found = metric_of(rows, sample, parts, 1e-3)
    plane = separator_of(rows, sample, parts, 0.1)
    assert max(found.n_taken, plane.n_taken) < 10_000
    assert max(found.n_rounds, plane.n_rounds) <= 12
    known = solve_metric(*rows[:2], gamma=0.5, lam=1e-3)
    assert found.primal == pytest.approx(known.primal, rel=1e-6)


def test_problems_advance_together(rng: np.random.Generator) -> None:
    rows = problem("noisy", rng, 9000, 4)
    sample = sample_of(rows, slice(None, None, 5))
    parts = Parts(rows, [4000])
    lams = [1.0, 1e-2, 1e-4]
    done: list[tuple[float, float]] = []
    solvers = {lam: metric_in_parts(sample, 9000, gamma=0.5, lam=lam) for lam in lams}
    together = solve_together(solvers, parts.ask, lambda *at: done.append(at))
    assert list(together) == lams
    assert done == [(1, 3), (2, 3), (3, 3)]
    assert parts.passes == max(solution.n_rounds for solution in together.values())
    for lam in lams:
        alone = metric_of(rows, sample, Parts(rows, [4000]), lam)
        np.testing.assert_array_equal(alone.metric, together[lam].metric)


@pytest.mark.parametrize("lam", [1e-1, 1e-3, 1e-5])
def test_a_loose_metric_is_still_the_best_on_its_ray(rng: np.random.Generator, lam: float) -> None:
    rows = problem("weights", rng, 30_000, 8)
    sample = sample_of(rows, slice(None, None, 20))
    found = metric_of(rows, sample, Parts(rows, [700]), lam, tol=1e-2)
    square = lam * np.sum(found.metric**2)
    assert found.gap <= 1e-2 * found.primal
    assert found.loss + 2.0 * square <= 1.0 + 1e-12
    for factor in (0.9, 1.0 - 1e-4, 1.0 + 1e-4, 1.1):
        value = loss_of(rows, factor * found.metric / 0.5) + factor**2 * square
        assert found.primal <= value * (1.0 + 1e-12)


def test_joining_alone_ends_at_the_optimum(
    rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("slts.learning.part_search._MAX_MOVES", 0)
    rows = problem("noisy", rng, 12_000, 5)
    sample = HingeRows(-rows[0][:500], rows[1][:500], rows[2][:500])
    found = metric_of(rows, sample, Parts(rows, [700]), 1e-2)
    assert found.n_taken > 2000
    known = solve_metric(*rows[:2], gamma=0.5, lam=1e-2)
    assert found.primal == pytest.approx(known.primal, rel=1e-6)
    plane = separator_of(rows, sample, Parts(rows, [700]), 0.1)
    assert plane.objective == pytest.approx(
        solve_separator(*rows[:2], gamma=0.1).objective, rel=1e-6
    )


@pytest.mark.parametrize("share", [1e-3, 0.4])
@pytest.mark.parametrize("strength", [1e2, 1e-2, 1e-5])
def test_weights_that_sum_to_less_scale_the_problem(
    rng: np.random.Generator, share: float, strength: float
) -> None:
    X, y, w = problem("weights", rng, 400, 5)
    used = w > 0.0
    whole = HingeRows(X[used], y[used], w[used])
    part = HingeRows(X[used], y[used], share * w[used])
    np.testing.assert_allclose(part.subset(np.arange(50)).weights.sum(), share)
    one = metric.solve_rows(whole, strength, None, 1e-8, 500)
    other = metric.solve_rows(part, share * strength, None, 1e-8, 500)
    assert other.primal == pytest.approx(share * one.primal, rel=1e-7)
    assert other.dual == pytest.approx(share * one.dual, rel=1e-7)
    assert (other.n_iter == 0) == (strength == 1e2)
    plane = separator.solve_rows(whole, 0.1, 1e-6, 200)
    less = separator.solve_rows(part, 0.1, 1e-6, 200)
    assert less.objective == pytest.approx(share * plane.objective, rel=1e-6)
    assert less.objective - less.bound <= 1e-6 * less.objective


def replies_of(rows: Part, query: Split | Check, step: int) -> list[Any]:
    X, y, w = rows
    return [
        answer(query, [(X[b : b + step], y[b : b + step], w[b : b + step], b)])
        for b in range(0, len(y), step)
    ]


@pytest.mark.parametrize("limit", [0, 5, 10_000])
def test_replies_merge_associatively(rng: np.random.Generator, limit: int) -> None:
    rows = problem("weights", rng, 400, 3)
    reference, coef = rng.normal(size=3), rng.normal(size=3)
    known = np.arange(0, 400, 9)
    for query, kind in [
        (Split(reference, 0.3), SplitReply),
        (Split(reference, 0.5, rate=100.0, seed=3), SplitReply),
        (Check(coef, reference, known, 0.0, limit), CheckReply),
    ]:
        blocks = replies_of(rows, query, 50)
        whole = answer(query, [(*rows, 0)])
        left = kind.merged([kind.merged(blocks[:3]), kind.merged(blocks[3:])])
        right = kind.merged([kind.merged(blocks[:6]), blocks[6], kind.merged(blocks[7:])])
        for other in (left, right):
            assert other.loss == pytest.approx(whole.loss, rel=1e-12)
            one, two = (r.inside if kind is SplitReply else r.wrong for r in (other, whole))
            np.testing.assert_array_equal(one.index, two.index)
            np.testing.assert_array_equal(one.features, two.features)
            np.testing.assert_array_equal(one.weights, two.weights)
            if kind is SplitReply:
                assert (other.n_rows, other.n_below) == (whole.n_rows, whole.n_below)
                np.testing.assert_allclose(other.vector, whole.vector, rtol=1e-10, atol=1e-14)
            else:
                assert other.n_wrong == whole.n_wrong
                assert not np.isin(two.index, known).any()
                assert len(two.index) == min(limit, whole.n_wrong)


def test_split_and_check_say_what_the_rows_do(rng: np.random.Generator) -> None:
    X, y, w = rows = problem("weights", rng, 300, 4)
    reference, coef = rng.normal(size=4), rng.normal(size=4)
    before, after = y * (X @ reference), y * (X @ coef)
    split = answer(Split(reference, 0.4), [(*rows, 10)])
    assert isinstance(split, SplitReply)
    inside = (np.abs(before - 1.0) <= 0.4) & (w > 0.0)
    below = (before < 1.0) & ~inside & (w > 0.0)
    np.testing.assert_array_equal(split.inside.index, np.flatnonzero(inside) + 10)
    np.testing.assert_allclose(split.inside.features, (X * y[:, None])[inside])
    np.testing.assert_allclose(split.vector, (w * y * below) @ X, atol=1e-15)
    assert split.weight == pytest.approx(w[below].sum())
    check = answer(Check(coef, reference, split.inside.index, 0.0, 7), [(*rows, 10)])
    assert isinstance(check, CheckReply)
    wrong = ((before < 1.0) != (after < 1.0)) & ~inside & (w > 0.0)
    score = w * np.abs(after - 1.0) * wrong
    assert check.n_wrong == np.count_nonzero(wrong)
    np.testing.assert_array_equal(check.wrong.index, np.sort(np.argsort(-score)[:7]) + 10)
    assert check.loss == pytest.approx(float(w @ np.maximum(1.0 - after, 0.0)))


def test_a_thinned_split_is_right_on_average(rng: np.random.Generator) -> None:
    rows = problem("weights", rng, 20_000, 3)
    reference = rng.normal(size=3)
    whole = answer(Split(reference, 0.5), [(*rows, 0)])
    some = answer(Split(reference, 0.5, rate=4000.0, seed=1), [(*rows, 0)])
    assert isinstance(whole, SplitReply)
    assert isinstance(some, SplitReply)
    assert 0 < some.inside.index.size < 0.5 * whole.inside.index.size
    assert some.inside.weights.sum() == pytest.approx(whole.inside.weights.sum(), rel=0.1)
    assert some.weight == whole.weight


def test_too_few_iterations_warn_and_the_result_says_so(rng: np.random.Generator) -> None:
    rows = problem("noisy", rng, 300, 20)
    with pytest.warns(ConvergenceWarning, match="duality gap"):
        found = metric_of(rows, sample_of(rows, slice(None)), Parts(rows, [9]), 1e-4, max_iter=2)
    assert not found.converged
    assert found.loss + 2.0 * found.lam * np.sum(found.metric**2) <= 1.0 + 1e-9


def test_bad_parameters_and_rows_are_named(rng: np.random.Generator) -> None:
    rows = problem("noisy", rng, 60, 2)
    sample = sample_of(rows, slice(None))
    with pytest.raises(ValueError, match="positive and finite"):
        metric_of(rows, sample, Parts(rows), -1.0)
    with pytest.raises(ValueError, match="positive and finite"):
        separator_of(rows, sample, Parts(rows), 0.0)
    rows[0][33, 1] = np.nan
    with pytest.raises(DataError, match="Row 3 of a part"):
        metric_of(rows, sample, Parts(rows, [30]), 1.0)
    empty = (np.zeros((0, 2)), np.zeros(0), np.zeros(0))
    with pytest.raises(DataError, match="no row of positive weight"):
        metric_of(empty, sample, Parts(empty), 1.0)


def idle(rng: np.random.Generator, m: int, dtype: Any = np.float64) -> Part:
    """Two noisy classes, and one whose rows are all the same: two in five."""
    X = 0.3 * rng.normal(size=(m, 16))
    y = np.where(rng.random(m) < 0.5, 1.0, -1.0)
    X[:, 0] += 0.3 * y
    X[:, 15] = 0.0
    same = rng.random(m) < 0.4
    X[same], y[same] = np.eye(16)[15], 1.0
    return X.astype(dtype), y, np.full(m, 1.0 / m)


def merged_by_hand(rows: Part) -> Part:
    X, y, w = rows
    signed, owner = np.unique(X.astype(np.float64) * y[:, None], axis=0, return_inverse=True)
    return signed, np.ones(len(signed)), np.bincount(owner.ravel(), weights=w)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_equal_rows_count_as_one_and_cost_as_one(rng: np.random.Generator, dtype: Any) -> None:
    rows = idle(rng, 60_000, dtype)
    X, y, w = merged_by_hand(rows)
    assert len(y) < 40_000
    plane = solve_separator(X, y, gamma=0.1, sample_weight=w)
    matrix = solve_metric(X, y, gamma=0.5, lam=0.1, sample_weight=w)
    sample, parts = sample_of(rows, slice(None, None, 20)), Parts(rows, range(3000, 60_000, 3000))
    ways: dict[str, Any] = {
        "in memory": lambda: solve_separator(*rows[:2], gamma=0.1),
        "in parts": lambda: separator_of(rows, sample, parts, 0.1),
        "metric in memory": lambda: solve_metric(*rows[:2], gamma=0.5, lam=0.1),
        "metric in parts": lambda: metric_of(rows, sample, parts, 0.1),
    }
    for way, solve in ways.items():
        tracemalloc.start()
        found = solve()
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert peak < 20 * 8 * rows[0].size, way
        assert found.converged, way
        if "metric" in way:
            assert found.primal == pytest.approx(matrix.primal, rel=1e-6), way
        else:
            assert found.objective == pytest.approx(plane.objective, rel=1e-6), way
            assert found.vertex, way
        if "parts" in way:
            assert found.n_taken < 10_000, way


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_merging_keeps_the_problem_and_leaves_distinct_rows_alone(
    rng: np.random.Generator, dtype: Any
) -> None:
    rows = HingeRows(*idle(rng, 3000, dtype))
    fewer = distinct(rows)
    assert fewer.n_rows == len(merged_by_hand((rows.features, rows.labels, rows.weights))[1])
    assert fewer.features.dtype == dtype
    for coef in rng.normal(size=(3, 16)):
        loss = rows.loss(rows.margins(coef))
        assert fewer.loss(fewer.margins(coef)) == pytest.approx(loss, rel=1e-12)
    np.testing.assert_allclose(fewer.combine(fewer.weights), rows.combine(rows.weights))
    assert distinct(fewer) is fewer
    once = lone(rows)
    np.testing.assert_array_equal(once.features, fewer.features)
    np.testing.assert_array_equal(once.weights, rows.weights[: once.n_rows])
    assert lone(fewer) is fewer


def test_rows_of_equal_hash_are_told_apart(
    rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("slts.learning.equal_rows.scrambled", lambda bits: bits % np.uint64(5))
    rows = idle(rng, 3000)
    fewer = distinct(HingeRows(*rows))
    signed, _, weights = merged_by_hand(rows)
    order = np.lexsort(fewer.take(np.arange(fewer.n_rows)).T[::-1])
    taken = fewer.take(order)
    heavy = np.argmax(weights)
    mine = np.all(taken == signed[heavy], axis=1)
    assert fewer.weights[order][mine].sum() == pytest.approx(weights[heavy])
    np.testing.assert_array_equal(np.unique(taken, axis=0), signed)


@pytest.mark.parametrize("limit", [3, 10_000])
def test_a_merged_row_stands_for_all_its_positions(rng: np.random.Generator, limit: int) -> None:
    X, y, w = rows = idle(rng, 2000)
    signed = X * y[:, None]
    reference, coef = np.zeros(16), rng.normal(size=16)
    coef[15] = 1.5
    blocks = [(X[b:][:300], y[b:][:300], w[b:][:300], b) for b in range(0, 2000, 300)]
    split = answer(Split(reference, np.inf), blocks)
    assert isinstance(split, SplitReply)
    check = answer(Check(coef, reference, np.arange(0, 2000, 7), 0.0, limit), blocks)
    assert isinstance(check, CheckReply)
    assert split.inside.n_rows < 1300 < split.inside.index.size == split.n_rows == 2000
    assert check.wrong.n_rows == min(limit, check.n_wrong) < check.wrong.index.size
    assert not np.any(check.wrong.index % 7 == 0)
    for found in (split.inside, check.wrong, check.wrong.take(check.score >= check.score.max())):
        assert np.all(np.diff(found.index) > 0)
        np.testing.assert_array_equal(found.features[found.owner], signed[found.index])
        sums = np.bincount(found.owner, weights=w[found.index])
        np.testing.assert_allclose(found.weights, sums, rtol=1e-12)
    again = answer(Check(coef, reference, split.inside.index, 0.0, limit), blocks)
    assert isinstance(again, CheckReply)
    assert again.n_wrong == 0
    # Equal rows do not crowd out the others of a random choice, unless all are to be alike.
    some, like_all = (
        answer(Split(reference, np.inf, rate=500.0, seed=1, merge=merge), [(*rows, 0)])
        for merge in (True, False)
    )
    assert isinstance(some, SplitReply)
    assert isinstance(like_all, SplitReply)
    for drawn, copies in ((some.inside, 1), (like_all.inside, 200)):
        same = drawn.features[:, 15] == 1.0
        assert np.count_nonzero(same) == pytest.approx(copies, rel=0.2)
        assert drawn.weights[same].sum() == pytest.approx(0.4, rel=0.2)
        assert np.count_nonzero(~same) == pytest.approx(300, rel=0.2)


@pytest.mark.parametrize(("mean", "spread"), [(0.0, 0.05), (0.2, 0.2), (0.4, 0.2)])
def test_equal_rows_do_not_narrow_the_search(
    rng: np.random.Generator, mean: float, spread: float
) -> None:
    # The class of equal rows against the others: they are most of the rows near the margin.
    X, y, w = idle(rng, 60_000)
    y[X[:, 15] != 1.0] = -1.0
    others = y < 0.0
    X[others, 15] = rng.normal(mean, spread, size=np.count_nonzero(others))
    X[others, :15] += 0.2
    rows, parts = (X, y, w), Parts((X, y, w), range(3000, 60_000, 3000))
    found = separator_of(rows, sample_of(rows, slice(None, None, 20)), parts, 0.1)
    known = solve_separator(X, y, gamma=0.1)
    assert found.objective == pytest.approx(known.objective, rel=1e-6)
    assert found.n_rounds <= 6


def test_all_parts_together_return_no_more_rows_than_the_limit(rng: np.random.Generator) -> None:
    rows = problem("noisy", rng, 40_000, 12)
    parts = Parts(rows, range(500, 40_000, 500))
    returned: list[tuple[int, int, int]] = []

    def ask(queries: dict[Any, PartsQuery]) -> dict[Any, list[Reply]]:
        replies = parts.ask(queries)
        if isinstance(query := queries[0], CheckParts):
            checks = [reply for reply in replies[0] if isinstance(reply, CheckReply)]
            sent, wrong = sum(c.score.size for c in checks), sum(c.n_wrong for c in checks)
            returned.append((sent, wrong, query.limit))
        return replies

    sample = HingeRows(-rows[0][:2000], rows[1][:2000], rows[2][:2000])
    solver = metric_in_parts(sample, 40_000, gamma=0.5, lam=1e-4)
    found = solve_together({0: solver}, ask)[0]
    assert any(wrong > limit for _, wrong, limit in returned)
    assert all(sent <= limit + 80 for sent, _, limit in returned)
    known = solve_metric(*rows[:2], gamma=0.5, lam=1e-4)
    assert found.primal == pytest.approx(known.primal, rel=1e-6)


def test_a_limit_goes_where_rows_were_wrong() -> None:
    known = tuple(np.arange(k) for k in range(4))
    queries = [
        CheckParts(np.ones(2), np.zeros(2), known, 0.0, 100, np.array(shares, dtype=float))
        for shares in ([0, 0, 0, 0], [0, 0, 0, 7], [1, 1, 1, 1])
    ]
    limits = [[query.own(k).limit for k in range(4)] for query in queries]
    assert limits == [[25] * 4, [13, 13, 13, 63], [25] * 4]


def test_only_what_differs_between_parts_is_their_own(rng: np.random.Generator) -> None:
    known = (np.arange(3), np.arange(5, 9))
    check = CheckParts(rng.normal(size=4), rng.normal(size=4), known, 1e-9, 10, np.ones(2))
    split = Split(rng.normal(size=4), 0.3)
    assert split.own(1) is None
    assert split.common().with_own(split.own(1)) is split
    for part in (0, 1):
        own = check.own(part)
        assert own.known is known[part]
        joined = check.common().with_own(own)
        assert joined.known is known[part]
        assert (joined.slack, joined.limit) == (check.slack, own.limit)
        np.testing.assert_array_equal(joined.coef, check.coef)
        np.testing.assert_array_equal(joined.reference, check.reference)
    assert check.common().known.size == 0
