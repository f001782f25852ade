"""Over simulated draws every bound fails in at most a share delta of them.

The populations are finite, so true risks are exact. Series have one step, so an aligned product is
an outer product. 1000 draws, which cost little without a solver, detect a bound that fails with
probability 0.13 instead of 0.1.
"""

import numpy as np
import pytest

import slts
from slts.guarantees import bounds, fit_certified
from slts.guarantees.goodness import (
    chosen_landmarks_bound,
    goodness,
    goodness_bound,
    population_goodness,
)
from slts.guarantees.split import compress
from slts.learning import solve_metric, solve_separator

pytestmark = pytest.mark.slow

DRAWS, GROUP_DRAWS, CHEAP_DRAWS, DELTA, GAMMA = 100, 300, 1000, 0.1, 0.5


@pytest.fixture(scope="module")
def population():
    """Unit vectors in the plane and noisy labels, 400 of them equally likely."""
    rng = np.random.default_rng(1)
    angle = rng.uniform(0, np.pi, size=400)
    labels = np.where((angle < 1.3) ^ (rng.uniform(size=400) < 0.1), 1.0, -1.0)
    return np.column_stack([np.cos(angle), np.sin(angle)]), labels


def outer_features(vectors, landmarks, landmark_labels):
    """Z of one-step series: x (mean of l'b)'."""
    centre = landmark_labels @ landmarks / len(landmarks)
    return np.einsum("id,e->ide", vectors, centre)


def hinge(metric, Z, labels):
    margins = labels * np.tensordot(Z, metric, axes=2) / GAMMA
    return np.maximum(0.0, 1.0 - margins)


def cosines(scores, norm, features):
    return scores / (norm * np.linalg.norm(features.reshape(len(features), -1), axis=1))


def test_products_of_one_step_series_are_outer_products(population):
    vectors, labels = population
    T = slts.aligned_products(vectors[:5, :, np.newaxis], vectors[5:9, :, np.newaxis])
    np.testing.assert_allclose(
        np.tensordot(T, labels[5:9], axes=(1, 0)) / 4,
        outer_features(vectors[:5], vectors[5:9], labels[5:9]),
    )


@pytest.mark.parametrize("strength", [0.02, 0.6])
def test_bounds_on_the_metric_with_landmarks_from_the_sample(population, strength, rng):
    """Trained on everything, landmarks included; certified on the others. Risks given landmarks."""
    vectors, labels = population
    m, n, lam = 40, 8, strength / GAMMA**2
    failures = dict.fromkeys(["norm", "a priori", "stability", "paper", "PAC-Bayes"], 0)
    for _ in range(DRAWS):
        drawn = rng.integers(len(vectors), size=m)
        Z = outer_features(vectors, vectors[drawn[:n]], labels[drawn[:n]])
        solution = solve_metric(Z[drawn], labels[drawn], gamma=GAMMA, lam=lam)
        M, rest = solution.metric, drawn[n:]
        losses = hinge(M, Z, labels)
        truth, risk, size = losses.mean(), losses[rest].mean(), np.mean(Z[rest] ** 2) * 4
        given = (GAMMA, lam, DELTA)
        found = {
            "norm": bounds.norm_hinge_bound(risk, np.linalg.norm(M), size, m - n, *given),
            "a priori": bounds.a_priori_norm_bound(risk, m - n, *given),
            "stability": bounds.stability_bound(risk, m, *given, excluded=n, gap=solution.gap),
            "paper": bounds.paper_bound(losses[drawn].mean(), m, 2, *given),
        }
        for name, value in found.items():
            failures[name] += value < truth
        scores = labels * np.tensordot(Z, M, axes=2)
        q = cosines(scores, np.linalg.norm(M), Z)
        failures["PAC-Bayes"] += bounds.pac_bayes_bound(q[rest], DELTA) < np.mean(scores <= 0)
    assert max(failures.values()) <= DELTA * DRAWS, failures


def test_stability_with_fixed_landmarks(population, rng):
    vectors, labels = population
    Z = outer_features(vectors, vectors[:5], labels[:5])
    failures, m, lam = 0, 30, 0.6 / GAMMA**2
    for _ in range(DRAWS):
        drawn = rng.integers(len(vectors), size=m)
        M = solve_metric(Z[drawn], labels[drawn], gamma=GAMMA, lam=lam).metric
        losses = hinge(M, Z, labels)
        value = bounds.stability_bound(losses[drawn].mean(), m, GAMMA, lam, DELTA)
        failures += value < losses.mean()
    assert failures <= DELTA * DRAWS


