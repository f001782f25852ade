"""SLTS and BBS: problems, splits and parameters from one set of alignments."""

from dataclasses import replace

import numpy as np
import pytest

import slts
from slts.training.landmark_fit import Alignments, fit_landmarks
from tests.data import clusters, solve_metric, solve_separator, waves
from tests.training.options import landmark_options, training_set

PAIRS = [
    {"gamma": gamma, "lam": lam} for gamma in (1e-3, 1e-2, 1e-1, 1.0) for lam in (0.1, 1.0, 10.0)
]
SPLIT = np.arange(30), np.arange(30, 40)


def make(rng, *, m=40, n=8, d=3, n_classes=3, n_jobs=1):
    """Products whose first entry is larger if series and landmark are of one class."""
    codes, landmark_codes = np.arange(m) % n_classes, np.arange(n) % n_classes
    T = rng.normal(scale=0.15, size=(m, n, d, d))
    T[:, :, 0, 0] += np.where(codes[:, None] == landmark_codes, 0.4, -0.1)
    T /= np.linalg.norm(T, axis=(2, 3)).max()
    weights = np.linspace(0.5, 1.5, m)
    return Alignments(T, codes, landmark_codes, weights, n_classes, "frobenius", n_jobs)


def at_identity(data):
    """The same alignments for M = I."""
    return replace(data, values=np.trace(data.values, axis1=2, axis2=3))


@pytest.fixture(params=[2, 3], ids=["two classes", "three classes"])
def data(request, rng):
    return make(rng, n_classes=request.param)


@pytest.fixture(params=["products", "similarities"])
def either(request, data):
    return data if request.param == "products" else at_identity(data)


def test_every_class_has_a_metric_and_a_separator(data):
    gamma, lam = 0.03, 0.5
    metrics, separators, positive = data.solve(gamma, lam)
    assert len(metrics) == len(separators) == (1 if data.n_classes == 2 else 3)
    plain, (nothing, identity, _) = [], at_identity(data).solve(gamma, lam)
    assert nothing == []
    for k, code in enumerate(data.positives):
        labels = np.where(data.codes == code, 1.0, -1.0)
        signs = np.where(data.landmark_codes == code, 1.0, -1.0)
        Z = np.einsum("ijde,j->ide", data.values, signs) / data.n_landmarks
        how = {"gamma": gamma, "sample_weight": data.weights}
        expected = solve_metric(Z, labels, lam=lam, **how).metric
        np.testing.assert_allclose(metrics[k].metric, expected, atol=1e-9)
        K = np.einsum("ijde,de->ij", data.values, metrics[k].metric)
        separator = solve_separator(K, labels, **how)
        assert separators[k].objective == pytest.approx(separator.objective, rel=2e-6)
        plain.append(K @ separator.coef)
        separator = solve_separator(at_identity(data).values, labels, **how)
        np.testing.assert_array_equal(identity[k].coef, separator.coef)
    assert positive == bool((np.array(plain) > 0).any())


def test_held_out_decisions_are_those_of_a_model_of_the_other_series(either):
    train, test = SPLIT
    pairs = [{"gamma": 0.1, "lam": 0.1}, {"gamma": 0.02, "lam": 1.0}]
    (decisions,) = either.held_out_decisions([SPLIT], pairs)
    assert decisions.shape == (2, 10, len(either.positives))
    for values, pair in zip(decisions, pairs, strict=True):
        metrics, separators, _ = either.take(train, either.weights[train]).solve(**pair)
        for k, separator in enumerate(separators):
            K = either.values
            if metrics:
                K = np.einsum("ijde,de->ij", either.values, metrics[k].metric)
            tolerance = 1e-3 if metrics else 1e-6
            np.testing.assert_allclose(values[:, k], K[test] @ separator.coef, atol=tolerance)
    # The labels of held-out series are not used.
    codes = either.codes.copy()
    codes[test] = (codes[test] + 1) % either.n_classes
    other = replace(either, codes=codes).held_out_decisions([SPLIT], pairs)
    np.testing.assert_array_equal(other, [decisions])


def test_pairs_of_equal_strength_have_equal_decisions_in_any_order(data):
    order = np.random.default_rng(0).permutation(len(PAIRS))
    (values,) = data.held_out_decisions([SPLIT], PAIRS)
    (turned,) = data.held_out_decisions([SPLIT], [PAIRS[k] for k in order])
    # The order decides which of two equal pairs is solved; both are optimal to the gap.
    np.testing.assert_allclose(turned, values[order], rtol=0, atol=1e-3)
    one, other = {"gamma": 0.1, "lam": 0.1}, {"gamma": 0.01, "lam": 10.0}
    np.testing.assert_array_equal(values[PAIRS.index(one)], values[PAIRS.index(other)])


