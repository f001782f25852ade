"""Splits from `cv`: stratified, drawn by keys, and never without a class to learn."""

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from sklearn.model_selection import (
    GroupKFold,
    KFold,
    PredefinedSplit,
    StratifiedGroupKFold,
    StratifiedKFold,
)

from slts import DataError
from slts.training.held_out import make_splits

KEYS = np.random.default_rng(0).integers(0, 2**63, size=100).astype(np.uint64)


def splits_of(cv, codes, keys=None, **how):
    codes = np.asarray(codes)
    return make_splits(cv, codes, KEYS[: len(codes)] if keys is None else keys, name="cv", **how)


def assert_usable(train, test, codes):
    """Nothing is on both sides, and every class can be learned."""
    assert not set(train) & set(test)
    assert set(codes[train]) == set(codes)


classes = st.lists(st.integers(0, 3), min_size=2, max_size=60).filter(
    lambda codes: max(np.bincount(codes)) > 1
)


@given(classes, st.integers(2, 7))
def test_folds_hold_out_every_series_once_but_the_only_one_of_a_class(codes, n_folds):
    codes = np.unique(codes, return_inverse=True)[1]
    counts = np.bincount(codes)
    splits = splits_of(n_folds, codes)
    assert len(splits) == min(n_folds, counts[counts > 1].min())
    for train, test in splits:
        assert_usable(train, test, codes)
        assert len(train) + len(test) == len(codes)
    held_out = np.concatenate([test for _, test in splits])
    np.testing.assert_array_equal(np.sort(held_out), np.flatnonzero(counts[codes] > 1))
    for c in np.flatnonzero(counts > 1):
        by_fold = [np.sum(codes[test] == c) for _, test in splits]
        assert max(by_fold) - min(by_fold) <= 1


@given(classes, st.floats(0.01, 0.99))
def test_a_fraction_is_held_out_of_every_class(codes, share):
    codes = np.unique(codes, return_inverse=True)[1]
    counts = np.bincount(codes)
    ((train, test),) = splits_of(share, codes)
    assert_usable(train, test, codes)
    found = np.bincount(codes[test], minlength=len(counts))
    assert (found[counts == 1] == 0).all()
    wanted = np.clip(share * counts, np.minimum(1, counts - 1), counts - 1)
    assert (abs(found - wanted) <= 1).all()


def test_rounded_shares_of_the_classes_sum_to_the_share_of_all():
    codes = np.repeat(np.arange(3), 5)
    ((_, test),) = make_splits(0.3, codes, np.arange(15, dtype=np.uint64), name="cv")
    # 1.5, 3 and 4.5 series of the first one, two and three classes, rounded to even numbers.
    assert np.bincount(codes[test]).tolist() == [2, 1, 1]


def test_one_series_of_every_class_is_held_out_at_least():
    codes = np.repeat([0, 1, 2], [30, 3, 2])
    for share, expected in ((0.01, [1, 1, 1]), (0.99, [29, 2, 1])):
        ((_, test),) = splits_of(share, codes)
        np.testing.assert_array_equal(np.bincount(codes[test]), expected)


@pytest.mark.parametrize("cv", [3, 0.3, StratifiedKFold(3), KFold(4)])
def test_the_order_of_the_series_does_not_matter(cv):
    codes, order = np.arange(40) % 3, np.random.default_rng(1).permutation(40)
    splits = splits_of(cv, codes)
    turned = splits_of(cv, codes[order], KEYS[:40][order])
    for (_, test), (_, other) in zip(splits, turned, strict=True):
        assert set(test) == set(order[other])
    assert {tuple(test) for _, test in splits_of(cv, codes, KEYS[40:80])} != {
        tuple(test) for _, test in splits
    }


def test_splitters_see_classes():
    codes = np.repeat([0, 1], [30, 6])
    for _, test in splits_of(StratifiedKFold(3), codes):
        np.testing.assert_array_equal(np.bincount(codes[test]), [10, 2])


def test_pairs_of_indices_refer_to_x():
    """The sample is series 40, 3, 7, 11 and 12 of X."""
    indices = np.array([40, 3, 7, 11, 12])
    pairs = [(np.arange(10), np.arange(10, 50)), (np.arange(20), np.array([30]))]
    splits = splits_of(pairs, np.zeros(5, int), indices=indices, n_series=50)
    assert [(train.tolist(), test.tolist()) for train, test in splits] == [([1, 2], [0, 3, 4])]
    folds = np.full(50, -1)
    folds[[3, 12]] = 0
    splits = splits_of(PredefinedSplit(folds), np.zeros(5, int), indices=indices, n_series=50)
    assert [(train.tolist(), test.tolist()) for train, test in splits] == [([0, 2, 3], [1, 4])]
    message = "must have series on both sides of a split. None of its 1 splits does, among the 5"
    with pytest.raises(ValueError, match=message):
        splits_of(pairs[1:], np.zeros(5, int), indices=indices, n_series=50)


def test_what_is_no_split_is_named():
    with pytest.raises(ValueError, match=r"'cv' parameter must be an int.*Got \[1\] instead"):
        splits_of([1], np.zeros(5, int), indices=np.arange(5), n_series=5)


@pytest.mark.parametrize("cv", [PredefinedSplit([0, 1] * 5), [(np.arange(5), np.arange(5, 10))]])
def test_indices_need_series_in_memory(cv):
    with pytest.raises(ValueError, match="'cv' parameter must not hold indices of series"):
        splits_of(cv, np.arange(10) % 2)