def upper_bounds(errors, n, delta=DELTA):
    different, positions = np.unique(errors, return_inverse=True)
    found = [bounds.clopper_pearson(int(e), n, delta) for e in different]
    return np.array(found)[positions]


@pytest.mark.parametrize(("n", "rate"), [(20, 0.02), (50, 0.15), (200, 0.5)])
def test_clopper_pearson(n, rate, rng):
    errors = rng.binomial(n, rate, size=CHEAP_DRAWS)
    assert np.count_nonzero(upper_bounds(errors, n) < rate) <= DELTA * CHEAP_DRAWS


def test_clopper_pearson_of_the_best_of_several_models(rng):
    n, rate, n_models = 100, 0.1, 6
    errors = rng.binomial(n, rate, size=(CHEAP_DRAWS, n_models)).min(axis=1)
    shared = upper_bounds(errors, n, DELTA / n_models)
    assert np.count_nonzero(shared < rate) <= DELTA * CHEAP_DRAWS
    # Without the division the bound of the winner is wrong too often.
    assert np.count_nonzero(upper_bounds(errors, n) < rate) > DELTA * CHEAP_DRAWS


@pytest.mark.parametrize(
    ("n_groups", "rate", "spread"), [(20, 0.3, 0.02), (10, 0.1, 0.5), (40, 0.05, 4.0)]
)
def test_the_error_of_a_new_group(n_groups, rate, spread, rng):
    """Error rates differ between groups (beta; nearly all or nothing at 0.02), sizes too."""
    parameters = spread * rate, spread * (1 - rate)
    failures = {"groups": 0, "series": 0}
    for _ in range(GROUP_DRAWS):
        sizes = rng.integers(5, 60, size=n_groups)
        errors = rng.binomial(sizes, rng.beta(*parameters, size=n_groups))
        value = bounds.group_error_bound(np.mean(errors / sizes), n_groups, DELTA)
        failures["groups"] += value < rate
        pooled = bounds.clopper_pearson(int(errors.sum()), int(sizes.sum()), DELTA)
        failures["series"] += pooled < rate
    assert failures["groups"] <= DELTA * GROUP_DRAWS, failures
    # Series of one group are not independent draws: their bound is wrong too often.
    assert failures["series"] > DELTA * GROUP_DRAWS, failures


@pytest.mark.parametrize("rate", [0.02, 0.5])
def test_the_interval_of_the_accuracy_of_a_new_group(rate, rng):
    means = rng.beta(2 * rate, 2 * (1 - rate), size=(GROUP_DRAWS, 12)).mean(axis=1)
    missed = 0
    for mean in means:
        low, high = bounds.group_accuracy_interval(float(mean), 12, 1 - DELTA)
        missed += not low <= rate <= high
    assert missed <= DELTA * GROUP_DRAWS


def test_hold_out_hinge(population, rng):
    vectors, labels = population
    Z = outer_features(vectors, vectors[:5], labels[:5])
    M = np.array([[1.0, 0.3], [-0.2, 0.8]])
    losses, norm = hinge(M, Z, labels), np.linalg.norm(M, 2)
    samples = losses[rng.integers(len(losses), size=(CHEAP_DRAWS, 40))].mean(axis=1)
    values = [bounds.hold_out_hinge_bound(risk, norm, 40, GAMMA, DELTA) for risk in samples]
    assert np.count_nonzero(np.array(values) < losses.mean()) <= DELTA * CHEAP_DRAWS


@pytest.mark.parametrize("gamma", [0.1, 1.0])
def test_bounds_on_a_separator_learned_on_the_sample(population, gamma, rng):
    """Similarity and landmarks fixed, as in the split."""
    vectors, labels = population
    K = np.column_stack([vectors @ vectors[:6].T, rng.uniform(-1, 1, size=(len(vectors), 4))])
    m, failures, rebuilt = 40, {"compression": 0, "PAC-Bayes": 0}, 0
    for _ in range(DRAWS):
        drawn = rng.choice(len(vectors), size=m)
        coef = solve_separator(K[drawn], labels[drawn], gamma=gamma).coef
        used = np.flatnonzero(coef)
        scheme = compress(K[drawn], labels[drawn], coef, gamma)
        if scheme is not None:
            rebuilt += 1
            value = bounds.compression_bound(
                scheme.errors, m, K.shape[1], len(used), len(scheme.tight), DELTA,
                radius_binds=scheme.radius_binds,
            )  # fmt: skip
            failures["compression"] += value < np.mean(labels * (K @ scheme.coef) <= 0)
        scores = labels * (K @ coef)
        q = cosines(scores, np.linalg.norm(coef), K[:, used])[drawn]
        extra = bounds.choice_of_landmarks(K.shape[1], len(used))
        value = bounds.pac_bayes_bound(q, DELTA, extra=extra)
        failures["PAC-Bayes"] += value < np.mean(scores <= 0)
    assert rebuilt >= 0.99 * DRAWS
    assert max(failures.values()) <= DELTA * DRAWS, failures


