"""Learning over landmarks: classes, splits and parameters from one set of aligned products."""

import pickle

import numpy as np
import pytest

from slts.execution import ThreadMapper
from slts.learning import one_vs_rest_features, solve_metric, solve_separator
from slts.learning.landmark import (
    LandmarkData,
    bbs_decisions,
    fit_bbs,
    fit_slts,
    project,
    slts_decisions,
)
from slts.learning.landmark_parts import Held, metrics_in_parts, separators_in_parts
from slts.learning.metric import strength_of

GAMMAS = (1e-4, 1e-3, 1e-2, 1e-1, 1.0, 10.0)
LAMS = (0.1, 1.0, 10.0)
PAIRS = [(gamma, lam) for gamma in GAMMAS for lam in LAMS]


def make(rng, *, m=40, n=8, d=3, n_classes=3, weights=None):
    codes = np.arange(m) % n_classes
    landmark_codes = np.arange(n) % n_classes
    T = rng.normal(scale=0.15, size=(m, n, d, d))
    T[:, :, 0, 0] += np.where(codes[:, None] == landmark_codes, 0.4, -0.1)
    T /= np.linalg.norm(T, axis=(2, 3)).max()
    K = np.trace(T, axis1=2, axis2=3)
    weights = np.ones(m) if weights is None else weights
    return LandmarkData(K, T, codes, landmark_codes, weights, n_classes)


@pytest.fixture(params=[2, 3], ids=["two classes", "three classes"])
def data(request, rng):
    return make(rng, n_classes=request.param)


def test_two_classes_are_one_problem(rng):
    assert list(make(rng, n_classes=2).positives) == [1]
    assert list(make(rng, n_classes=3).positives) == [0, 1, 2]


def test_class_sums_add_the_products_of_each_class(data):
    sums = data.class_sums()
    for k in range(data.n_classes):
        expected = data.products[:, data.landmark_codes == k].sum(axis=1)
        np.testing.assert_allclose(sums[:, k], expected, rtol=1e-12, atol=1e-15)


def test_a_class_without_landmarks_sums_to_zero(rng):
    data = make(rng, n=2, n_classes=3)
    np.testing.assert_array_equal(data.class_sums()[:, 2], 0.0)


def test_fewer_landmarks_are_the_first_ones(data):
    few = data.first_landmarks(3)
    assert few.n_landmarks == 3
    np.testing.assert_array_equal(few.products, data.products[:, :3])
    np.testing.assert_array_equal(few.similarities, data.similarities[:, :3])
    np.testing.assert_array_equal(few.codes, data.codes)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_projection_is_the_inner_product_with_each_metric(dtype, data, rng):
    metrics = rng.normal(size=(4, 3, 3))
    T = data.products.astype(dtype)
    single = LandmarkData(None, T, data.codes, data.landmark_codes, data.weights, data.n_classes)
    K = project(single, metrics)
    assert K.dtype == np.float64
    assert K.flags.c_contiguous
    expected = np.einsum("ijde,cde->cij", data.products, metrics)
    np.testing.assert_allclose(K, expected, rtol=0, atol=1e-12 if dtype == np.float64 else 1e-5)


def test_a_fit_is_a_metric_and_a_separator_for_every_class(data):
    gamma, lam = 0.03, 0.5
    model = fit_slts(data, gamma, lam)
    for k, positive in enumerate(data.positives):
        Z = one_vs_rest_features(data.class_sums(), positive, data.n_landmarks)
        labels = data.labels(positive)
        metric = solve_metric(Z, labels, gamma=gamma, lam=lam)
        np.testing.assert_array_equal(model.metrics[k], metric.metric)
        K = np.einsum("ijde,de->ij", data.products, metric.metric)
        separator = solve_separator(K, labels, gamma=gamma)
        assert model.separators[k].objective == pytest.approx(separator.objective, rel=2e-6)
        assert model.says_yes or not (K @ model.coef[k] > 0).any()


def test_at_the_identity_there_is_a_separator_only(data):
    model = fit_bbs(data, 0.05)
    assert model.metrics is None
    assert model.metric_solutions == ()
    for k, positive in enumerate(data.positives):
        separator = solve_separator(data.similarities, data.labels(positive), gamma=0.05)
        np.testing.assert_array_equal(model.coef[k], separator.coef)


