"""Alignments in memory and in parts: classes, splits and parameters from one set of products."""

import gc
import pickle
import threading
import time
import weakref
from contextlib import nullcontext
from dataclasses import replace

import numpy as np
import pytest
from slts.models.row_map import RowMap
from slts.training.memory_plan import LandmarkWork, MemoryPlan
from slts.training.metric_pipeline import metrics_at_once
from slts.training.partitioned_alignments import (
    PartAligner,
    PartitionedAlignments,
    _some_decision_is_positive,
)

import slts
from slts.alignment import Aligner, AlignmentSettings
from slts.execution import StepQueue, ThreadRunner, silent
from slts.solvers import one_vs_rest_features, solve_metric, solve_separator
from slts.training import alignments, source
from slts.training.alignments import SampleAlignments
from slts.training.scans import ArraySource

GAMMAS = (1e-4, 1e-3, 1e-2, 1e-1, 1.0, 10.0)
LAMS = (0.1, 1.0, 10.0)
PAIRS = [{"gamma": gamma, "lam": lam} for gamma in GAMMAS for lam in LAMS]


def make(rng, *, m=40, n=8, d=3, n_classes=3):
    codes = np.arange(m) % n_classes
    landmark_codes = np.arange(n) % n_classes
    T = rng.normal(scale=0.15, size=(m, n, d, d))
    T[:, :, 0, 0] += np.where(codes[:, None] == landmark_codes, 0.4, -0.1)
    T /= np.linalg.norm(T, axis=(2, 3)).max()
    return SampleAlignments(None, T, codes, landmark_codes, np.ones(m), n_classes)


def at_identity(data):
    """The same alignments for M = I."""
    K = np.trace(data.products, axis1=2, axis2=3)
    return replace(data, similarities=K, products=None)


@pytest.fixture(params=[2, 3], ids=["two classes", "three classes"])
def data(request, rng):
    return make(rng, n_classes=request.param)


def test_two_classes_are_one_problem(rng):
    assert list(make(rng, n_classes=2).positives) == [1]
    assert list(make(rng, n_classes=3).positives) == [0, 1, 2]


def test_some_of_the_series_have_a_mean_weight_of_one(rng):
    data = replace(make(rng), weights=np.arange(1.0, 41.0))
    data = replace(data, similarities=at_identity(data).similarities)
    rows = np.array([3, 8, 4])
    some = data.take(rows)
    np.testing.assert_allclose(some.weights, [4 / 6, 9 / 6, 5 / 6])
    np.testing.assert_array_equal(some.codes, data.codes[rows])
    np.testing.assert_array_equal(some.products, data.products[rows])
    np.testing.assert_array_equal(some.similarities, data.similarities[rows])
    assert data.take(np.arange(40)) is data
    assert data.first_landmarks(8) is data
    few = data.first_landmarks(3)
    np.testing.assert_array_equal(few.products, data.products[:, :3])
    np.testing.assert_array_equal(few.similarities, data.similarities[:, :3])
    assert few.landmark_codes.tolist() == [0, 1, 2]


def test_class_sums_add_the_products_of_each_class(data):
    sums = data.class_sums
    for k in range(data.n_classes):
        expected = data.products[:, data.landmark_codes == k].sum(axis=1)
        np.testing.assert_allclose(sums[:, k], expected, rtol=1e-12, atol=1e-15)


def test_a_class_without_landmarks_sums_to_zero(rng):
    data = make(rng, n=2, n_classes=3)
    np.testing.assert_array_equal(data.class_sums[:, 2], 0.0)


def test_fewer_landmarks_are_the_first_ones(data):
    few, identity = data.first_landmarks(3), at_identity(data)
    assert few.n_landmarks == 3
    np.testing.assert_array_equal(few.products, data.products[:, :3])
    np.testing.assert_array_equal(
        identity.first_landmarks(3).similarities, identity.similarities[:, :3]
    )
    np.testing.assert_array_equal(few.codes, data.codes)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_projection_is_the_inner_product_with_each_metric(dtype, data, rng):
    metrics = rng.normal(size=(4, 3, 3))
    K = replace(data, products=data.products.astype(dtype)).projected(metrics)
    assert all(own.dtype == np.float64 and own.flags.c_contiguous for own in K)
    # Memory of one is freed while others are used.
    assert all(own.base is None for own in K)
    expected = np.einsum("ijde,cde->cij", data.products, metrics)
    np.testing.assert_allclose(K, expected, rtol=0, atol=1e-12 if dtype == np.float64 else 1e-5)