def test_threads_change_nothing(either):
    one, four = (replace(either, n_jobs=n) for n in (1, 4))
    np.testing.assert_array_equal(
        one.held_out_decisions([SPLIT], PAIRS), four.held_out_decisions([SPLIT], PAIRS)
    )
    for a, b in zip(one.solve(0.05, 0.1)[1], four.solve(0.05, 0.1)[1], strict=True):
        np.testing.assert_array_equal(a.coef, b.coef)


# ---- the whole fit


@pytest.mark.parametrize("learns_metric", [True, False])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_decisions_are_similarities_times_weights(learns_metric, n_classes):
    data = training_set(*clusters(30, n_classes=n_classes))
    options = landmark_options(learns_metric=learns_metric, n_landmarks=8)
    fit = fit_landmarks(data, options)
    n_problems = 1 if n_classes == 2 else n_classes
    metrics = fit.model.coefs[0][:, 0, 0]
    stages = ["metric", "separator"] if learns_metric else ["separator"]
    assert [report.stage for report in fit.reports] == n_problems * stages
    landmarks = [data.series[data.positions[i]] for i in fit.landmark_indices]
    assert fit.model.aligned[0].landmarks == slts.as_series(landmarks)
    decisions = fit.model.decide(data.series, options.resources)
    expected = np.stack(
        [
            slts.similarity(data.series, landmarks, metric=metric if learns_metric else None)
            @ weights
            for metric, weights in zip(metrics, fit.model.aligned[0].weights, strict=True)
        ],
        axis=1,
    )
    np.testing.assert_allclose(decisions, expected, atol=1e-12)


def limited(most, **how):
    """Options whose memory is enough for the alignments of some series with 10 landmarks."""
    n_numbers = 9 * (10 + 3 * 3)
    return landmark_options(n_landmarks=10, memory_limit=2 * 8 * n_numbers * most, **how)


def test_of_too_many_series_a_sample_is_learned_from():
    series, codes = waves(300, n_classes=3)
    some = np.flatnonzero((codes > 0) | (np.arange(300) < 36))
    data = training_set([series[i] for i in some], codes[some])
    assert fit_landmarks(data, limited(300)).n_sampled == len(data) == 212
    fit = fit_landmarks(data, limited(120))
    # The series with the smallest keys, and all of the class that has fewer than 20.
    rows = np.flatnonzero((np.arange(212) < 120) | (data.codes == 0))
    assert fit.n_sampled == len(rows) > 120
    alone = fit_landmarks(data.take(rows), limited(300))
    np.testing.assert_array_equal(alone.model.coefs[0], fit.model.coefs[0])
    with pytest.raises(ValueError, match=r"'memory_limit' parameter of SLTSClassifier"):
        fit_landmarks(data, limited(99))


def test_the_number_of_landmarks_may_be_chosen():
    data = training_set(*clusters(30, noise=1.0))
    how = {"cv": 3, "parameters": PAIRS[:4]}
    fit = fit_landmarks(data, landmark_options(n_landmarks=[4, 0.5], **how))
    assert [c["n_landmarks"] for c in fit.search.candidates] == [4] * 4 + [15] * 4
    best = fit.search.best_params
    assert fit.model.aligned[0].n_landmarks == best["n_landmarks"]
    alone = fit_landmarks(data, landmark_options(n_landmarks=best["n_landmarks"], **how))
    assert fit.chosen == alone.chosen
    np.testing.assert_array_equal(fit.model.coefs[0], alone.model.coefs[0])


def test_nothing_learned_gives_a_warning(rng):
    series = [rng.normal(size=(2, 9)) for _ in range(12)]
    options = landmark_options(
        parameters=[{"gamma": 1e300, "lam": 1.0}], regularizer="nuclear", n_landmarks=6
    )
    with pytest.warns(UserWarning, match="metric of class 1 collapsed"):
        fit_landmarks(training_set(series, np.arange(12) % 2), options)
    with (
        pytest.warns(UserWarning, match="predicts the negative class"),
        pytest.warns(UserWarning, match="collapsed"),
    ):
        fit_landmarks(training_set(series, np.arange(12) % 3), options)
