"""Series with labels, identifiers and groups: joined, cut, and those that cannot be used."""

import numpy as np
import pytest

from slts.errors import DataError
from slts.series import SeriesBatch, as_series
from slts.series.dataset import Dataset, Unusable, first_missing, join, usable


def dataset_of(first, n, **given):
    numbers = np.arange(first, first + n)
    return Dataset(
        as_series(np.repeat(numbers[:, None], 2, axis=1)), labels=numbers % 2, ids=numbers,
        groups=numbers // 2, source="table", **given,
    )  # fmt: skip


def test_batches_of_one_source_are_joined():
    parts = dataset_of(0, 2, notes=("sorted",)), dataset_of(2, 3, notes=("sorted", "cut"))
    whole = join(parts)
    assert whole.series == as_series(np.repeat(np.arange(5.0)[:, None], 2, axis=1))
    assert whole.labels.tolist() == [0, 1, 0, 1, 0]
    assert whole.ids.tolist() == [0, 1, 2, 3, 4]
    assert whole.groups.tolist() == [0, 0, 1, 1, 2]
    assert whole.notes == ("sorted", "cut")
    assert whole.name == "table"
    assert join(parts[:1]) is parts[0]
    unlabelled = join([parts[0], Dataset(parts[1].series)])
    assert (unlabelled.labels, unlabelled.ids, unlabelled.groups) == (None, None, None)
    with pytest.raises(DataError, match="no series"):
        join([])


def test_series_that_were_left_out_belong_to_the_batch_in_which_they_would_be():
    left = tuple(Unusable(position, None, "") for position in (0, 3, 7))
    batches = list(dataset_of(0, 5, unusable=left).batches(labels=False, batch_size=2))
    assert [batch.ids.tolist() for batch in batches] == [[0, 1], [2, 3], [4]]
    # Of eight series, 1 and 2 are the first batch, 4 and 5 the second, and 6 the third.
    found = [[one.position for one in batch.unusable] for batch in batches]
    assert found == [[0], [0], [1]]
    assert all(batch.labels is batch.groups is None for batch in batches)
    labelled = list(dataset_of(0, 5).batches(labels=True, batch_size=5))
    assert [batch.labels.tolist() for batch in labelled] == [[0, 1, 0, 1, 0]]
    assert list(dataset_of(0, 5)[:0].batches(labels=True, batch_size=2)) == []


def unchecked(*series, **given):
    """A dataset whose values are not checked."""
    offsets = np.cumsum([0, *map(len, series)])
    return Dataset(SeriesBatch.from_checked(np.vstack(series), offsets, None), source="t", **given)


def test_series_that_cannot_be_used_are_named_or_left_out():
    nan, inf = np.nan, np.inf
    good, empty = np.ones((2, 2)), np.full((2, 2), nan)
    broken = np.array([[1.0, 2.0], [nan, inf]])
    ids = np.array(["a", "b", "c"])
    given = unchecked(good, empty, broken, ids=ids)
    with pytest.raises(DataError, match=r"^t: series 'b': the series has no values. Correct it"):
        usable(given, None, skip=False)
    for names, steps, text in (
        (None, None, "step 1 of channel 1 is infinite"),
        (["x", "y"], None, "step 1 of 'y' is infinite"),
        (["x", "y"], ["t0", "t1"], r"step 1 \('t1'\) is infinite"),
    ):
        with pytest.raises(DataError, match=rf"^t: series 1: {text}\."):
            usable(unchecked(good, broken), names, skip=False, steps=steps)
    with pytest.raises(DataError, match=r"^row 1: step 1"):
        usable(unchecked(good, broken), None, skip=False, place=lambda position: f"row {position}")
    found = usable(given, ["x", "y"], skip=True)
    assert found.ids.tolist() == ["a"]
    reason = "step 1 of 'y' is infinite or not a number"
    assert found.unusable == (
        Unusable(1, "b", "the series has no values"),
        Unusable(2, "c", reason),
    )
    # Gaps are no reason, and steps without values at the end are cut off.
    gaps = usable(unchecked(np.array([[nan, 1.0], [nan, nan]])), None, skip=False)
    np.testing.assert_array_equal(gaps.series.values, [[nan, 1.0]])


def test_missing_values_are_none_nan_and_empty_text():
    assert first_missing(["a", "", None]) == 1
    assert first_missing([0, 0.0, False, np.float32("nan")]) == 3
    assert first_missing([1.0, None]) == 1
    assert first_missing(["nan", 0, np.inf]) is None