def test_every_class_has_a_metric_and_a_separator(data):
    gamma, lam = 0.03, 0.5
    metrics = np.stack([s.metric for s in data.solve_metrics(gamma, lam)])
    separators, some_positive = data.solve_separators(metrics, gamma)
    for k, positive in enumerate(data.positives):
        Z = one_vs_rest_features(data.class_sums, positive, data.n_landmarks)
        labels = data.labels(positive)
        metric = solve_metric(Z, labels, gamma=gamma, lam=lam)
        np.testing.assert_array_equal(metrics[k], metric.metric)
        K = np.einsum("ijde,de->ij", data.products, metric.metric)
        separator = solve_separator(K, labels, gamma=gamma)
        assert separators[k].objective == pytest.approx(separator.objective, rel=2e-6)
        assert some_positive or not (K @ separators[k].coef > 0).any()


def test_at_the_identity_there_is_a_separator_only(data):
    data = at_identity(data)
    separators, _ = data.solve_separators(None, 0.05)
    for k, positive in enumerate(data.positives):
        separator = solve_separator(data.similarities, data.labels(positive), gamma=0.05)
        np.testing.assert_array_equal(separators[k].coef, separator.coef)


def test_held_out_decisions_are_those_of_a_model_of_the_other_series(data):
    train, test = np.arange(30), np.arange(30, 40)
    pairs = [{"gamma": 0.1, "lam": 0.1}, {"gamma": 0.02, "lam": 1.0}]
    for whole in (at_identity(data), data):
        K, T = (None if a is None else a[train] for a in (whole.similarities, whole.products))
        part = replace(whole, similarities=K, products=T, codes=whole.codes[train],
                       weights=whole.weights[train])  # fmt: skip
        (found,) = whole.held_out_decisions([(train, test)], pairs)
        assert found.shape == (2, 10, len(data.positives))
        for values, pair in zip(found, pairs, strict=True):
            metrics = None
            if T is not None:
                metrics = np.stack([s.metric for s in part.solve_metrics(**pair)])
            separators, _ = part.solve_separators(metrics, pair["gamma"])
            for k, separator in enumerate(separators):
                expected = whole.similarities_of(k, metrics)[test] @ separator.coef
                tolerance = 1e-6 if T is None else 1e-3
                np.testing.assert_allclose(values[:, k], expected, rtol=0, atol=tolerance)


def test_the_labels_of_held_out_series_are_not_used(data):
    train, test = np.arange(30), np.arange(30, 40)
    codes = data.codes.copy()
    codes[test] = (codes[test] + 1) % data.n_classes
    parameters = [{"gamma": 0.05, "lam": 0.1}]
    for whole in (at_identity(data), data):
        np.testing.assert_array_equal(
            whole.held_out_decisions([(train, test)], parameters),
            replace(whole, codes=codes).held_out_decisions([(train, test)], parameters),
        )


def test_pairs_of_equal_strength_have_equal_decisions_in_the_given_order(data):
    train, test = np.arange(30), np.arange(30, 40)
    order = np.random.default_rng(0).permutation(len(PAIRS))
    (values,) = data.held_out_decisions([(train, test)], PAIRS)
    (shuffled,) = data.held_out_decisions([(train, test)], [PAIRS[k] for k in order])
    # The order decides which of two equal pairs is solved; both are optimal to the gap.
    np.testing.assert_allclose(shuffled, values[order], rtol=0, atol=1e-3)
    one, other = {"gamma": 0.1, "lam": 0.1}, {"gamma": 0.01, "lam": 10.0}
    np.testing.assert_array_equal(values[PAIRS.index(one)], values[PAIRS.index(other)])


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_progress_counts_the_problems(n_jobs, data):
    seen = []
    replace(at_identity(data), n_jobs=n_jobs).solve_separators(
        None, 0.05, lambda done, total: seen.append((done, total))
    )
    total = len(data.positives)
    assert seen == [(k + 1, total) for k in range(total)]


