"""SeriesBatch: a ragged, immutable container that scikit-learn can split."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.model_selection import GridSearchCV, train_test_split
from sklearn.utils._indexing import _safe_indexing

from slts.errors import DataError
from slts.series import SeriesBatch, as_series

FINITE = st.floats(allow_nan=False, allow_infinity=False)


@st.composite
def lists_of_series(draw):
    """Lists of (channels, time) arrays with one number of channels."""
    n_channels = draw(st.integers(1, 4))
    shape = st.tuples(st.just(n_channels), st.integers(1, 6))
    return draw(st.lists(hnp.arrays(np.float64, shape, elements=FINITE), min_size=1, max_size=6))


@pytest.fixture
def series():
    rng = np.random.default_rng(0)
    return [rng.normal(size=(3, length)) for length in (4, 1, 7, 2, 5)]


def named(series, names):
    batch = as_series(series)
    return SeriesBatch(batch.values, batch.offsets, names)


@pytest.fixture
def batch(series):
    return named(series, ["x", "y", "z"])


def assert_same(batch, series):
    assert len(batch) == len(series)
    for got, expected in zip(batch, series, strict=True):
        np.testing.assert_array_equal(got, expected)


def test_properties_describe_the_data(batch):
    assert (len(batch), batch.shape, batch.n_channels, batch.n_steps) == (5, (5,), 3, 19)
    assert batch.channel_names == ("x", "y", "z")
    np.testing.assert_array_equal(batch.lengths, [4, 1, 7, 2, 5])
    np.testing.assert_array_equal(batch.offsets, [0, 4, 5, 12, 14, 19])
    assert batch.offsets.dtype == np.int64
    other = SeriesBatch(np.asfortranarray(np.arange(6, dtype=np.int32).reshape(3, 2)), [0, 3])
    for one in (batch, other):
        assert one.values.dtype == np.float64
        assert one.values.flags.c_contiguous
    assert batch.anonymous().name_of(1, "X") == "series 1 of X"
    assert batch.named([f"r{k}" for k in range(5)]).name_of(1, "X") == "r1"


def test_a_batch_is_immutable_and_shares_the_values_of_its_caller(batch):
    values, offsets = np.zeros((4, 2)), np.array([0, 1, 4])
    shared = SeriesBatch(values, offsets)
    offsets[1] = 3
    assert np.shares_memory(values, shared.values)
    assert values.flags.writeable, "the caller's array must keep its write flag"
    np.testing.assert_array_equal(shared.lengths, [1, 3])
    with pytest.raises(TypeError, match=r"use \.values"):
        np.asarray(batch)
    for array in (batch.values, batch.offsets, batch[2]):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 1
    for attribute in ("values", "offsets", "channel_names", "anything"):
        with pytest.raises(AttributeError):
            setattr(batch, attribute, None)
    with pytest.raises(TypeError, match="unhashable"):
        hash(batch)


def test_series_are_channels_first_views(batch):
    for index, x in enumerate(batch):
        start, stop = batch.offsets[index : index + 2]
        for view in (x, batch[index]):
            np.testing.assert_array_equal(view, batch.values[start:stop].T)
            assert np.shares_memory(view, batch.values)
            assert not view.flags.writeable


@pytest.mark.parametrize(("values", "offsets", "names", "message"), [
    (np.zeros(3), [0, 3], None, r"values .*got shape \(3,\)"),
    (np.zeros((3, 0)), [0, 3], None, r"at least one channel, got shape \(3, 0\)"),
    (np.zeros((3, 1)), [0.0, 3.0], None, "offsets .*float64"),
    (np.zeros((3, 1)), [], None, r"offsets .*got shape \(0,\)"),
    (np.zeros((3, 1)), [[0, 3]], None, r"offsets .*got shape \(1, 2\)"),
    (np.zeros((3, 1)), [1, 3], None, "got 1 to 3"), (np.zeros((3, 1)), [0, 2], None, "got 0 to 2"),
    (np.zeros((3, 1)), [0, 2, 2, 3], None, "series 1 would have no steps"),
    (np.zeros((3, 1)), [0, 2, 1, 3], None, "series 1 would have no steps"),
    (np.zeros((3, 2)), [0, 3], ["a"], "channel_names"),
    (np.zeros((3, 2)), [0, 3], ["a", "a"], "channel_names"),
    (np.zeros((3, 2)), [0, 3], "ab", "channel_names"),
    ([[0.0], [np.nan]], [0, 1, 2], None, "series 1 is NaN"),
    ([[0.0], [-np.inf]], [0, 2], ["a"], r"series 0, step 1, channel 0 \('a'\) is -inf"),
    ([["a"]], [0, 1], None, "values holds the text"),
])  # fmt: skip
def test_invalid_parts_are_errors(values, offsets, names, message):
    with pytest.raises(DataError, match=message):
        SeriesBatch(values, offsets, names)


@pytest.mark.parametrize(("key", "message"), [
    (5, "series 5 is out of range: the batch has 5"), ([0, -6], "series -6 is out of range"),
    ((0, 1), r"batch\[i\]\[channels, steps\]"), ((0, 1, ...), "one axis"),
    ([True, False], "the mask has 2 entries, expected 5"), ([[0, 1]], "1-D integer array"),
    ([0.5], "1-D integer array"), ("a", "got str"), (True, "got bool"), (None, "got NoneType"),
])  # fmt: skip
def test_other_keys_are_errors(batch, key, message):
    with pytest.raises(IndexError, match=message):
        batch[key]


@given(lists_of_series(), st.data())
def test_slices_arrays_and_masks_select_as_in_lists(series, data):
    batch, n = as_series(series), len(series)
    some = data.draw(st.slices(n))
    assert_same(batch[some], series[some])
    places = data.draw(st.lists(st.integers(-n, n - 1), max_size=8))
    for key in (places, np.array(places, dtype=np.int32)):
        assert_same(batch[key], [series[i] for i in places])
    for place in places:
        np.testing.assert_array_equal(batch[place], series[place])
        np.testing.assert_array_equal(batch[np.int64(place)], series[place])
    mask = data.draw(st.lists(st.booleans(), min_size=n, max_size=n))
    for key in (mask, np.array(mask)):
        assert_same(batch[key], [x for x, chosen in zip(series, mask, strict=True) if chosen])


@pytest.mark.parametrize("key", [slice(0, 0), slice(3, 1), [], np.zeros(5, dtype=bool)])
def test_an_empty_selection_is_a_batch(batch, key):
    empty = batch[key]
    assert (len(empty), empty.n_channels, empty.n_steps, list(empty)) == (0, 3, 0, [])
    assert repr(empty) == "SeriesBatch(0 series, 3 channels, 0 steps, 0 bytes)"
    assert empty.channel_names == batch[::-1].channel_names == ("x", "y", "z")
    assert np.shares_memory(batch[1:4].values, batch.values)
    assert not np.shares_memory(batch[::2].values, batch.values)
    assert SeriesBatch.concatenate([empty, batch]) == batch
    assert pickle.loads(pickle.dumps(empty)) == empty


@given(lists_of_series(), st.data())
def test_concatenating_the_pieces_gives_the_whole(series, data):
    cut = data.draw(st.integers(0, len(series)))
    batch = as_series(series)
    assert SeriesBatch.concatenate([batch[:cut], batch[cut:]]) == batch
    assert SeriesBatch.concatenate([batch]) is batch


def test_batches_are_joined_if_their_channels_agree(batch, series):
    joined = SeriesBatch.concatenate([as_series(series), batch])
    assert joined.channel_names == ("x", "y", "z")
    for batches, message in (
        ([], "at least one batch"),
        ([batch, SeriesBatch([[1.0]], [0, 1])], "batch 1 has 1 channel, expected 3"),
        ([batch, named(series, ["z", "y", "x"])], "batch 1 names its channels .*'z', 'y', 'x'"),
    ):
        with pytest.raises(DataError, match=message):
            SeriesBatch.concatenate(batches)


def test_equality_is_by_values_bounds_and_names(batch, series):
    assert batch == named(series, ["x", "y", "z"])
    assert batch != as_series(series)
    assert batch != SeriesBatch(batch.values, [0, 19], batch.channel_names)
    assert batch != SeriesBatch(batch.values + 1, batch.offsets, batch.channel_names)
    assert batch != batch[:4]
    assert batch != "batch"


@pytest.mark.parametrize("protocol", range(2, pickle.HIGHEST_PROTOCOL + 1))
def test_pickling_keeps_content_and_read_only_flags(batch, protocol):
    copy = pickle.loads(pickle.dumps(batch, protocol))
    assert copy == batch
    assert not copy.values.flags.writeable
    assert not copy.offsets.flags.writeable
    # A slice does not carry the whole.
    assert len(pickle.dumps(as_series(np.zeros((100, 1000)))[:1], protocol)) < 10_000


@given(lists_of_series())
def test_listing_the_series_and_as_series_are_inverse(series):
    batch = as_series(series)
    assert_same(batch, series)
    assert as_series(list(batch)) == batch
    for layout in ("channels_first", "time_first"):
        listed = batch.to_list(layout)
        assert as_series(listed, layout=layout) == batch
        assert_same(batch, [x if layout == "channels_first" else x.T for x in listed])
        assert all(np.shares_memory(x, batch.values) for x in listed)
        assert not any(x.flags.writeable for x in listed)
    with pytest.raises(DataError, match="layout must be"):
        batch.to_list("sideways")


@pytest.mark.parametrize(("shape", "text"), [
    ((1, 1, 1), "SeriesBatch(1 series, 1 channel, 1 step, 8 bytes)"),
    ((2, 3, 50), "SeriesBatch(2 series, 3 channels, 50 steps, 2.4 kB)"),
    ((50, 25, 100), "SeriesBatch(50 series, 25 channels, 100 steps, 1 MB)"),
])  # fmt: skip
def test_repr_is_one_line_of_facts(shape, text, batch):
    assert repr(as_series(np.zeros(shape))) == text
    assert repr(batch) == "SeriesBatch(5 series, 3 channels, 1-7 steps, 456 bytes)"


class MeanLength(ClassifierMixin, BaseEstimator):
    """Predicts whether a series is longer than a threshold; insists on getting batches."""

    def __init__(self, threshold=3):
        self.threshold = threshold

    def fit(self, X, y):
        assert isinstance(X, SeriesBatch)
        self.classes_ = np.unique(y)
        return self

    def predict(self, X):
        assert isinstance(X, SeriesBatch)
        return (X.lengths > self.threshold).astype(int)


@pytest.mark.parametrize(
    "key", [[3, 0, 3], (1, 2), np.array([4]), slice(1, 3), [True, False, False, True, False], 2]
)
def test_safe_indexing_gives_what_indexing_gives(batch, key):
    got = _safe_indexing(batch, key)
    expected = batch[list(key) if isinstance(key, tuple) else key]
    if isinstance(key, int):
        np.testing.assert_array_equal(got, expected)
    else:
        assert isinstance(got, SeriesBatch)
        assert got == expected


def test_searches_and_splits_keep_series_and_labels_together(rng):
    lengths = rng.integers(1, 10, size=60)
    batch, y = as_series([rng.normal(size=(2, n)) for n in lengths]), (lengths > 5).astype(int)
    search = GridSearchCV(MeanLength(), {"threshold": [2, 5, 8]}, error_score="raise")
    assert search.fit(batch, y).best_params_ == {"threshold": 5}
    assert search.best_score_ == 1.0
    train, test, y_train, y_test = train_test_split(batch, y, random_state=0)
    np.testing.assert_array_equal(train.lengths > 5, y_train)
    np.testing.assert_array_equal(test.lengths > 5, y_test)
