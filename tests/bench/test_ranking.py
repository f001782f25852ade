import math

import numpy as np
import pytest
from scipy import stats

from slts.bench.figures import joined
from slts.bench.ranking import critical_difference, mean_ranks, signed_rank_test


@pytest.mark.parametrize("n", [4, 8, 12])
def test_signed_rank_test_is_that_of_scipy(rng, n):
    differences = rng.normal(0.5, 1.0, size=n)
    expected = stats.wilcoxon(differences, method="exact").pvalue
    assert signed_rank_test(differences) == pytest.approx(expected)


def test_zeros_are_dropped_and_nothing_is_no_evidence():
    assert signed_rank_test([0.0, 1.0, 2.0, 3.0]) == signed_rank_test([1.0, 2.0, 3.0])
    assert signed_rank_test([0.0, 0.0]) == 1.0
    assert signed_rank_test([]) == 1.0


def test_tied_differences_share_ranks():
    # Of 16 signs of ranks 2, 2, 2, 4 only ++++ and ---- give a total of 10.
    assert signed_rank_test([1.0, 1.0, 1.0, 5.0]) == 2 / 16
    # 6 - 4 is as near to nothing as these ranks can come.
    assert signed_rank_test([1.0, 1.0, 1.0, -5.0]) == 1.0


def test_too_many_differences_are_refused():
    with pytest.raises(ValueError, match="at most 16"):
        signed_rank_test(np.arange(1.0, 18.0))


def test_ranks_are_averaged_over_data_sets_and_ties_share():
    found = mean_ranks({"a": [90.0, 70.0, 50.0], "b": [80.0, 70.0, 60.0], "c": [70.0, 60.0, 55.0]})
    assert found == pytest.approx({"a": 5.5 / 3, "b": 4.5 / 3, "c": 8 / 3})
    # Means of the same counts in another order are ties.
    assert mean_ranks({"a": [0.1 + 0.2], "b": [0.3]}) == {"a": 1.5, "b": 1.5}


def test_critical_difference_is_demsars():
    # Demsar (2006), Table 5: q = 2.728 for five methods, 1.960 for two.
    assert critical_difference(5, 8) == pytest.approx(2.728 * math.sqrt(30 / 48), abs=1e-3)
    assert critical_difference(2, 10) == pytest.approx(1.960 * math.sqrt(6 / 60), abs=1e-3)


def test_bars_join_the_longest_runs():
    assert joined([1.0, 2.0, 3.0], 5.0) == [(0, 2)]
    assert joined([1.0, 3.0, 5.0], 1.0) == []
    assert joined([1.0, 1.5, 2.2, 4.0, 4.5], 1.0) == [(0, 1), (1, 2), (3, 4)]
