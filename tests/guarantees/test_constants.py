"""Sharp constants: where they are attained, that they hold on data, where the paper's fail."""

import math

import numpy as np
import pytest

import slts
from slts.guarantees import bounds
from tests.data import solve_metric

GAMMA = 0.1


def paper_loss_bound(d, gamma, lam):
    return math.sqrt(2 * d) / (gamma * math.sqrt(lam))


def losses(metric, Z, labels, gamma):
    margins = labels * np.tensordot(Z, metric, axes=metric.ndim) / gamma
    return np.maximum(0.0, 1.0 - margins)


@pytest.fixture(scope="module")
def vowels():
    """Z of four channels of Japanese Vowels, speaker 1 against the rest, with 12 landmarks."""
    X, y = slts.datasets.load("japanese_vowels", "train")
    X, labels = slts.as_series([x[:4] for x in X]), np.where(y == y[0], 1.0, -1.0)
    landmarks, rest = np.split(np.random.default_rng(0).permutation(len(X)), [12])
    T = slts.aligned_products(X[rest], X[landmarks])
    assert np.linalg.svd(T, compute_uv=False).sum(axis=-1).max() <= 1 + 1e-12
    return np.einsum("j,ijde->ide", labels[landmarks] / 12, T), labels[rest]


@pytest.mark.parametrize("strength", [0.5, 1.0, 4.0])
def test_stability_constant_is_attained(strength):
    """One channel, all Z = 1, one label flipped: the loss moves by exactly kappa/m."""
    gamma, m = 0.5, 10
    lam, Z, labels = strength / gamma**2, np.ones((m, 1, 1)), np.ones(m)
    before = solve_metric(Z, labels, gamma=gamma, lam=lam).metric
    flipped = np.append(-1.0, labels[1:])
    after = solve_metric(Z, flipped, gamma=gamma, lam=lam).metric
    change = [losses(M, Z[:1], -np.ones(1), gamma) for M in (after, before)]
    kappa = bounds.stability_constant(gamma, lam)
    np.testing.assert_allclose(abs(change[0] - change[1]), kappa / m, rtol=1e-9)


@pytest.mark.parametrize("strength", [1e-4, 1e-2, 0.1, 1.0])
def test_replacing_one_series_moves_no_loss_beyond_the_constant(vowels, strength):
    Z, labels = vowels
    m, settings = 80, {"gamma": GAMMA, "lam": strength / GAMMA**2, "tol": 1e-10}
    before = losses(solve_metric(Z[:m], labels[:m], **settings).metric, Z, labels, GAMMA)
    changes = []
    for i, new in [(0, 100), (33, 140), (79, 200)]:
        for label in (-1.0, 1.0):
            chosen, signs = np.arange(m), labels[:m].copy()
            chosen[i], signs[i] = new, label
            other = solve_metric(Z[chosen], signs, **settings)
            changes.append(np.abs(losses(other.metric, Z, labels, GAMMA) - before).max())
    assert 0 < max(changes) <= bounds.stability_constant(GAMMA, settings["lam"]) / m


@pytest.mark.parametrize("strength", [1e-5, 1e-3, 0.1, 1.0, 10.0])
def test_norm_and_range_of_the_loss(vowels, strength):
    Z, labels = vowels
    lam = strength / GAMMA**2
    solution = solve_metric(Z[:150], labels[:150], gamma=GAMMA, lam=lam)
    norm, radius = np.linalg.norm(solution.metric), bounds.margin_radius(GAMMA, lam)
    assert norm / GAMMA <= radius * (1 + 1e-9)
    assert solution.loss + 2 * lam * norm**2 <= 1 + 1e-9
    everyone = losses(solution.metric, np.concatenate([Z, Z]), np.append(labels, -labels), GAMMA)
    assert everyone.max() <= 1 + radius
    assert np.ptp(everyone) <= bounds.loss_range(radius)


@pytest.mark.parametrize(
    ("gamma", "lam", "angle", "counts", "claimed", "loss"),
    [(10.0, 10.0, 0.0, (1, 1), 0.11, 1.0), (3.0, 10.0, 0.01, (5, 3), 0.21, 1.0014)],
    ids=["contradictory series", "a metric that learned"],
)
def test_counterexamples_to_the_papers_lemma(gamma, lam, angle, counts, claimed, loss):
    """Series of one step, with opposite labels and nearly the same direction."""
    d = 6 if angle == 0.0 else 2
    vectors = np.zeros((sum(counts), d, 1))
    vectors[:, 0] = 1.0
    vectors[counts[0] :, :2, 0] = math.cos(angle), math.sin(angle)
    labels = np.repeat([1.0, -1.0], counts)
    X = slts.as_series(vectors, layout="channels_first")
    Z = slts.aligned_products(X, X[:1])[:, 0]
    metric = solve_metric(Z, labels, gamma=gamma, lam=lam).metric
    assert paper_loss_bound(d, gamma, lam) == pytest.approx(claimed, abs=5e-3)
    assert losses(metric, Z, labels, gamma).max() == pytest.approx(loss, abs=5e-5)
    assert loss <= 1 + bounds.margin_radius(gamma, lam)
    assert metric.any() == (angle != 0.0)
