"""Series with labels, identifiers and groups: joined, cut, and those that cannot be used."""

import numpy as np
import pytest

from slts.errors import DataError
from slts.series import as_series
from slts.series.dataset import Dataset, first_missing, join


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
    assert (whole.labels.tolist(), whole.ids.tolist()) == ([0, 1, 0, 1, 0], [0, 1, 2, 3, 4])
    assert (whole.groups.tolist(), whole.notes) == ([0, 0, 1, 1, 2], ("sorted", "cut"))
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


def test_missing_values_are_none_nan_and_empty_text():
    assert first_missing(["a", "", None]) == 1
    assert first_missing([0, 0.0, False, np.float32("nan")]) == 3
    assert first_missing([1.0, None]) == 1
    assert first_missing(["nan", 0, np.inf]) is None
