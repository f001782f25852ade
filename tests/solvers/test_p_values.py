"""Conformal p-values: at most alpha with probability at most alpha, in 500 simulated draws."""

import numpy as np
import pytest
from scipy.special import softmax

from slts.solvers.calibration import HeldOutScores, class_scores

DRAWS = 500


def draw(n, rng, n_classes=3):
    """Probabilities of series whose classes overlap, and their classes; class 0 is the hardest."""
    codes = rng.choice(n_classes, size=n, p=[0.6, 0.3, 0.1])
    decisions = rng.normal(size=(n, n_classes))
    decisions[np.arange(n), codes] += np.array([0.5, 1.5, 3.0])[codes]
    # Far too sure: coverage must not depend on it.
    return softmax(4.0 * decisions, axis=1), codes


def own(values, codes):
    return values[np.arange(len(codes)), codes]


def allowed(rate, n):
    """Three standard errors of a rate in n draws."""
    return 3.0 * np.sqrt(rate * (1.0 - rate) / n)


@pytest.mark.parametrize("per_class", [False, True])
def test_sets_miss_the_true_class_as_often_as_stated(per_class, rng):
    p_values, codes = [], []
    for _ in range(DRAWS):
        held_out = HeldOutScores.of(*draw(99, rng), independent=True)
        probabilities, truth = draw(4, rng)
        p_values.append(own(held_out.p_values(probabilities, per_class=per_class), truth))
        codes.append(truth)
    p_values, codes = np.concatenate(p_values), np.concatenate(codes)
    for alpha in (0.05, 0.1, 0.3):
        missed = p_values <= alpha
        assert missed.mean() <= alpha + allowed(alpha, DRAWS)
        rates = [missed[codes == c].mean() for c in range(3)]
        if per_class:
            assert max(rates) <= alpha + allowed(alpha, np.sum(codes == 2))
        else:
            # The sets are not larger than they must be: at most one series more is counted.
            assert missed.mean() >= alpha - 0.02 - allowed(alpha, DRAWS)
            # The hardest class is missed more often than stated: this is what per_class mends.
            assert rates[0] > alpha + allowed(alpha, np.sum(codes == 0))


def grouped(n_groups, rng):
    """Groups of 1 to 30 series whose true classes have a common shift; large groups are easier."""
    sizes = rng.choice([1, 30], size=n_groups)
    parts = [draw(size, rng) for size in sizes]
    moved = []
    for (probabilities, codes), size in zip(parts, sizes, strict=True):
        logs = np.log(probabilities)
        logs[np.arange(size), codes] += 4.0 * (rng.normal() + (2.0 if size > 1 else 0.0))
        moved.append(softmax(logs, axis=1))
    codes = [codes for _, codes in parts]
    return np.concatenate(moved), np.concatenate(codes), np.repeat(np.arange(n_groups), sizes)


def test_series_of_a_group_count_as_one_draw(rng):
    alpha, missed, pooled = 0.1, [], []
    for _ in range(DRAWS):
        probabilities, codes, groups = grouped(30, rng)
        # A random series of a new group.
        new, truth, _ = grouped(1, rng)
        which = [rng.integers(len(truth))]
        for of_series, results in ((groups, missed), (None, pooled)):
            held_out = HeldOutScores.of(probabilities, codes, groups=of_series, independent=True)
            both = [held_out.p_values(new[which], per_class=each) for each in (False, True)]
            results.append(np.array([own(p, truth[which])[0] for p in both]) <= alpha)
    assert (np.mean(missed, axis=0) <= alpha + allowed(alpha, DRAWS)).all()
    assert (np.mean(pooled, axis=0) > alpha + allowed(alpha, DRAWS)).all()


def test_p_values_count_held_out_scores(rng):
    probabilities, codes = draw(40, rng)
    held_out = HeldOutScores.of(probabilities, codes)
    new, _ = draw(5, rng)
    scores, known = class_scores(new), own(class_scores(probabilities), codes)
    for per_class in (False, True):
        p_values = held_out.p_values(new, per_class=per_class)
        for i in range(5):
            for c in range(3):
                compared = known[codes == c] if per_class else known
                expected = (np.sum(compared <= scores[i, c]) + 1) / (len(compared) + 1)
                assert p_values[i, c] == pytest.approx(max(expected, new[i, c]))


def test_no_set_is_empty_and_a_series_between_classes_has_both():
    """Also if every held-out series is right with certainty."""
    sure = HeldOutScores.of(np.tile([0.99, 0.01], (200, 1)), np.zeros(200, dtype=int))
    new = np.array([[0.5, 0.5], [0.72, 0.28], [0.04, 0.96], [0.999, 0.001]])
    for per_class in (False, True):
        members = sure.p_values(new, per_class=per_class)[:, [0, 1]] > 0.05
        assert members.any(axis=1).all()
        assert members[:2].all()
    assert (sure.p_values(new) > 0.05)[2:].tolist() == [[False, True], [True, False]]


def test_scores_and_the_weights_of_groups():
    probabilities = np.array([[0.5, 0.2, 0.3], [0.4, 0.4, 0.2], [0.0, 0.0, 1.0]])
    expected = [[1, 0.2, 0.3], [1, 1, 0.2], [0, 0, 1]]
    np.testing.assert_array_equal(class_scores(probabilities), expected)
    weights, groups = np.array([1.0, 3.0, 5.0]), np.array(["a", "a", "b"])
    scores = HeldOutScores.of(probabilities, np.array([0, 1, 1]), weights, groups)
    np.testing.assert_allclose(scores.weights, [0.25, 0.75, 1.0])
    assert (scores.n_groups, scores.draws) == (2, "groups")


def test_a_class_without_held_out_series_is_in_every_set(rng):
    probabilities, codes = draw(50, rng)
    held_out = HeldOutScores.of(probabilities, np.minimum(codes, 1))
    assert (held_out.p_values(probabilities, per_class=True)[:, 2] == 1.0).all()
