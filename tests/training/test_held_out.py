"""What is held out from `cv`, and the choice of parameters by held-out accuracy."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.model_selection import (
    GroupKFold,
    KFold,
    PredefinedSplit,
    StratifiedGroupKFold,
    StratifiedKFold,
)

from slts import DataError
from slts.features.feature_map import Resources
from slts.solvers.calibration import Validation
from slts.training.held_out import make_splits, parts_to_leave_out, search
from slts.training.neighbour_fit import left_out_decisions
from tests.training.options import training_set


def data_of(codes, groups=None, order=None):
    """A training set of different series; `order` is that of the data."""
    codes = np.unique(codes, return_inverse=True)[1]
    order = np.arange(len(codes)) if order is None else order
    X = np.arange(float(len(codes)))[order].reshape(-1, 1, 1)
    groups = None if groups is None else np.asarray(groups)[order]
    return training_set(X, codes[order], groups=groups)


def assert_usable(train, test, data):
    """Nothing is on both sides, no group is divided, and what is tested can be learned."""
    assert not set(train) & set(test)
    assert set(data.codes[test]) <= set(data.codes[train])
    assert len(train) > 0
    assert len(test) > 0
    if data.groups is not None:
        assert not set(data.groups[train]) & set(data.groups[test])


classes = st.lists(st.integers(0, 3), min_size=2, max_size=60).filter(
    lambda codes: max(np.bincount(codes)) > 1
)
grouped = st.lists(st.tuples(st.integers(0, 2), st.integers(0, 7)), min_size=4, max_size=60)


@given(classes, st.integers(2, 7))
def test_folds_hold_out_every_series_once_but_the_only_one_of_a_class(codes, n_folds):
    data = data_of(codes)
    counts = np.bincount(data.codes)
    splits = make_splits(n_folds, data, "cv")
    assert len(splits) == min(n_folds, counts[counts > 1].min())
    for train, test in splits:
        assert_usable(train, test, data)
        assert set(data.codes[train]) == set(data.codes)
        assert len(train) + len(test) == len(data)
    held_out = np.sort(np.concatenate([test for _, test in splits]))
    np.testing.assert_array_equal(held_out, np.flatnonzero(counts[data.codes] > 1))
    for c in np.flatnonzero(counts > 1):
        by_fold = [np.sum(data.codes[test] == c) for _, test in splits]
        assert max(by_fold) - min(by_fold) <= 1


@given(st.lists(st.integers(5, 20), min_size=1, max_size=4), st.integers(0, 3), st.floats(0.3, 0.7))
def test_a_fraction_is_held_out_of_every_class(sizes, n_alone, share):
    data = data_of(np.repeat(np.arange(len(sizes) + n_alone), [*sizes, *[1] * n_alone]))
    counts = np.bincount(data.codes)
    ((train, test),) = make_splits(share, data, "cv")
    assert_usable(train, test, data)
    tested = np.bincount(data.codes[test], minlength=len(counts))
    assert (tested[counts == 1] == 0).all()
    assert (abs(tested - share * counts)[counts > 1] <= 1).all()


@given(grouped, st.one_of(st.integers(2, 6), st.floats(0.2, 0.8)))
def test_whole_groups_are_held_out(pairs, cv):
    codes, groups = np.array(pairs).T
    data = data_of(codes, groups)
    try:
        splits = make_splits(cv, data, "cv")
    except DataError:
        # Each class has few groups, or few series.
        n_groups = [len(set(data.groups[data.codes == c])) for c in set(data.codes)]
        assert min(n_groups) < 2 or np.bincount(data.codes).max() < 6
        return
    for train, test in splits:
        # The only series of a class is trained on, whatever its group.
        alone = np.bincount(data.codes)[data.codes] == 1
        assert_usable(np.setdiff1d(train, np.flatnonzero(alone)), test, data)
        assert set(np.flatnonzero(alone)) <= set(train)
    tested = np.concatenate([test for _, test in splits])
    assert len(set(tested)) == len(tested)


@pytest.mark.parametrize(
    ("cv", "grouped"),
    [(3, False), (0.3, False), (StratifiedKFold(3), False), (KFold(4), False), (3, True),
     (0.3, True), (GroupKFold(3), True), (StratifiedGroupKFold(3), True)],
)  # fmt: skip
def test_the_order_of_the_data_does_not_matter(cv, grouped):
    rng = np.random.default_rng(1)
    codes, groups = np.arange(40) % 3, rng.integers(0, 9, 40) if grouped else None
    one, other = (data_of(codes, groups, order) for order in (None, rng.permutation(40)))
    splits = make_splits(cv, one, "cv")
    for (train, test), (_, again) in zip(splits, make_splits(cv, other, "cv"), strict=True):
        np.testing.assert_array_equal(test, again)
        assert_usable(train, test, one)


def test_nothing_is_held_out_without_cv():
    assert make_splits(None, data_of([0, 1]), "cv") == []


def test_pairs_of_indices_refer_to_the_data():
    """Series 2 equals series 0, and series 4 has no weight."""
    X = np.array([5.0, 1.0, 5.0, 3.0, 4.0, 6.0]).reshape(-1, 1, 1)
    data = training_set(X, [0] * 6, weights=np.array([1, 1, 1, 1, 0, 1]))

    def indices(splits):
        return [tuple(sorted(data.indices[side].tolist()) for side in split) for split in splits]

    pairs = [([0, 2, 4], [1, 3]), ([1, 2], [0, 5])]
    assert indices(make_splits(pairs, data, "cv")) == [([0], [1, 3]), ([1], [0, 5])]
    folds = PredefinedSplit([0, 0, 1, -1, 1, 1])
    assert indices(make_splits(folds, data, "cv")) == [([3, 5], [0, 1]), ([0, 1, 3], [5])]
    with pytest.raises(ValueError, match=r"'cv' parameter holds out no series"):
        make_splits([([0], [2])], data, "cv")


def test_indices_need_series_in_memory():
    data = replace(data_of(np.arange(10) % 2), positions=None)
    for cv in (PredefinedSplit([0, 1] * 5), [(np.arange(5), np.arange(5, 10))]):
        with pytest.raises(ValueError, match="'cv' parameter must not hold indices of series"):
            make_splits(cv, data, "cv")


@pytest.mark.parametrize(
    ("cv", "codes", "message"),
    [
        ([1], [0, 1, 0], "'cv' parameter must be an int"),
        (2, [0, 1, 2], "No class has two distinct series, but cv needs"),
        (0.5, [0, 1, 2], "No class has two distinct series, but cv needs"),
        (0.01, [0, 1, 0, 1], "'cv' parameter cannot split these series. Got 0.01"),
        (GroupKFold(2), [0, 1] * 4, r"'cv' parameter cannot split.*pass fit\(X, y, groups="),
        ([([0], [1])], [0, 1], "'cv' parameter holds out no series of a class that"),
    ],
)
def test_what_cannot_be_split_is_an_error(cv, codes, message):
    with pytest.raises(ValueError, match=message):
        make_splits(cv, data_of(codes), "cv")


# ---- search

CODES = np.array([0, 1, 0, 1, 1])
SPLITS = [(np.array([2, 3, 4]), np.array([0, 1])), (np.array([0, 1]), np.array([2, 3, 4]))]
# Decisions for class 1: right for all but series 4; for all but series 0; and as the second.
DECISIONS = [
    [np.array([-1.0, 2.0]), np.array([1.0, 2.0]), np.array([3.0, 4.0])],
    [np.array([-1.0, 1.0, -0.5]), np.array([-2.0, 1.0, 2.0]), np.array([-3.0, 1.0, 2.0])],
]
CANDIDATES = [{"lam": 0.1, "gamma": 1.0}, {"lam": 0.2, "gamma": 1.0}, {"lam": 0.3, "gamma": 2.0}]


def test_the_candidate_with_the_best_weighted_accuracy_is_chosen():
    weights, counts = np.array([1.0, 1.0, 1.0, 1.0, 6.0]), np.array([1.0, 1.0, 1.0, 1.0, 3.0])
    done = []
    data = SimpleNamespace(codes=CODES, groups=np.array(list("aabbb")))
    result = search(
        DECISIONS, CANDIDATES, SPLITS, data, weights, counts, lambda *at: done.append(at)
    )
    np.testing.assert_allclose(result.scores, [[1.0, 0.25], [0.5, 1.0], [0.5, 1.0]])
    assert done == [(k, 6) for k in range(1, 7)]
    # The first of two equally good ones.
    assert result.best_params == CANDIDATES[1]
    decisions, codes, multiplicities, groups = result.held_out
    np.testing.assert_array_equal(groups, list("aabbb"))
    np.testing.assert_array_equal(decisions[:, 1], [1.0, 2.0, -2.0, 1.0, 2.0])
    np.testing.assert_array_equal(codes, CODES)
    np.testing.assert_array_equal(multiplicities, counts)
    # Class weights count in the choice, not in the accuracy that is reported.
    assert result.validation == Validation("held-out", 5, 6 / 7, 2, 0.75)


def test_scores_have_the_form_of_scikit_learn():
    weights = np.ones(5)
    data = SimpleNamespace(codes=CODES, groups=None)
    results = search(DECISIONS, CANDIDATES, SPLITS, data, weights, weights).cv_results
    assert results["params"] == CANDIDATES
    np.testing.assert_array_equal(results["param_lam"], [0.1, 0.2, 0.3])
    np.testing.assert_allclose(results["split1_test_score"], [2 / 3, 1.0, 1.0])
    np.testing.assert_allclose(results["mean_test_score"], [5 / 6, 0.75, 0.75])
    assert results["std_test_score"][1] == pytest.approx(0.25)
    assert results["rank_test_score"].tolist() == [1, 2, 2]


def test_parts_that_are_left_out_have_one_series_of_every_class_or_are_groups():
    codes = np.array([0, 0, 1, 1, 1, 1, 2])
    parts = parts_to_leave_out(codes, None)
    assert parts.tolist() == [0, 2, 0, 1, 2, 3, 0]
    mixed = np.array([0, 1, 0, 1, 2, 2, 2])
    np.testing.assert_array_equal(parts_to_leave_out(codes, mixed), mixed)
    # Groups of one class each: one of every class at a time.
    pure = np.array([0, 1, 2, 2, 3, 3, 4])
    assert parts_to_leave_out(codes, pure).tolist() == [0, 1, 0, 0, 1, 1, 0]
    # With one series of every class, nothing would be left to learn from.
    np.testing.assert_array_equal(parts_to_leave_out(np.arange(3), None), np.arange(3))


def test_nearest_neighbours_decide_on_series_that_are_left_out():
    nearness = np.array(
        [[9, 1, 2, 3, 4], [1, 9, 5, 6, 7], [2, 5, 9, 8, 0], [3, 6, 8, 9, -1], [4, 7, 0, -1, 9]]
    ).astype(float)
    codes = np.array([0, 0, 1, 1, 2])

    def left_out(codes, size):
        neighbours = SimpleNamespace(
            codes=codes, rows=np.arange(5), nearness_of_rows=lambda rows, _: nearness[rows]
        )
        return left_out_decisions(neighbours, size, Resources())

    (decisions, left, weights, _), validation = left_out(codes, 9)
    # The only series of a class is not left out.
    assert decisions.tolist() == [[1, 3, 4], [1, 6, 7], [5, 8, 0], [6, 8, -1]]
    assert (left.tolist(), weights.tolist()) == ([0, 0, 1, 1], [1.0] * 4)
    assert validation == Validation("leave-one-out", 4, 0.5)
    two = left_out(np.array([0, 0, 1, 1, 1]), 2)[0]
    assert two[0].tolist() == [[3.0], [6.0]]
    assert left_out(np.arange(5), 9) == (None, None)
