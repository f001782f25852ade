"""The bounds from training series: formulas by hand, compression, validity, and the document."""

import math

import numpy as np
import pytest
from scipy import stats

import slts
from slts.guarantees.bounds import kl_inverse, margin_radius, stability_bound
from study import bounds
from tests.data import solve_metric, solve_separator
from tests.study import synthetic


@pytest.fixture
def population(rng):
    """Unit vectors in the plane and noisy labels, 400 of them equally likely."""
    angle = rng.uniform(0, np.pi, size=400)
    labels = np.where((angle < 1.3) ^ (rng.uniform(size=400) < 0.1), 1.0, -1.0)
    return np.column_stack([np.cos(angle), np.sin(angle)]), labels


@pytest.mark.parametrize(("gamma", "lam", "small", "large"), [
    (0.01, 0.1, 49, 9.0), (0.1, 0.1, 5.0, 0.91), (1.0, 0.1, 0.57, 0.11), (1.0, 10, 0.015, 0.003),
])  # fmt: skip
def test_penalties_of_the_norm_bound_have_the_published_size(gamma, lam, small, large):
    """For 216 and 6500 series."""
    radius = margin_radius(gamma, lam)
    penalties = [bounds.norm_bound(0, radius, m, 0.05) for m in (216, 6500)]
    assert penalties == pytest.approx([small, large], rel=0.15)


@pytest.mark.parametrize("delta", [0.6, 0.05, 1e-4])
@pytest.mark.parametrize("m", [10, 270, 100_000])
def test_the_norm_bound_never_exceeds_that_of_stability(m, delta):
    for strength in np.geomspace(1e-9, 1e3, 49):
        norm = bounds.norm_bound(0.1, margin_radius(1.0, strength), m, delta)
        stability = stability_bound(0.1, m, 1.0, strength, delta, excluded=0, gap=0.0)
        assert norm <= stability * (1 + 1e-12)


def test_metric_norm_bound_by_hand():
    risk, norm, square, m, gamma, lam, delta = 0.07, 2.0, 0.3, 216, 0.1, 0.1, 0.05
    p = margin_radius(gamma, lam)
    radius = min(p * 2 ** (-k / 2) for k in range(20) if p * 2 ** (-k / 2) >= norm)
    z2 = float(kl_inverse(square, math.log(2 / delta) / m))
    expected = risk + 2 * radius * math.sqrt(z2 / m)
    expected += min(1 + radius, 2 * radius) * math.sqrt(math.log(40 / delta) / (2 * m))
    value = bounds.metric_norm_bound(risk, norm, square, m, p, delta)
    assert value == pytest.approx(expected, rel=1e-6)


def test_pac_bayes_bound_by_brute_force(rng):
    cosines = np.clip(rng.normal(0.4, 0.2, size=300), -1, 1)
    best = np.inf
    for mu in 0.5 * (math.sqrt(600) / 0.5) ** (np.arange(24) / 23):
        for s in np.arange(13) * 0.25:
            gibbs = np.mean(stats.norm.cdf(s - mu * cosines))
            budget = (mu**2 / 2 + math.log(2 * math.sqrt(300) * 24 * 13 / 0.05) + 2.0) / 300
            grid = np.linspace(gibbs, 1 - 1e-12, 20_001)
            kl = gibbs * np.log(gibbs / grid) + (1 - gibbs) * np.log((1 - gibbs) / (1 - grid))
            best = min(best, grid[kl <= budget].max() / stats.norm.cdf(s))
    assert bounds.pac_bayes_bound(cosines, 0.05, choices=2.0) == pytest.approx(best, abs=1e-4)


@pytest.mark.parametrize(("m", "k", "expected"), [
    (6500, 10, 0.040), (3250, 10, 0.058), (6500, 30, 0.069), (3250, 30, 0.106),
])  # fmt: skip
def test_compression_bound_has_the_published_values(m, k, expected):
    coef = (np.arange(100) < k).astype(float)
    scheme = bounds.Compression(coef, np.arange(k - 1), round(0.01 * m))
    assert scheme.bound(m, 0.05) == pytest.approx(expected, abs=1.5e-3)


