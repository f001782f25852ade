import numpy as np
import pytest
from scipy import stats

from slts.study.statistics import paired_test, summarize


def test_interval_is_that_of_scipy(rng):
    values = rng.normal(90, 3, size=10)
    found = summarize(values.tolist())
    low, high = stats.t.interval(0.95, 9, loc=values.mean(), scale=stats.sem(values))
    assert found.mean == pytest.approx(values.mean())
    assert found.interval == pytest.approx((high - low) / 2)
    assert found.n == 10


def test_a_single_value_has_no_interval():
    assert summarize([4.0]).interval is None


def test_no_values_are_refused():
    with pytest.raises(ValueError, match="must not be empty"):
        summarize([])


@pytest.mark.parametrize("shift", [0.0, 0.3, -2.0])
def test_paired_test_is_that_of_scipy(rng, shift):
    first, second = rng.normal(size=(2, 8))
    first = first + shift
    found, expected = paired_test(first, second), stats.ttest_rel(first, second)
    assert found.t == pytest.approx(expected.statistic)
    assert found.p == pytest.approx(expected.pvalue)
    assert found.difference == pytest.approx(np.mean(first - second))


def test_equal_differences_need_no_test():
    assert paired_test([1.0, 2.0], [1.0, 2.0]).p == 1.0
    assert paired_test([2.0, 3.0], [1.0, 2.0]).p == 0.0
    assert paired_test([2.0, 3.0], [1.0, 2.0]).significant


def test_samples_must_pair():
    with pytest.raises(ValueError, match="same length"):
        paired_test([1.0, 2.0], [1.0])