def test_threads_change_nothing(data):
    train, test = np.arange(30), np.arange(30, 40)
    one, four = (replace(data, n_jobs=n) for n in (1, 4))
    for a, b in zip(one.solve_metrics(0.05, 0.1), four.solve_metrics(0.05, 0.1), strict=True):
        np.testing.assert_array_equal(a.metric, b.metric)
    # The similarities of more metrics than are computed together.
    a, b = (of.held_out_decisions([(train, test)], PAIRS)[0] for of in (one, four))
    np.testing.assert_array_equal(a, b)


def test_every_thread_solves_a_problem(rng, monkeypatch):
    together, first = threading.Barrier(4, timeout=60.0), iter(range(4))

    def solve(*args, **options):
        if next(first, None) is not None:
            together.wait()
        return solve_separator(*args, **options)

    monkeypatch.setattr(alignments, "solve_separator", solve)
    data = replace(make(rng), n_jobs=4)
    (values,) = data.held_out_decisions([(np.arange(30), np.arange(30, 40))], PAIRS)
    assert values.shape == (len(PAIRS), 10, 3)


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_alignments_are_freed_with_the_last_reference(n_jobs, rng):
    data = replace(make(rng), n_jobs=n_jobs)
    freed = weakref.ref(data)
    gc.disable()
    try:
        data.held_out_decisions([(np.arange(30), np.arange(30, 40))], PAIRS)
        del data
        assert freed() is None
    finally:
        gc.enable()


def test_problems_are_solved_while_metrics_are_learned(rng, monkeypatch):
    solved, learn = threading.Event(), alignments.solve_metric_path

    def path(*args, **options):
        *found, last = learn(*args, **options)
        yield from found
        assert solved.wait(60.0)
        yield last

    def solve(*args, **options):
        solved.set()
        return solve_separator(*args, **options)

    monkeypatch.setattr(alignments, "solve_metric_path", path)
    monkeypatch.setattr(alignments, "solve_separator", solve)
    # A thread for every class, and one more.
    data = replace(make(rng), n_jobs=4)
    (values,) = data.held_out_decisions([(np.arange(30), np.arange(30, 40))], PAIRS)
    assert values.shape == (len(PAIRS), 10, 3)


@pytest.mark.parametrize("n_jobs", [1, 3, 4])
def test_similarities_in_memory_are_those_of_a_group_and_of_running_problems(
    n_jobs, rng, monkeypatch
):
    """Also if a thread waits after it has put the step that begins the next group."""
    put = StepQueue.put

    def put_slowly(self, step, *, last=False):
        put(self, step, last=last)
        if last:
            time.sleep(0.02)

    monkeypatch.setattr(StepQueue, "put", put_slowly)
    made, freed, most, seen = [], [], [], []
    project = SampleAlignments.projection

    def counted(self, metrics):
        K, fill = project(self, metrics)
        for own in K:
            made.append(id(own))
            weakref.finalize(own, freed.append, id(own))
        most.append(len(made) - len(freed))
        return K, fill

    monkeypatch.setattr(SampleAlignments, "projection", counted)
    monkeypatch.setattr(alignments, "_BLOCK_BYTES", 2**10)
    data = replace(make(rng), n_jobs=n_jobs)
    split = np.arange(30), np.arange(30, 40)
    data.held_out_decisions([split], PAIRS, lambda *done: seen.append(done))
    # Three classes and 13 strengths in groups of three.
    assert len(most) == 13
    assert max(most) <= metrics_at_once(3) + n_jobs - 1
    assert seen == sorted(seen)
    assert seen[-1] == (39, 39)


# -- in parts


class Recording(ThreadRunner):
    """Records the bytes of the argument that parts share, and of the largest own argument."""

    def __init__(self):
        super().__init__(1)
        self.shared, self.own = [], []

    def map(self, task, parts, shared=None, own=None, *, progress=silent):
        if own is not None:
            self.shared.append(len(pickle.dumps(shared)))
            self.own.append(max(len(pickle.dumps(own(part))) for part in range(len(parts))))
        return super().map(task, parts, shared, own, progress=progress)