@pytest.mark.parametrize("cv", [2, 0.5])
def test_some_class_needs_two_series(cv):
    with pytest.raises(
        DataError, match=r"No class has two distinct series, but cv needs one.*ies\.$"
    ):
        splits_of(cv, [0, 1, 2])
    with pytest.raises(DataError, match=r"Or set it to None\."):
        make_splits(cv, np.arange(3), KEYS[:3], name="calibration_cv")


grouped = st.lists(st.tuples(st.integers(0, 2), st.integers(0, 7)), min_size=4, max_size=60)


def columns(pairs):
    codes, groups = np.array(pairs).T
    codes = np.unique(codes, return_inverse=True)[1]
    of_class = {c: set(groups[codes == c]) for c in set(codes)}
    alone = set().union(*(own for own in of_class.values() if len(own) == 1))
    return codes, groups, sorted(set(groups) - alone)


@given(grouped, st.integers(2, 6))
def test_folds_hold_out_whole_groups_once(pairs, n_folds):
    codes, groups, usable = columns(pairs)
    assume(len(usable) > 1)
    splits = splits_of(n_folds, codes, groups=groups)
    assert len(splits) == min(n_folds, len(usable))
    held_out = []
    for train, test in splits:
        assert_usable(train, test, codes)
        assert len(test) > 0
        assert not set(groups[train]) & set(groups[test])
        held_out += sorted(set(groups[test]))
    assert len(held_out) == len(set(held_out))
    assert set(held_out) <= set(usable)


@given(grouped, st.floats(0.05, 0.95))
def test_a_fraction_of_the_groups_is_held_out(pairs, share):
    codes, groups, usable = columns(pairs)
    assume(len(usable) > 1)
    ((train, test),) = splits_of(share, codes, groups=groups)
    assert_usable(train, test, codes)
    assert 0 < len(test) < len(codes)
    assert not set(groups[train]) & set(groups[test])
    assert set(groups[test]) <= set(usable)


def test_equal_groups_give_the_share_and_equal_folds():
    groups, codes = np.repeat(np.arange(20), 5), np.tile(np.arange(5), 20)
    ((_, test),) = splits_of(0.3, codes, groups=groups)
    assert len(set(groups[test])) == 6
    assert [len(set(groups[test])) for _, test in splits_of(4, codes, groups=groups)] == [5] * 4
    # Groups of one class each, such as patients and controls.
    codes = np.repeat([0, 1], [60, 40])
    ((_, test),) = splits_of(0.3, codes, groups=groups)
    np.testing.assert_allclose(np.bincount(codes[test]) / [60, 40], 0.3, atol=0.07)
    for _, test in splits_of(4, codes, groups=groups):
        np.testing.assert_array_equal(np.bincount(codes[test]), [15, 10])


def test_groups_go_to_the_fold_with_fewest_series_of_their_classes_that_may_hold_them():
    # Class 1 is in a and b alone, so a cannot join b, although fold 2 has more of its class 0.
    groups = np.repeat(["b", "c", "a", "a", "e"], [9, 6, 1, 4, 1])
    codes = np.repeat([1, 0, 1, 0, 0], [9, 6, 1, 4, 1])
    folds = [set(groups[test]) for _, test in splits_of(2, codes, groups=groups)]
    assert folds == [{"b", "e"}, {"a", "c"}]
    # With a third group of class 1, a joins b.
    groups, codes = np.append(groups, "f"), np.append(codes, 1)
    folds = [set(groups[test]) for _, test in splits_of(2, codes, groups=groups)]
    assert folds == [{"a", "b", "e"}, {"c", "f"}]
    # No more folds than groups.
    assert len(splits_of(9, codes, groups=groups)) == 5


def test_a_fraction_of_groups_leaves_a_group_of_every_class():
    groups, codes = np.repeat(["a", "b", "c"], 4), np.repeat([0, 1, 0, 1, 0], [2, 2, 2, 2, 4])
    for share in (0.3, 0.99):
        ((train, test),) = splits_of(share, codes, groups=groups)
        assert set(codes[train]) == {0, 1}
        assert len(set(groups[test])) == (1 if share == 0.3 else 2)
    # If every group is too large for the share, the smallest is held out.
    ((_, test),) = splits_of(0.01, codes, groups=groups)
    assert set(groups[test]) == {"c"}


@pytest.mark.parametrize("cv", [3, 0.3, GroupKFold(3), StratifiedGroupKFold(3)])
def test_groups_are_split_whatever_the_order_of_the_series(cv):
    rng = np.random.default_rng(1)
    codes, groups, order = np.arange(40) % 3, rng.integers(0, 9, 40), rng.permutation(40)
    splits = splits_of(cv, codes, groups=groups)
    turned = splits_of(cv, codes[order], KEYS[:40][order], groups=groups[order])
    for (train, test), (_, other) in zip(splits, turned, strict=True):
        assert set(test) == set(order[other])
        assert not set(groups[train]) & set(groups[test])


def test_splitters_that_need_groups_say_so():
    with pytest.raises(ValueError, match=r"'cv' parameter splits by groups: pass fit\(X, y, gro"):
        splits_of(GroupKFold(2), [0, 1, 0, 1])


def test_groups_that_cannot_be_held_out_are_an_error():
    message = "cv needs two groups that can be held out. Only 1 of the 2 groups can"
    with pytest.raises(DataError, match=message):
        splits_of(2, [0, 1, 0, 0], groups=np.array(["a", "a", "b", "b"]))
