"""LogDet steps are the formula, M stays positive definite, and rankings count wrong pairs."""

import numpy as np
import pytest

from slts.solvers.logdet import Ranking, draw_members, logdet_step


def random_factor(rng, d):
    return np.tril(rng.normal(size=(d, d)), -1) + np.diag(rng.uniform(0.2, 2.0, size=d))


def random_step(rng, d=5, rate=0.3):
    """A factor, and the differences of a violated triplet."""
    factor = random_factor(rng, d)
    near, far = rng.normal(size=(d, 7)), 0.4 * rng.normal(size=(d, 4))
    return factor, near, far, rate


def test_step_is_the_explicit_inverse_formula(rng):
    for d in (1, 2, 5, 12):
        factor, near, far, rate = random_step(rng, d)
        metric = factor @ factor.T
        pull, push = factor.T @ near, factor.T @ far
        step = rate / max(np.sum(pull**2), np.sum(push**2))
        expected = np.linalg.inv(np.linalg.inv(metric) + step * (near @ near.T - far @ far.T))
        updated = logdet_step(factor, pull, push, rate)
        np.testing.assert_allclose(updated @ updated.T, expected, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("rate", [1e-3, 0.5, 0.999])
def test_step_keeps_the_metric_positive_definite(rng, rate):
    for _ in range(50):
        factor = random_factor(rng, 4)
        pull = rng.normal(size=(4, rng.integers(1, 9))) * rng.choice([0.0, 0.1, 10.0])
        push = rng.normal(size=(4, 1)) * rng.choice([0.1, 1.0, 1e6])
        updated = logdet_step(factor, pull, push, rate)
        # In the coordinates of L: between (1 + rate)^-1 and (1 - rate)^-1.
        inner = np.linalg.solve(factor, updated)
        values = np.linalg.eigvalsh(inner @ inner.T)
        assert values[0] >= 1 / (1 + rate) * (1 - 1e-6)
        assert values[-1] <= 1 / (1 - rate) * (1 + 1e-6)


def test_margin_along_the_paths_grows_with_every_step(rng):
    for _ in range(50):
        factor, near, far, rate = random_step(rng)
        updated = logdet_step(factor, factor.T @ near, factor.T @ far, rate)

        def margin(root, near=near, far=far):
            return np.sum((root.T @ far) ** 2) - np.sum((root.T @ near) ** 2)

        assert margin(updated) > margin(factor)


def test_equal_series_leave_the_factor_unchanged():
    factor = np.eye(3)
    assert logdet_step(factor, np.zeros((3, 4)), np.zeros((3, 4)), 0.5) is factor


def disorder_by_counting(distances, labels):
    wrong = possible = 0
    for i, label in enumerate(labels):
        others = np.delete(np.arange(len(labels)), i)
        for j in others[labels[others] == label]:
            for k in others[labels[others] != label]:
                possible += 1
                wrong += distances[i, k] < distances[i, j] or (
                    distances[i, k] == distances[i, j] and k < j
                )
    return wrong / possible


def test_disorder_counts_pairs_in_the_wrong_order(rng):
    labels = rng.integers(0, 3, size=15)
    for distances in (rng.random((15, 15)), rng.integers(0, 4, size=(15, 15)).astype(float)):
        ranking = Ranking(distances, labels, np.arange(15))
        assert ranking.disorder == pytest.approx(disorder_by_counting(distances, labels))


def test_triplets_in_the_wrong_order_are_drawn_uniformly(rng):
    labels = np.array([0, 0, 0, 1, 1, 1])
    distances = rng.random((6, 6))
    draws = Ranking(distances, labels, np.arange(6)).draw(20_000, np.random.RandomState(0))
    i, j, k = draws.T
    assert np.all(labels[i] == labels[j])
    assert np.all(labels[i] != labels[k])
    assert np.all(i != j)
    assert np.all(distances[i, k] < distances[i, j])
    kinds, counts = np.unique(draws, axis=0, return_counts=True)
    inversions = round(disorder_by_counting(distances, labels) * 6 * 2 * 3)
    assert len(kinds) == inversions
    expected = 20_000 / inversions
    assert np.abs(counts - expected).max() < 5 * np.sqrt(expected)


def test_ranked_series_are_a_new_proportional_sample_each_time():
    classes = np.repeat([0, 1, 2], [100, 200, 300])
    rng = np.random.RandomState(0)
    one, two = draw_members(classes, 60, rng), draw_members(classes, 60, rng)
    for chosen in (one, two):
        assert len(set(chosen.tolist())) == 60
        np.testing.assert_allclose(np.bincount(classes[chosen]), [10, 20, 30], atol=1)
    assert set(one.tolist()) != set(two.tolist())
    np.testing.assert_array_equal(draw_members(classes, 600, rng), np.arange(600))
