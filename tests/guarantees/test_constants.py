"""Sharp constants: where they are attained, that they hold on data, where the paper's fail."""

import math

import numpy as np
import pytest

import slts
from slts.guarantees import bounds
from slts.learning import one_vs_rest_features, solve_metric


def losses(metric, Z, labels, gamma):
    margins = labels * np.tensordot(Z, metric, axes=metric.ndim) / gamma
    return np.maximum(0.0, 1.0 - margins)


def one_step(vectors):
    """Unit vectors as series of a single step: T is their outer product."""
    return slts.as_series(np.asarray(vectors)[:, :, np.newaxis], layout="channels_first")


def test_aligned_products_have_nuclear_norm_at_most_one():
    X, _ = slts.datasets.load("japanese_vowels", "train")
    T = slts.aligned_products(X[:30], X[100:130])
    nuclear = np.linalg.svd(T, compute_uv=False).sum(axis=-1)
    assert nuclear.max() <= 1 + 1e-12
    constant = np.tile([[0.6], [0.8]], 7)
    assert np.linalg.norm(slts.aligned_products([constant])[0, 0]) == pytest.approx(1.0)


def test_similarity_is_bounded_by_the_operator_norm(rng):
    X, _ = slts.datasets.load("japanese_vowels", "train")
    M = rng.normal(size=(12, 12))
    assert np.abs(slts.similarity(X[:20], X[50:80], metric=M)).max() <= np.linalg.norm(M, 2)


@pytest.mark.parametrize("strength", [0.5, 1.0, 4.0])
def test_stability_constant_is_attained(strength):
    """One channel, all Z = 1, one label flipped: the loss moves by exactly kappa/m."""
    gamma, m = 0.5, 10
    lam = strength / gamma**2
    Z, labels = np.ones((m, 1, 1)), np.ones(m)
    before = solve_metric(Z, labels, gamma=gamma, lam=lam).metric
    flipped = labels.copy()
    flipped[0] = -1.0
    after = solve_metric(Z, flipped, gamma=gamma, lam=lam).metric
    wrong = -np.ones(1)
    change = abs(losses(after, Z[:1], wrong, gamma) - losses(before, Z[:1], wrong, gamma))
    kappa = bounds.stability_constant(gamma, lam)
    np.testing.assert_allclose(change, kappa / m, rtol=1e-9)
    # The paper's constant is four times as large, with one channel.
    np.testing.assert_allclose(4 * change, 4 / (gamma**2 * lam) / m, rtol=1e-9)


@pytest.fixture(scope="module")
def vowels():
    """Four channels of Japanese Vowels, speaker 1 against the rest, with 12 landmarks."""
    X, y = slts.datasets.load("japanese_vowels", "train")
    X = slts.as_series([x[:4] for x in X])
    order = np.random.default_rng(0).permutation(len(X))
    landmarks, rest = order[:12], order[12:]
    T = slts.aligned_products(X[rest], X[landmarks])
    codes = (y == y[0]).astype(int)
    sums = np.stack([T[:, codes[landmarks] == k].sum(axis=1) for k in range(2)], axis=1)
    return one_vs_rest_features(sums, 1, 12), np.where(codes[rest] == 1, 1.0, -1.0)


@pytest.mark.parametrize("strength", [1e-4, 1e-2, 0.1, 1.0])
def test_replacing_one_series_moves_no_loss_beyond_the_constant(vowels, strength):
    Z, labels = vowels
    m, gamma, tol = 80, 0.1, 1e-10
    lam = strength / gamma**2
    allowed = bounds.stability_constant(gamma, lam) / m
    original = solve_metric(Z[:m], labels[:m], gamma=gamma, lam=lam, tol=tol)
    before = losses(original.metric, Z, labels, gamma)
    largest = 0.0
    for i, new in [(0, 100), (7, 120), (33, 140), (79, 200)]:
        for label in (-1.0, 1.0):
            chosen, signs = np.arange(m), labels[:m].copy()
            chosen[i], signs[i] = new, label
            other = solve_metric(Z[chosen], signs, gamma=gamma, lam=lam, tol=tol)
            after = losses(other.metric, Z, labels, gamma)
            largest = max(largest, float(np.abs(after - before).max()))
    assert 0 < largest <= allowed


@pytest.mark.parametrize("strength", [1e-5, 1e-3, 0.1, 1.0, 10.0])
def test_norm_and_range_of_the_loss(vowels, strength):
    Z, labels = vowels
    gamma, lam = 0.1, strength / 0.1**2
    solution = solve_metric(Z[:150], labels[:150], gamma=gamma, lam=lam)
    norm = np.linalg.norm(solution.metric)
    radius = bounds.margin_radius(gamma, lam)
    assert norm / gamma <= radius * (1 + 1e-9)
    assert solution.loss + 2 * lam * norm**2 <= 1 + 1e-9
    everyone = losses(solution.metric, np.concatenate([Z, Z]), np.append(labels, -labels), gamma)
    assert everyone.max() <= 1 + radius
    assert np.ptp(everyone) <= bounds.loss_range(radius)


def test_counterexample_to_the_papers_lemma_contradictory_series():
    """Two equal series of opposite labels: M = 0 and the loss is 1, for any gamma and lam."""
    gamma, lam, d = 10.0, 10.0, 6
    X = one_step([np.eye(d)[0]] * 2)
    T = slts.aligned_products(X, X[:1])
    solution = solve_metric(T[:, 0], [1.0, -1.0], gamma=gamma, lam=lam)
    np.testing.assert_array_equal(solution.metric, 0.0)
    claimed = bounds.paper_loss_bound(d, gamma, lam)
    assert claimed == pytest.approx(0.11, abs=1e-3)
    assert losses(solution.metric, T[:, 0], np.array([1.0, -1.0]), gamma).min() == 1.0 > claimed


def test_counterexample_to_the_papers_lemma_with_a_metric_that_learned():
    """Five series against three that differ from them: the three have loss 1.0014."""
    gamma, lam, d = 3.0, 10.0, 2
    near = [math.cos(0.01), math.sin(0.01)]
    X = one_step([[1.0, 0.0]] * 5 + [near] * 3)
    labels = np.array([1.0] * 5 + [-1.0] * 3)
    Z = slts.aligned_products(X, X[:1])[:, 0]
    solution = solve_metric(Z, labels, gamma=gamma, lam=lam)
    claimed = bounds.paper_loss_bound(d, gamma, lam)
    assert claimed == pytest.approx(0.21, abs=2e-3)
    found = losses(solution.metric, Z, labels, gamma)
    assert np.linalg.norm(solution.metric) > 0
    assert found.max() == pytest.approx(1.0014, abs=5e-5)
    assert found.max() <= 1 + bounds.margin_radius(gamma, lam)


def test_where_the_papers_lemma_is_safe():
    for d in (1, 2, 12):
        edge = math.sqrt(2 * d) - 1 / math.sqrt(2)
        for gamma, lam in [(0.9 * edge, 1.0), (0.3 * edge, 9.0)]:
            radius = 1 / (gamma * math.sqrt(2 * lam))
            assert bounds.paper_loss_bound(d, gamma, lam) >= 1 + radius
