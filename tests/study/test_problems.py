import dataclasses

import numpy as np
import pytest

import slts
from study import problems
from study.protocol import FULL, UNIVARIATE
from study.runner import Unit
from study.work import Worker
from tests.study import synthetic
from tests.study.synthetic import TINY


def test_the_tuning_set_is_part_of_the_training_set():
    problem = problems.make_problem(synthetic.load("auslan"), "auslan", 0, TINY)
    assert set(problem.tuning) < set(problem.train)
    assert set(problem.fit) == set(problem.train) - set(problem.tuning)
    assert not set(problem.train) & set(problem.test)
    assert len(problem.train) + len(problem.test) == 42


def test_heldout_parts_of_lp1_have_the_sizes_of_the_paper():
    # 27 test series: the paper's accuracies on LP1 are multiples of 1/270 over ten splits.
    dataset = problems.LabelledSeries(slts.as_series(np.ones((88, 2, 3))), np.arange(88) % 4)
    problem = problems.make_heldout_problem(dataset, "robot_lp1", 0, FULL)
    parts = (problem.train, problem.tuning, problem.test)
    assert [len(part) for part in parts] == [42, 19, 27]
    assert sorted(np.concatenate(parts).tolist()) == list(range(88))
    assert np.array_equal(problem.fit, np.sort(problem.train))


def test_shares_stand_for_the_numbers_of_the_paper():
    # Rows of the paper for 5% and 7% of LP1 are equal.
    counts = [problems.count_of(share, 42, heldout=True) for share in FULL.shares]
    assert counts == [1, 2, 2, 4, 6, 8, 12, 16, 21]
    assert [problems.count_of(share, 270) for share in (0.03, 0.05, 0.15)] == [8, 14, 41]


@pytest.mark.parametrize("make", [problems.make_problem, problems.make_heldout_problem])
def test_splits_are_repeatable_and_differ(make):
    dataset = synthetic.load("auslan")
    first, again, other = (make(dataset, "auslan", split, TINY).train for split in (0, 0, 1))
    assert np.array_equal(first, again)
    assert not np.array_equal(first, other)


def test_large_training_sets_are_drawn_from():
    dataset = synthetic.load("arabic_digits")
    limited = dataclasses.replace(TINY, most_train=12)
    drawn, test = problems.divide(dataset, "arabic_digits", 1, limited)
    assert np.bincount(dataset.labels[drawn]).tolist() == [4, 4, 4]
    assert drawn.max() < dataset.n_train <= test.min()
    # On a published split all splits share the training set.
    assert np.array_equal(drawn, problems.divide(dataset, "arabic_digits", 0, limited)[0])


def rare(name):
    """A class of one series, which may be in any part."""
    dataset = synthetic.load(name)
    labels = dataset.labels.copy()
    labels[0] = 9
    return dataclasses.replace(dataset, labels=labels)


def test_heldout_methods_work_with_a_class_that_is_not_trained_on():
    splits = {s: problems.make_heldout_problem(rare("auslan"), "auslan", s, TINY) for s in range(9)}
    split = next(s for s, problem in splits.items() if 0 not in problem.train)
    assert 0 not in splits[split].tuning
    worker = Worker(TINY, rare)
    found = worker(Unit("heldout", "auslan", (split,), ("methods",)))["scores"]
    assert {score["method"] for score in found} == {"1nn", "svm", "ldmlt", "bbs", "slts"}
    assert all(0.0 <= score["accuracy"] <= 100.0 for score in found)


def test_heldout_landmarks_are_selected_in_three_ways():
    worker = Worker(TINY, synthetic.load)
    found = worker(Unit("heldout", "robot_lp1", (0,), ("selection",)))["scores"]
    assert {(s["selection"], s["landmarks"]) for s in found} == {
        (way, count) for way in ("dselect", "kmedoids", "random") for count in (2, 10)
    }
    assert {s["n_train"] for s in found} == {20}


def test_choices_use_only_the_training_set():
    dataset = synthetic.load("japanese_vowels")
    hidden = np.arange(len(dataset.labels)) >= dataset.n_train

    class Watched:
        def __len__(self):
            return len(dataset.batch)

        def __getitem__(self, indices):
            assert not hidden[indices].any()
            return dataset.batch[indices]

    watched = dataclasses.replace(dataset, batch=Watched())
    unit = Unit("choice", "japanese_vowels", (0,), ("local",))
    found = Worker(TINY, lambda name: watched)(unit)["choice"]
    assert len(found["folds"]) == TINY.choice_folds * TINY.choice_repeats


def test_all_methods_have_the_same_splits():
    worker = Worker(TINY, synthetic.load)
    train, test = problems.divide(synthetic.load("auslan"), "auslan", 1, TINY)
    for method in ("local", "slts"):
        (score,) = worker(Unit("model", "auslan", (1,), (method,)))["scores"]
        assert (score["n_train"], score["n_test"]) == (len(train), len(test))
        assert score["numbers"] > 0


@pytest.mark.parametrize("name", UNIVARIATE)
def test_data_sets_of_aeon_have_one_channel_and_their_published_split(name):
    loaders = pytest.importorskip("aeon.datasets")
    found = problems.load_published(name)
    train, labels = loaders.load_classification(UNIVARIATE[name], split="train")
    assert found.batch.n_channels == 1
    assert found.n_train == len(train) < len(found.batch)
    assert found.labels[: found.n_train].tolist() == labels.tolist()
    assert found.batch[0] == pytest.approx(train[0])
