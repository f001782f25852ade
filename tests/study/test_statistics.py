import math

import numpy as np
import pytest
from scipy import stats
from sklearn.metrics import brier_score_loss, log_loss

from study import statistics


def test_the_interval_is_that_of_scipy(rng):
    values = rng.normal(90, 3, size=10)
    found = statistics.summarize(values.tolist())
    low, high = stats.t.interval(0.95, 9, loc=values.mean(), scale=stats.sem(values))
    assert found.mean == pytest.approx(values.mean())
    assert (found.interval, found.n) == (pytest.approx((high - low) / 2), 10)
    assert statistics.summarize([4.0]).interval is None


@pytest.mark.parametrize("shift", [0.0, 0.3, -2.0])
def test_the_paired_test_is_that_of_scipy(rng, shift):
    first, second = rng.normal(size=(2, 8))
    first = first + shift
    found, expected = statistics.paired_test(first, second), stats.ttest_rel(first, second)
    assert (found.t, found.p) == (pytest.approx(expected.statistic), pytest.approx(expected.pvalue))
    assert found.difference == pytest.approx(np.mean(first - second))


def test_equal_differences_need_no_test():
    assert statistics.paired_test([1.0, 2.0], [1.0, 2.0]).p == 1.0
    assert statistics.paired_test([2.0, 3.0], [1.0, 2.0]).p == 0.0
    assert statistics.paired_test([2.0, 3.0], [1.0, 2.0]).significant


@pytest.mark.parametrize("n", [4, 8, 12, 41])
def test_the_signed_rank_test_is_that_of_scipy(rng, n):
    differences = rng.normal(0.5, 1.0, size=n)
    expected = stats.wilcoxon(differences, method="exact").pvalue
    assert statistics.signed_rank_test(differences) == pytest.approx(expected)


def test_ranks_are_averaged_over_data_sets_and_ties_share():
    found = statistics.mean_ranks(
        {"a": [90.0, 70.0, 50.0], "b": [80.0, 70.0, 60.0], "c": [70.0, 60.0, 55.0]}
    )
    assert found == pytest.approx({"a": 5.5 / 3, "b": 4.5 / 3, "c": 8 / 3})
    # Rounding errors do not break ties.
    assert statistics.mean_ranks({"a": [0.1 + 0.2], "b": [0.3]}) == {"a": 1.5, "b": 1.5}


def test_the_critical_difference_is_that_of_demsar():
    # Demsar (2006), Table 5: q = 2.728 for five methods, 1.960 for two.
    assert statistics.critical_difference(5, 8) == pytest.approx(
        2.728 * math.sqrt(30 / 48), abs=1e-3
    )
    assert statistics.critical_difference(2, 10) == pytest.approx(
        1.960 * math.sqrt(6 / 60), abs=1e-3
    )


def test_scores_are_found_by_their_names():
    base = {"dataset": "auslan", "n_train": 9, "heldout": False}
    landmarks = {"selection": "random", "landmarks": 5}
    results = [
        {"scores": [{**base, "method": "1nn", "split": 1, "accuracy": 80.0}]},
        {"scores": [{**base, "method": "1nn", "split": 0, "accuracy": 70.0}]},
        {"scores": [{**base, "method": "1nn", "split": 2, "accuracy": 60.0}]},
        {"scores": [{**base, "method": m, **landmarks, "split": 0, "accuracy": 90.0}
                    for m in ("bbs", "slts")]},
        {"scores": [{**base, "method": "1nn", "split": 0, "heldout": True, "accuracy": 10.0}]},
        {"facts": {}},
    ]  # fmt: skip
    scores = statistics.Scores(results, 2)
    assert list(scores.accuracies("1nn", "auslan").items()) == [(0, 70.0), (1, 80.0)]
    assert scores.accuracies("slts", "auslan") == {}
    assert scores.accuracies("slts", "auslan", "random", 5) == {0: 90.0}
    assert scores.counts("auslan") == [5]
    assert statistics.Scores(results, 2, heldout=True).accuracies("1nn", "auslan") == {0: 10.0}
    assert statistics.on_shared_splits({0: 1.0, 2: 3.0}, {2: 5.0, 3: 7.0}) == ([3.0], [5.0])


def test_probability_scores_are_those_of_scikit_learn(rng):
    chances = rng.dirichlet(np.ones(3), size=50)
    labels = rng.integers(0, 3, size=50)
    found = statistics.probability_scores(chances, labels[:, np.newaxis] == np.arange(3))
    assert found["log_loss"] == pytest.approx(log_loss(labels, chances))
    assert found["brier"] == pytest.approx(brier_score_loss(labels, chances, scale_by_half=False))


def test_the_calibration_error_is_the_mean_gap_of_the_bins():
    # Two series at 0.95, of which one is right, and two at 0.65, both right.
    chances = np.array([[0.95, 0.05], [0.05, 0.95], [0.65, 0.35], [0.65, 0.35]])
    truth = np.array([0, 0, 0, 0])[:, np.newaxis] == np.arange(2)
    found = statistics.probability_scores(chances, truth)
    assert found["ece"] == pytest.approx((0.9 + 0.7) / 4)
    # The mean of the largest probabilities is 0.8, and the accuracy is 0.75.
    assert found["overconfidence"] == pytest.approx(0.05)
    # A true class without probability has a finite loss.
    found = statistics.probability_scores(np.array([[1.0, 0.0]]), np.array([[False, True]]))
    assert found["log_loss"] == pytest.approx(12 * math.log(10))
    assert (found["brier"], found["ece"]) == (2.0, 1.0)


@pytest.mark.parametrize(("differences", "p"), [
    # Of 16 signs of ranks 2, 2, 2, 4 only ++++ and ---- give a total of 10.
    ([1.0, 1.0, 1.0, 5.0], 2 / 16),
    # 6 - 4 is the smallest total of these ranks.
    ([1.0, 1.0, 1.0, -5.0], 1.0),
    # Zeros are dropped.
    ([0.0, 1.0, 2.0, 3.0], 2 / 8), ([0.0, 0.0], 1.0), ([], 1.0),
])  # fmt: skip
def test_signed_ranks_by_hand(differences, p):
    assert statistics.signed_rank_test(differences) == p


def test_other_samples_are_errors():
    with pytest.raises(ValueError, match="must not be empty"):
        statistics.summarize([])
    with pytest.raises(ValueError, match="same length"):
        statistics.paired_test([1.0, 2.0], [1.0])