@pytest.mark.parametrize("n_tight", [2, 3])
def test_compression_bound_by_counting(n_tight):
    """With two tight examples, the signs of three weights are needed."""
    value = bounds.Compression(np.array([0, 1, 1, 0, 1.0]), np.arange(n_tight), 2).bound(60, 0.1)
    choices = 2 * 5 * math.comb(5, 3) * math.comb(60, n_tight) * (2**3 if n_tight == 2 else 1)
    assert stats.binom.cdf(2, 60 - n_tight, value) == pytest.approx(0.1 / choices)


@pytest.mark.parametrize("gamma", [0.02, 0.2, 2.0])
def test_weights_are_rebuilt_from_few_examples(rng, gamma):
    for _ in range(20):
        K = rng.normal(size=(60, 8))
        labels = np.where(K[:, 0] + rng.normal(size=60) > 0, 1.0, -1.0)
        coef = solve_separator(K, labels, gamma=gamma).coef
        scheme, used = bounds.compress(K, labels, coef, gamma), np.flatnonzero(coef)
        binds = np.abs(coef).sum() * gamma >= 1 - 1e-9
        assert len(scheme.tight) == len(used) - binds
        np.testing.assert_allclose(scheme.coef, coef, rtol=1e-6, atol=1e-9)
        # Nothing but the tight rows, the columns and the signs enter the solution.
        rows, right = labels[scheme.tight, np.newaxis] * K[np.ix_(scheme.tight, used)], []
        if binds:
            rows, right = np.vstack([rows, np.sign(coef[used])]), [1 / gamma]
        right = np.append(np.ones(len(scheme.tight)), right)
        np.testing.assert_allclose(np.linalg.solve(rows, right), coef[used], rtol=1e-6)
        rest = np.setdiff1d(np.arange(60), scheme.tight)
        assert scheme.errors == np.count_nonzero(labels[rest] * (K[rest] @ coef) <= 0)


def test_weights_that_are_no_vertex_are_not_rebuilt(rng):
    K = rng.normal(size=(60, 8))
    for coef in (rng.normal(size=8), np.zeros(8)):
        assert bounds.compress(K, np.where(K[:, 0] > 0, 1.0, -1.0), coef, 0.01) is None
    # Both margins are one to 1e-6, but nearly parallel rows have other weights.
    K = np.array([[1.0, 0.0], [1.0, 1e-4], [2.0, 1.0]])
    assert bounds.compress(K, np.ones(3), np.array([1.0, 0.005]), 0.01) is None


@pytest.mark.slow
@pytest.mark.parametrize("gamma", [0.1, 1.0])
def test_bounds_on_a_separator_fail_in_at_most_a_share_delta_of_the_draws(population, gamma, rng):
    (vectors, labels), m, delta, draws = population, 40, 0.1, 100
    K = np.column_stack([vectors @ vectors[:6].T, rng.uniform(-1, 1, (400, 4))])
    failures = {"compression": 0, "PAC-Bayes": 0}
    for _ in range(draws):
        drawn = rng.choice(400, size=m)
        coef = solve_separator(K[drawn], labels[drawn], gamma=gamma).coef
        scheme, used = bounds.compress(K[drawn], labels[drawn], coef, gamma), np.flatnonzero(coef)
        if scheme is not None:
            wrong = labels * (K @ scheme.coef) <= 0
            failures["compression"] += scheme.bound(m, delta) < wrong.mean()
        scores = labels * (K @ coef)
        cosines = scores / np.linalg.norm(K[:, used], axis=1) / np.linalg.norm(coef)
        choices = bounds.log_choices(10, len(used))
        value = bounds.pac_bayes_bound(cosines[drawn], delta, choices=choices)
        failures["PAC-Bayes"] += value < np.mean(scores <= 0)
    assert max(failures.values()) <= delta * draws, failures