def test_held_out_decisions_are_those_of_a_model_of_the_other_series(data):
    train, test = np.arange(30), np.arange(30, 40)
    part = LandmarkData(
        data.similarities[train], data.products[train], data.codes[train], data.landmark_codes,
        data.weights[train], data.n_classes,
    )  # fmt: skip
    at_identity = bbs_decisions(data, train, test, [0.1, 0.02])
    assert at_identity.shape == (2, 10, len(data.positives))
    for values, gamma in zip(at_identity, [0.1, 0.02], strict=True):
        coef = fit_bbs(part, gamma).coef
        np.testing.assert_allclose(values, data.similarities[test] @ coef.T, rtol=0, atol=1e-6)
    learned = slts_decisions(data, train, test, [(0.1, 0.1), (0.02, 1.0)])
    for values, (gamma, lam) in zip(learned, [(0.1, 0.1), (0.02, 1.0)], strict=True):
        model = fit_slts(part, gamma, lam)
        K = np.einsum("ijde,cde->ijc", data.products[test], model.metrics)
        expected = np.einsum("ijc,cj->ic", K, model.coef)
        np.testing.assert_allclose(values, expected, rtol=0, atol=1e-3)


def test_the_labels_of_held_out_series_are_not_looked_at(data):
    train, test = np.arange(30), np.arange(30, 40)
    other = data.codes.copy()
    other[test] = (other[test] + 1) % data.n_classes
    disguised = LandmarkData(
        data.similarities, data.products, other, data.landmark_codes, data.weights, data.n_classes
    )
    for decide, parameters in ((bbs_decisions, [0.05]), (slts_decisions, [(0.05, 0.1)])):
        np.testing.assert_array_equal(
            decide(data, train, test, parameters), decide(disguised, train, test, parameters)
        )


def test_the_papers_pairs_have_thirteen_strengths():
    assert len({strength_of(*pair) for pair in PAIRS}) == 13


def test_pairs_of_equal_strength_have_equal_decisions_in_the_order_given(data):
    train, test = np.arange(30), np.arange(30, 40)
    order = np.random.default_rng(0).permutation(len(PAIRS))
    values = slts_decisions(data, train, test, PAIRS)
    shuffled = slts_decisions(data, train, test, [PAIRS[k] for k in order])
    # Which of two equal pairs is solved depends on the order; both are optimal to the gap.
    np.testing.assert_allclose(shuffled, values[order], rtol=0, atol=1e-3)
    np.testing.assert_array_equal(
        values[PAIRS.index((0.1, 0.1))], values[PAIRS.index((0.01, 10.0))]
    )


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_progress_counts_the_problems(n_jobs, data):
    seen = []
    fit_bbs(data, 0.05, n_jobs=n_jobs, progress=lambda done, total: seen.append((done, total)))
    total = len(data.positives)
    assert seen == [(k + 1, total) for k in range(total)]


def test_threads_change_nothing(data):
    one, two = (fit_slts(data, 0.05, 0.1, n_jobs=n) for n in (1, 2))
    np.testing.assert_array_equal(one.coef, two.coef)
    np.testing.assert_array_equal(one.metrics, two.metrics)


class Recording(ThreadMapper):
    """Remembers the bytes that all parts are sent together, and those of every part alone."""

    def __init__(self):
        super().__init__(1)
        self.common, self.own = [], []

    def map(self, task, parts, common=None, own=None, *, progress=None):
        self.common.append(len(pickle.dumps(common)))
        self.own.append(max(len(pickle.dumps(own(part))) for part in range(len(parts))))
        return super().map(task, parts, common, own, progress=progress)


def test_coefficients_travel_once_not_to_every_part(rng):
    data = make(rng, m=6000, n=200, d=2)
    weights = np.full(300, 1 / 6000)
    cuts = range(0, 6000, 300)
    sample = LandmarkData(
        data.similarities[::5], data.products[::5], data.codes[::5], data.landmark_codes,
        data.weights[::5], 3,
    )  # fmt: skip
    mapper = Recording()
    sums = data.class_sums()
    parts = [[(data.codes[b:][:300], weights, sums[b:][:300])] for b in cuts]
    metrics = metrics_in_parts(Held(mapper, parts, 6000), sample, gamma=0.1, lam=0.1)
    parts = [[(data.codes[b:][:300], weights, data.similarities[b:][:300, None])] for b in cuts]
    planes = separators_in_parts(Held(mapper, parts, 6000), sample, None, gamma=0.1)
    for k in data.positives:
        Z, y = one_vs_rest_features(sums, k, data.n_landmarks), data.labels(k)
        known = solve_metric(Z, y, gamma=0.1, lam=0.1)
        assert metrics[k].primal == pytest.approx(known.primal, rel=1e-6)
        plane = solve_separator(data.similarities, y, gamma=0.1)
        assert abs(planes[k].objective - plane.objective) <= 1e-6 * max(plane.objective, 1e-2)
    # The positions of known rows are a part's own: at most 300 in each of three problems.
    assert max(mapper.common) > 3 * 8 * data.n_landmarks
    assert max(mapper.own) < 3 * (8 * 300 + 200)
    assert min(mapper.own) < 200