def test_pac_bayes_for_metric_and_separator_from_one_sample(population, rng):
    vectors, labels = population
    landmarks, signs = vectors[:6], labels[:6]
    T = np.einsum("id,je->ijde", vectors, landmarks)
    Z, m, lam = outer_features(vectors, landmarks, signs), 40, 0.02 / GAMMA**2
    failures = 0
    for _ in range(DRAWS):
        drawn = rng.integers(len(vectors), size=m)
        M = solve_metric(Z[drawn], labels[drawn], gamma=GAMMA, lam=lam).metric
        K = np.tensordot(T, M, axes=2)
        coef = solve_separator(K[drawn], labels[drawn], gamma=GAMMA).coef
        used = np.flatnonzero(coef)
        scores = labels * (K @ coef)
        norm = np.linalg.norm(np.multiply.outer(coef, M))
        q = cosines(scores, norm, T[:, used])[drawn]
        extra = bounds.choice_of_landmarks(6, len(used))
        failures += bounds.pac_bayes_bound(q, DELTA, extra=extra) < np.mean(scores <= 0)
    assert failures <= DELTA * DRAWS


def test_goodness_bounds(population, rng):
    vectors, labels = population
    K = vectors @ vectors.T
    true_margins = labels * (K @ labels) / len(labels)
    truth = np.maximum(0.0, 1.0 - true_margins / GAMMA).mean()
    m, n, failures = 25, 10, {"all": 0, "chosen": 0}
    for _ in range(DRAWS):
        rows, columns = rng.integers(len(labels), size=m), rng.integers(len(labels), size=n)
        block = K[np.ix_(rows, columns)]
        everyone = goodness(block, labels[rows], labels[columns], GAMMA, 1.0)
        value = goodness_bound(everyone.epsilon, m, n, GAMMA, DELTA)
        failures["all"] += value < truth
        found = goodness(block, labels[rows], labels[columns], GAMMA, 0.3)
        margins = labels * (K[:, columns] @ (found.weights * labels[columns])) / GAMMA
        value = chosen_landmarks_bound(found.epsilon, m, n, GAMMA, DELTA)
        failures["chosen"] += value < np.maximum(0.0, 1.0 - margins).mean()
    assert max(failures.values()) <= DELTA * DRAWS, failures


def test_population_goodness(population, rng):
    """M may depend on the landmarks: it is the best for them within the radius."""
    vectors, labels = population
    n, lam, failures = 15, 0.05 / GAMMA**2, 0
    radius = bounds.margin_radius(GAMMA, lam)
    everyone = outer_features(vectors, vectors, labels)
    for _ in range(DRAWS):
        drawn = rng.integers(len(vectors), size=n)
        Z = outer_features(vectors, vectors[drawn], labels[drawn])
        M = solve_metric(Z[::8], labels[::8], gamma=GAMMA, lam=lam).metric
        value = population_goodness(hinge(M, Z, labels).mean(), radius, n, DELTA)
        failures += value < hinge(M, everyone, labels).mean()
    assert failures <= DELTA * DRAWS


def drawn_series(rng, size):
    """One-step series and noisy labels, from a population without ties."""
    angle = rng.uniform(0, np.pi, size=size)
    labels = np.where((angle < 1.3) ^ (rng.uniform(size=size) < 0.1), "low", "high")
    return slts.as_series(np.column_stack([np.cos(angle), np.sin(angle)])[:, :, np.newaxis]), labels


def test_certificates_of_whole_fits(rng):
    """Split, fit, certify: what is said of the deployed classifier, against its error."""
    everyone, truth = drawn_series(rng, 1000)
    estimator = slts.SLTSClassifier(12, gamma=0.05, lam=1.0, calibration_cv=None, random_state=0)
    names = ("hold-out error", "compression", "PAC-Bayes, separator")
    failures, draws = dict.fromkeys(names, 0), 30
    for seed in range(draws):
        X, y = drawn_series(rng, 90)
        model, certificate = fit_certified(estimator, X, y, delta=DELTA, random_state=seed)
        error = np.mean(model.predict(everyone) != truth)
        for name in names:
            failures[name] += certificate[name].value < error
    assert max(failures.values()) <= DELTA * draws, failures