@pytest.fixture(autouse=True)
def sixteen_parts(monkeypatch):
    monkeypatch.setattr(source, "_LEAST_BYTES", 1024)


@pytest.fixture(scope="module")
def series():
    rng = np.random.default_rng(4)
    codes = rng.integers(3, size=1200)
    X = [rng.normal(size=(2, 4)) + 1.2 * np.eye(3, 2)[c][:, None] for c in codes]
    return slts.as_series(X), codes


def in_memory_and_in_parts(series, *, n_landmarks=40, learns_metric, weights=None):
    """The same alignments twice; every part has up to 75 series."""
    batch, codes = series
    n = len(batch)
    row_map = RowMap.fit(batch, AlignmentSettings("affinity"), homogeneous=False, scale=None)
    landmarks = row_map(batch[:n_landmarks])
    aligner = Aligner(landmarks, AlignmentSettings("affinity"))
    given = np.ones(n) if weights is None else weights

    def aligned(which):
        return SampleAlignments.align(
            aligner, row_map(batch[which]), learns_metric=learns_metric, codes=codes[which],
            landmark_codes=codes[:n_landmarks], weights=given[which] / given[which].mean(),
            n_classes=3,
        )  # fmt: skip

    runner = Recording()
    by_class = np.ones(3)
    part_aligner = PartAligner(
        row_map, aligner, np.arange(3), by_class, float(given.sum()), 32, 4096
    )
    work = LandmarkWork(
        n, batch.n_steps, 2, 2, 3, n_landmarks, 200, 0, 1e5, False, 8, learns_metric
    )
    parts = PartitionedAlignments(
        ArraySource(batch, codes, weights), runner, part_aligner, aligned(np.arange(0, n, 6)),
        MemoryPlan.make(work, 1e9, runner), n, lambda _: nullcontext(silent),
    )  # fmt: skip
    return aligned(np.arange(n)), parts, runner


@pytest.mark.parametrize("weighted", [False, True])
def test_parts_have_the_solutions_of_memory(series, weighted):
    weights = np.random.default_rng(0).choice([0.0, 0.5, 3.0], size=1200) if weighted else None
    memory, parts, _ = in_memory_and_in_parts(series, learns_metric=True, weights=weights)
    found = parts.solve_metrics(0.1, 0.1)
    for one, other in zip(memory.solve_metrics(0.1, 0.1), found, strict=True):
        assert other.converged
        assert other.objective == pytest.approx(one.objective, rel=1e-6)
        np.testing.assert_allclose(other.metric, one.metric, atol=2e-3 * abs(one.metric).max())
    metrics = np.stack([solution.metric for solution in found])
    expected = memory.solve_separators(metrics, 0.1)
    found = parts.solve_separators(metrics, 0.1)
    for one, other in zip(expected[0], found[0], strict=True):
        assert other.converged
        assert abs(other.objective - one.objective) <= 1e-6 * max(one.objective, 1e-2)
    assert found[1] == expected[1]


def test_coefficients_are_sent_once_not_to_every_part(series):
    _, parts, runner = in_memory_and_in_parts(series, n_landmarks=200, learns_metric=False)
    parts.solve_separators(None, 0.1)
    # The positions of known rows are a part's own: at most 75 in each of three problems.
    assert max(runner.shared) > 3 * 8 * 200
    assert max(runner.own) < 3 * (8 * 75 + 200)
    assert min(runner.own) < 200


def test_decisions_below_the_margin_are_positive_too(data):
    same = at_identity(data)
    separators, some_positive = same.solve_separators(None, 10.0)
    largest = max(float((same.similarities @ found.coef).max()) for found in separators)
    assert some_positive
    assert 0.0 < largest < 1.0


def test_a_decision_of_zero_is_not_positive():
    coef = np.array([[1.0, -1.0], [2.0, 0.0]])
    blocks = [(None, None, np.array([K])) for K in ([[1.0, 1.0], [0.0, 5.0]], [[1.0, 3.0]] * 2)]
    assert not _some_decision_is_positive(blocks[:1], coef, None)
    assert _some_decision_is_positive(blocks, coef, None)
