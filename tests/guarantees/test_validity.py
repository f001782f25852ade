"""Over simulated draws every bound fails in at most a share delta of them.

The populations are finite, so true risks are exact. Series have one step, so an aligned product is
an outer product. 1000 draws, which cost little without a solver, detect a bound that fails with
probability 0.13 instead of 0.1.
"""

import numpy as np
import pytest

import slts
from slts.guarantees import bounds
from tests.data import solve_metric

pytestmark = pytest.mark.slow

DRAWS, GROUP_DRAWS, CHEAP_DRAWS, DELTA, GAMMA = 100, 300, 1000, 0.1, 0.5


@pytest.fixture(scope="module")
def population():
    """Unit vectors in the plane and noisy labels, 400 of them equally likely."""
    rng = np.random.default_rng(1)
    angle = rng.uniform(0, np.pi, size=400)
    labels = np.where((angle < 1.3) ^ (rng.uniform(size=400) < 0.1), 1.0, -1.0)
    vectors = np.column_stack([np.cos(angle), np.sin(angle)])
    T = slts.aligned_products(vectors[:5, :, np.newaxis], vectors[5:6, :, np.newaxis])
    np.testing.assert_allclose(T[:, 0], outer_features(vectors[:5], vectors[5:6], np.ones(1)))
    return vectors, labels


def outer_features(vectors, landmarks, landmark_labels):
    """Z of one-step series: x (mean of l'b)'."""
    centre = landmark_labels @ landmarks / len(landmarks)
    return np.einsum("id,e->ide", vectors, centre)


def hinge(metric, Z, labels):
    margins = labels * np.tensordot(Z, metric, axes=2) / GAMMA
    return np.maximum(0.0, 1.0 - margins)


@pytest.mark.parametrize("n_landmarks", [0, 8], ids=["fixed landmarks", "from the sample"])
@pytest.mark.parametrize("strength", [0.02, 0.6])
def test_bounds_on_the_metric(population, strength, n_landmarks, rng):
    """Trained on everything, landmarks included; certified on the others. Risks given landmarks."""
    vectors, labels = population
    m, lam = 40, strength / GAMMA**2
    failures = dict.fromkeys(["stability", "paper"], 0)
    for _ in range(DRAWS):
        drawn = rng.integers(len(vectors), size=m)
        chosen, rest = drawn[:n_landmarks] if n_landmarks else range(5), drawn[n_landmarks:]
        Z = outer_features(vectors, vectors[chosen], labels[chosen])
        solution = solve_metric(Z[drawn], labels[drawn], gamma=GAMMA, lam=lam)
        losses = hinge(solution.metric, Z, labels)
        risk, constants = losses[rest].mean(), (GAMMA, lam, DELTA)
        values = (
            bounds.stability_bound(risk, m, *constants, excluded=n_landmarks, gap=solution.gap),
            bounds.paper_bound(losses[drawn].mean(), m, 2, *constants),
        )
        for name, value in zip(failures, values, strict=True):
            failures[name] += value < losses.mean()
    assert max(failures.values()) <= DELTA * DRAWS, failures


@pytest.mark.parametrize(("n", "rate"), [(20, 0.02), (50, 0.15), (200, 0.5)])
def test_the_error_of_the_best_of_several_models(n, rate, rng):
    n_models, failures = 6, {"single": 0, "shared": 0, "not shared": 0}
    for errors in rng.binomial(n, rate, size=(CHEAP_DRAWS, n_models)):
        failures["single"] += bounds.clopper_pearson(int(errors[0]), n, DELTA) < rate
        best = int(errors.min())
        failures["shared"] += bounds.clopper_pearson(best, n, DELTA / n_models) < rate
        failures["not shared"] += bounds.clopper_pearson(best, n, DELTA) < rate
    assert max(failures["single"], failures["shared"]) <= DELTA * CHEAP_DRAWS, failures
    # Without the division the bound of the winner is wrong too often, unless errors are rare.
    assert (failures["not shared"] > DELTA * CHEAP_DRAWS) == (rate > 0.1), failures


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
