"""Series with labels, identifiers and groups: joined, cut, and those that cannot be used."""

import numpy as np
import pytest

from slts.errors import DataError
from slts.series import SeriesBatch, as_series
from slts.series.dataset import Dataset, checked, first_missing, join


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
    some = whole[1:]
    assert (some.labels.tolist(), some.ids.tolist()) == ([1, 0, 1, 0], [1, 2, 3, 4])
    assert some.groups.tolist() == [0, 1, 1, 2]
    unlabelled = join([parts[0], Dataset(parts[1].series)])
    for one in (unlabelled, unlabelled[1:]):
        assert (one.labels, one.ids, one.groups) == (None, None, None)
    with pytest.raises(DataError, match="no series"):
        join([])


def test_datasets_are_read_in_batches():
    batches = list(dataset_of(0, 5).batches(labels=False, batch_size=2))
    assert [batch.ids.tolist() for batch in batches] == [[0, 1], [2, 3], [4]]
    assert all(batch.labels is batch.groups is None for batch in batches)
    labelled = list(dataset_of(0, 5).batches(labels=True, batch_size=5))
    assert [batch.labels.tolist() for batch in labelled] == [[0, 1, 0, 1, 0]]
    assert list(dataset_of(0, 5)[:0].batches(labels=True, batch_size=2)) == []


def unchecked(*series, **given):
    """A dataset whose values are not checked."""
    offsets = np.cumsum([0, *map(len, series)])
    return Dataset(SeriesBatch.from_checked(np.vstack(series), offsets, None), source="t", **given)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"channels": None}, r"^t: series 1: step 1 of channel 1 is infinite\."),
        ({"channels": ["x", "y"]}, r"^t: series 1: step 1 of 'y' is infinite\."),
        ({"channels": ["x", "y"], "steps": ["a", "b"]}, r"series 1: step 1 \('b'\) is infinite\."),
        ({"channels": None, "place": "row {}".format}, r"^row 1: step 1"),
    ],
)
def test_infinite_values_are_located(options, message):
    with pytest.raises(DataError, match=message):
        checked(unchecked(np.ones((2, 2)), np.array([[1.0, 2.0], [np.nan, np.inf]])), **options)


def test_series_without_values_are_errors_and_gaps_are_not():
    ids, nan = np.array(["a", "b"]), np.nan
    with pytest.raises(DataError, match=r"^t: series 'b': the series has no values\. Correct it"):
        checked(unchecked(np.ones((2, 2)), np.full((2, 2), nan), ids=ids), None)
    # Steps without values at the end are cut off.
    gaps = checked(unchecked(np.array([[nan, 1.0], [nan, nan]])), None)
    np.testing.assert_array_equal(gaps.series.values, [[nan, 1.0]])


def test_missing_values_are_none_nan_and_empty_text():
    assert first_missing(["a", "", None]) == 1
    assert first_missing([0, 0.0, False, np.float32("nan")]) == 3
    assert first_missing([1.0, None]) == 1
    assert first_missing(["nan", 0, np.inf]) is None
