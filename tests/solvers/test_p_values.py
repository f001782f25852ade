"""Conformal p-values: at most alpha with probability at most alpha, in 500 simulated draws."""

import numpy as np
import pytest

from slts.solvers.calibration import HeldOutMargins, class_margins

DRAWS = 500


def draw(n, rng, n_classes=3, spread=1.0):
    """Decision values of series whose classes overlap; class 0 is the hardest and most frequent."""
    codes = rng.choice(n_classes, size=n, p=[0.6, 0.3, 0.1])
    decisions = spread * rng.normal(size=(n, n_classes))
    decisions[np.arange(n), codes] += np.array([0.5, 1.5, 3.0])[codes]
    return decisions, codes


def own(p_values, codes):
    return p_values[np.arange(len(codes)), codes]


def allowed(rate, n):
    """Three standard errors of a rate in n draws."""
    return 3.0 * np.sqrt(rate * (1.0 - rate) / n)


@pytest.mark.parametrize("per_class", [False, True])
def test_sets_miss_the_true_class_as_often_as_stated(per_class, rng):
    p_values, codes = [], []
    for _ in range(DRAWS):
        held_out = HeldOutMargins.of(*draw(99, rng), independent=True)
        decisions, truth = draw(4, rng)
        p_values.append(own(held_out.p_values(decisions, per_class=per_class), truth))
        codes.append(truth)
    p_values, codes = np.concatenate(p_values), np.concatenate(codes)
    for alpha in (0.05, 0.1, 0.3):
        missed = p_values <= alpha
        assert missed.mean() <= alpha + allowed(alpha, DRAWS)
        # The sets are not larger than they must be: at most one series more is counted.
        assert missed.mean() >= alpha - 0.02 - 0.1 * per_class - allowed(alpha, DRAWS)
        rates = [missed[codes == c].mean() for c in range(3)]
        if per_class:
            assert max(rates) <= alpha + allowed(alpha, np.sum(codes == 2))
        else:
            # The hardest class is missed more often than stated: this is what per_class mends.
            assert rates[0] > alpha + allowed(alpha, np.sum(codes == 0))


def grouped(n_groups, rng):
    """Groups of 1 to 30 series whose decisions have a common shift; large groups are easier."""
    sizes = rng.choice([1, 30], size=n_groups)
    parts = [draw(size, rng) for size in sizes]
    shifts = [rng.normal() + (2.0 if size > 1 else 0.0) for size in sizes]
    decisions = []
    for (values, codes), shift in zip(parts, shifts, strict=True):
        moved = values.copy()
        moved[np.arange(len(codes)), codes] += shift
        decisions.append(moved)
    codes = [codes for _, codes in parts]
    return np.concatenate(decisions), np.concatenate(codes), np.repeat(1.0 / sizes, sizes)


def test_series_of_a_group_count_as_one_draw(rng):
    alpha, missed, pooled = 0.1, [], []
    for _ in range(DRAWS):
        decisions, codes, shares = grouped(30, rng)
        # A random series of a new group.
        new, truth, _ = grouped(1, rng)
        which = [rng.integers(len(truth))]
        for weights, results in ((shares, missed), (None, pooled)):
            held_out = HeldOutMargins.of(decisions, codes, weights, independent=True)
            p_values = [
                own(held_out.p_values(new[which], per_class=per_class), truth[which])[0]
                for per_class in (False, True)
            ]
            results.append(np.array(p_values) <= alpha)
    assert (np.mean(missed, axis=0) <= alpha + allowed(alpha, DRAWS)).all()
    assert (np.mean(pooled, axis=0) > alpha + allowed(alpha, DRAWS)).all()


def test_p_values_count_held_out_margins(rng):
    decisions, codes = draw(40, rng)
    held_out = HeldOutMargins.of(decisions, codes)
    new, _ = draw(5, rng)
    margins, known = class_margins(new), own(class_margins(decisions), codes)
    for per_class in (False, True):
        p_values = held_out.p_values(new, per_class=per_class)
        for i in range(5):
            for c in range(3):
                compared = known[codes == c] if per_class else known
                expected = (np.sum(compared <= margins[i, c]) + 1) / (len(compared) + 1)
                assert p_values[i, c] == pytest.approx(expected)


def test_margins_are_differences_to_the_best_other_class():
    decisions = np.array([[3.0, 1.0, 2.0], [0.0, 0.0, -1.0]])
    expected = [[1.0, -2.0, -1.0], [0.0, 0.0, -1.0]]
    np.testing.assert_array_equal(class_margins(decisions), expected)
    np.testing.assert_array_equal(class_margins(np.array([0.5, -2.0])), [[-1, 1], [4, -4]])


def test_a_class_without_held_out_series_is_in_every_set(rng):
    decisions, codes = draw(50, rng)
    held_out = HeldOutMargins.of(decisions, np.minimum(codes, 1))
    assert (held_out.p_values(decisions, per_class=True)[:, 2] == 1.0).all()