def mean_features(vectors, landmarks, signs):
    """Z of one-step series, x (mean of l'b)', as rows."""
    return np.einsum("id,e->ide", vectors, signs @ landmarks / len(landmarks))


def hinge(metric, Z, labels, gamma):
    return np.maximum(0.0, 1.0 - labels * np.tensordot(Z, metric, axes=2) / gamma)


@pytest.mark.slow
@pytest.mark.parametrize("strength", [0.02, 0.6])
def test_bounds_on_a_metric_fail_in_at_most_a_share_delta_of_the_draws(population, strength, rng):
    """The metric is learned from all draws, 8 landmarks included. The others bound its risk."""
    (vectors, labels), gamma, delta, draws = population, 0.5, 0.1, 100
    lam, failures = strength / gamma**2, {"norm": 0, "norm of M": 0}
    radius = margin_radius(gamma, lam)
    for _ in range(draws):
        drawn = rng.integers(400, size=40)
        landmarks, rest = np.split(drawn, [8])
        Z = mean_features(vectors, vectors[landmarks], labels[landmarks])
        M = solve_metric(Z[drawn], labels[drawn], gamma=gamma, lam=lam).metric
        losses, square = hinge(M, Z, labels, gamma), np.sum(Z[rest] ** 2, axis=(1, 2)).mean()
        risk, norm = losses[rest].mean(), np.linalg.norm(M) / gamma
        failures["norm"] += bounds.norm_bound(risk, radius, 32, delta) < losses.mean()
        value = bounds.metric_norm_bound(risk, norm, square, 32, radius, delta)
        failures["norm of M"] += value < losses.mean()
    assert max(failures.values()) <= delta * draws, failures


@pytest.mark.slow
def test_goodness_over_the_population(population, rng):
    """The bounds that docs/bounds.md states, for a fixed similarity and for learned metrics."""
    (vectors, labels), gamma, delta, draws, m, n = population, 0.5, 0.1, 100, 25, 15
    K, lam, everyone = vectors @ vectors.T, 0.05 / gamma**2, mean_features(vectors, vectors, labels)
    true_epsilon, log = hinge(np.eye(2), everyone, labels, gamma).mean(), math.log(1 / delta)
    spread = min(1 + 1 / gamma, 2 / gamma) ** 2 / m + 4 / (gamma**2 * n)
    fixed = math.sqrt(log / 2 * spread)
    learned = margin_radius(gamma, lam) * (1 + math.sqrt(2 * log)) / math.sqrt(n)
    failures = {"fixed": 0, "learned": 0}
    for _ in range(draws):
        rows, columns = rng.integers(400, size=m), rng.integers(400, size=n)
        sample = K[np.ix_(rows, columns)], labels[rows], labels[columns]
        failures["fixed"] += slts.goodness(*sample, gamma, 1.0).epsilon + fixed < true_epsilon
        Z = mean_features(vectors, vectors[columns], labels[columns])
        M = solve_metric(Z[::8], labels[::8], gamma=gamma, lam=lam).metric
        risks = [hinge(M, z, labels, gamma).mean() for z in (Z, everyone)]
        failures["learned"] += risks[0] + learned < risks[1]
    assert max(failures.values()) <= delta * draws, failures


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:Every one-vs-rest problem predicts the negative class")
def test_the_section_of_the_page_is_replaced(tmp_path):
    text, errors, risks = elements = bounds.document(
        synthetic.load("arabic_digits"), "the command", n_landmarks=(6, 5), strengths=(0.1,)
    )
    assert "the command" in text
    assert [row[0] for row in errors.rows] == ["6", "5"]
    assert risks.header[1:] == (
        "mean loss",
        "norm of M",
        "norm",
        "stability",
        "the paper's theorem",
    )
    page = tmp_path / "page.md"
    page.write_text(f"# Bounds\n\n{bounds.HEADING}\n\nold figures\n")
    bounds.write_section(page, elements)
    assert page.read_text().startswith(f"# Bounds\n\n{bounds.HEADING}\n\nThis command")
    assert "old figures" not in page.read_text()
