import dataclasses

import numpy as np
import pytest

from slts.series import as_series
from slts.study.problems import Dataset, aside_count, divide_in_three
from slts.study.protocol import FULL, Unit
from slts.study.work import Worker
from tests.study import synthetic
from tests.study.synthetic import TINY


def test_three_parts_of_lp1_have_the_papers_sizes():
    # 27 test series: the paper's accuracies on LP1 are multiples of 1/270 over ten splits.
    dataset = Dataset(as_series(np.ones((88, 2, 3))), np.arange(88) % 4)
    parts = divide_in_three(dataset, "robot_lp1", 0, FULL)
    assert (len(parts.fit), len(parts.tuning), len(parts.test)) == (42, 19, 27)
    every = np.concatenate([parts.fit, parts.tuning, parts.test])
    assert sorted(every.tolist()) == list(range(88))


def test_shares_of_lp1_mean_what_they_do_in_the_paper():
    # Its rows for 5% and 7% are the same.
    counts = [aside_count(share, 42) for share in FULL.shares]
    assert counts == [1, 2, 2, 4, 6, 8, 12, 16, 21]


def test_divisions_are_repeatable_and_differ_between_splits():
    first, again, other = (
        divide_in_three(synthetic.load("auslan"), "auslan", split, TINY) for split in (0, 0, 1)
    )
    assert np.array_equal(first.fit, again.fit)
    assert not np.array_equal(first.fit, other.fit)


def rare(name):
    """A class of one series, which lands in any of the three parts."""
    dataset = synthetic.load(name)
    labels = dataset.labels.copy()
    labels[0] = 9
    return dataclasses.replace(dataset, labels=labels)


@pytest.mark.parametrize("split", range(4))
def test_a_class_that_is_not_learned_is_never_right(split):
    parts = divide_in_three(rare("auslan"), "auslan", split, TINY)
    learned = 0 in parts.fit
    assert parts.n_classes == (4 if learned else 3)
    assert parts.codes[0] == 3
    assert parts.codes[parts.fit].max() == parts.n_classes - 1
    found = Worker(TINY, rare)(Unit("aside", "auslan", (split,), ("methods",)))["aside"]
    assert {score["method"] for score in found} == {"1nn", "svm", "ldmlt", "bbs", "slts"}
    assert all(0.0 <= score["accuracy"] <= 100.0 for score in found)


def test_kept_aside_landmarks_are_chosen_in_three_ways():
    worker = Worker(TINY, synthetic.load)
    found = worker(Unit("aside", "robot_lp1", (0,), ("selection",)))["aside"]
    assert {(s["selection"], s["landmarks"]) for s in found} == {
        (how, count) for how in ("dselect", "kmedoids", "random") for count in (2, 10)
    }
    assert {s["n_train"] for s in found} == {20}
