"""The bounds from training series: formulas by hand, compression, validity, and the document."""

import math

import numpy as np
import pytest
from scipy import stats

from slts.guarantees.bounds import kl_inverse, margin_radius
from slts.solvers import solve_separator
from study import bounds
from tests.study import synthetic


def test_metric_norm_bound_by_hand():
    risk, norm, square, m, gamma, lam, delta = 0.07, 2.0, 0.3, 216, 0.1, 0.1, 0.05
    p = margin_radius(gamma, lam)
    radius = min(p * 2 ** (-k / 2) for k in range(20) if p * 2 ** (-k / 2) >= norm)
    z2 = float(kl_inverse(square, math.log(2 / delta) / m))
    expected = risk + 2 * radius * math.sqrt(z2 / m)
    expected += min(1 + radius, 2 * radius) * math.sqrt(math.log(40 / delta) / (2 * m))
    value = bounds.metric_norm_bound(risk, norm, square, m, gamma, lam, delta)
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


@pytest.mark.parametrize(
    ("m", "k", "expected"),
    [(6500, 10, 0.040), (3250, 10, 0.058), (6500, 30, 0.069), (3250, 30, 0.106)],
)
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
def test_bounds_on_a_separator_fail_in_at_most_a_share_delta_of_the_draws(gamma, rng):
    angle, m, delta, draws = rng.uniform(0, np.pi, size=400), 40, 0.1, 100
    labels = np.where((angle < 1.3) ^ (rng.uniform(size=400) < 0.1), 1.0, -1.0)
    K = np.column_stack([np.cos(angle[:, np.newaxis] - angle[:6]), rng.uniform(-1, 1, (400, 4))])
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
