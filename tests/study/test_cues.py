import numpy as np
import pytest

from study.cues import CUES, make_cue
from study.problems import make_up

every_family = pytest.mark.parametrize("name", CUES)
# Families whose classes differ in the mean or in the spread of some channel.
BY_MEAN, BY_SPREAD = {"level"}, {"amplitude", "duration"}


def statistics(name):
    """Length, and mean and spread of each channel, by series; and the labels."""
    series, labels = make_cue(name, 800, 0)
    rows = [[x.shape[1], *x.mean(axis=1), *x.std(axis=1)] for x in series]
    return np.array(rows), labels


@every_family
def test_lengths_means_and_spreads_tell_nothing_but_the_cue(name):
    rows, labels = statistics(name)
    first, second = rows[labels == 0], rows[labels == 1]
    error = np.sqrt(first.var(axis=0) / len(first) + second.var(axis=0) / len(second))
    differs = np.abs(first.mean(axis=0) - second.mean(axis=0)) > 4.5 * error
    n_channels = (rows.shape[1] - 1) // 2
    assert not differs[0]
    assert differs[1 : 1 + n_channels].any() == (name in BY_MEAN)
    assert differs[1 + n_channels :].any() == (name in BY_SPREAD)


@every_family
def test_families_are_repeatable_and_seeds_differ(name):
    first, again, other = (make_cue(name, 4, seed)[0] for seed in (0, 0, 1))
    for a, b in zip(first, again, strict=True):
        np.testing.assert_array_equal(a, b)
    assert not np.array_equal(first[0], other[0])


def test_training_sets_of_all_sizes_share_their_test_set():
    small, large = (make_up(f"tempo-{size}", 3, 10) for size in (20, 40))
    assert ((small.n_train, large.n_train), len(small.batch)) == ((20, 40), 30)
    for k in range(10):
        np.testing.assert_array_equal(small.batch[20 + k], large.batch[40 + k])
    assert not np.array_equal(small.batch[0], large.batch[0])
