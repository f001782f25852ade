"""SeriesBatch: a ragged, immutable container that scikit-learn can split."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.model_selection import GridSearchCV, cross_val_score, train_test_split
from sklearn.utils._indexing import _safe_indexing

from slts.errors import DataError
from slts.series import SeriesBatch, as_series

FINITE = st.floats(allow_nan=False, allow_infinity=False)


@st.composite
def lists_of_series(draw, min_size=1):
    """Lists of (channels, time) arrays with one number of channels."""
    n_channels = draw(st.integers(1, 4))
    shape = st.tuples(st.just(n_channels), st.integers(1, 6))
    return draw(
        st.lists(hnp.arrays(np.float64, shape, elements=FINITE), min_size=min_size, max_size=6)
    )


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


# -- construction


def test_properties_describe_the_data(batch):
    assert len(batch) == 5
    assert batch.shape == (5,)
    assert batch.n_channels == 3
    assert batch.n_steps == 19
    assert batch.channel_names == ("x", "y", "z")
    np.testing.assert_array_equal(batch.lengths, [4, 1, 7, 2, 5])
    np.testing.assert_array_equal(batch.offsets, [0, 4, 5, 12, 14, 19])
    assert batch.values.dtype == np.float64
    assert batch.offsets.dtype == np.int64
    assert batch.values.flags.c_contiguous


def test_messages_call_a_series_by_its_name_or_number(batch):
    assert batch.anonymous().name_of(1, "X") == "series 1 of X"
    named = batch.named([f"r{k}" for k in range(len(batch))])
    assert named.name_of(1, "X") == "r1"


def test_contiguous_float64_values_are_not_copied():
    values = np.zeros((4, 2))
    batch = SeriesBatch(values, [0, 1, 4])
    assert np.shares_memory(values, batch.values)
    assert values.flags.writeable, "the caller's array must keep its write flag"


def test_offsets_are_copied():
    offsets = np.array([0, 1, 4])
    batch = SeriesBatch(np.zeros((4, 2)), offsets)
    offsets[1] = 3
    np.testing.assert_array_equal(batch.lengths, [1, 3])


def test_other_dtypes_and_orders_become_contiguous_float64():
    batch = SeriesBatch(np.asfortranarray(np.arange(6, dtype=np.int32).reshape(3, 2)), [0, 3])
    assert batch.values.dtype == np.float64
    assert batch.values.flags.c_contiguous


@pytest.mark.parametrize("attribute", ["values", "offsets"])
def test_arrays_are_read_only(batch, attribute):
    with pytest.raises(ValueError, match="read-only"):
        getattr(batch, attribute)[0] = 1


@pytest.mark.parametrize("attribute", ["values", "offsets", "channel_names", "anything"])
def test_attributes_cannot_be_set(batch, attribute):
    with pytest.raises(AttributeError):
        setattr(batch, attribute, None)


def test_series_are_read_only_channels_first_views(batch):
    for index, x in enumerate(batch):
        start, stop = batch.offsets[index : index + 2]
        for view in (x, batch[index]):
            np.testing.assert_array_equal(view, batch.values[start:stop].T)
            assert np.shares_memory(view, batch.values)
            assert not view.flags.writeable
    with pytest.raises(ValueError, match="read-only"):
        batch[2][0, 0] = 1.0


@pytest.mark.parametrize(
    ("values", "offsets", "names", "message"),
    [
        (
            np.zeros(3),
            [0, 3],
            None,
            r"values must have shape \(steps, channels\).*got shape \(3,\)",
        ),
        (np.zeros((3, 0)), [0, 3], None, r"at least one channel, got shape \(3, 0\)"),
        (np.zeros((3, 1)), [0.0, 3.0], None, "offsets must be a 1-D array of integers.*float64"),
        (np.zeros((3, 1)), [], None, r"offsets must be .*got shape \(0,\)"),
        (np.zeros((3, 1)), [[0, 3]], None, r"offsets must be .*got shape \(1, 2\)"),
        (np.zeros((3, 1)), [1, 3], None, "run from 0 to the number of steps, 3, got 1 to 3"),
        (np.zeros((3, 1)), [0, 2], None, "run from 0 to the number of steps, 3, got 0 to 2"),
        (np.zeros((3, 1)), [0, 2, 2, 3], None, "got 2 then 2: series 1 would have no steps"),
        (np.zeros((3, 1)), [0, 2, 1, 3], None, "got 2 then 1: series 1 would have no steps"),
        (np.zeros((3, 2)), [0, 3], ["a"], "channel_names must be 2 distinct names"),
        (np.zeros((3, 2)), [0, 3], ["a", "a"], "channel_names must be 2 distinct names"),
        (np.zeros((3, 2)), [0, 3], "ab", "channel_names must be 2 distinct names"),
        ([[0.0], [np.nan]], [0, 1, 2], None, "series 1 is NaN throughout"),
        ([[0.0], [np.inf]], [0, 2], None, "series 0, step 1, channel 0 is inf"),
        ([[0.0], [-np.inf]], [0, 2], ["a"], r"series 0, step 1, channel 0 \('a'\) is -inf"),
        ([["a"]], [0, 1], None, "values has dtype <U1, expected real numbers"),
    ],
)
def test_invalid_parts_are_refused(values, offsets, names, message):
    with pytest.raises(DataError, match=message):
        SeriesBatch(values, offsets, names)


# -- indexing


def test_negative_indices_count_from_the_end(batch, series):
    np.testing.assert_array_equal(batch[-1], series[-1])
    np.testing.assert_array_equal(batch[np.int64(-5)], series[0])
    np.testing.assert_array_equal(batch[np.array(1)], series[1])


@pytest.mark.parametrize("index", [5, -6])
def test_an_index_out_of_range_is_an_error(batch, index):
    with pytest.raises(IndexError, match=f"series {index} is out of range: the batch has 5"):
        batch[index]
    with pytest.raises(IndexError, match=f"series {index} is out of range: the batch has 5"):
        batch[[0, index]]


@pytest.mark.parametrize(
    ("key", "message"),
    [
        ((0, 1), r"one axis, its series: write batch\[i\]\[channels, steps\]"),
        ((0, 1, ...), "one axis, its series"),
        ([True, False], "the mask has 2 entries, expected 5"),
        ([[0, 1]], "1-D integer array"),
        ([0.5], "1-D integer array"),
        ("a", "got str"),
        (True, "got bool"),
        (None, "got NoneType"),
    ],
)
def test_other_keys_are_refused(batch, key, message):
    with pytest.raises(IndexError, match=message):
        batch[key]


@given(lists_of_series(), st.data())
def test_slicing_equals_list_slicing(series, data):
    key = data.draw(st.slices(len(series)))
    assert_same(as_series(series)[key], series[key])


@given(lists_of_series(), st.data())
def test_integer_arrays_select_in_order_and_with_repetition(series, data):
    n = len(series)
    key = data.draw(st.lists(st.integers(-n, n - 1), max_size=8))
    batch = as_series(series)
    expected = [series[i] for i in key]
    assert_same(batch[key], expected)
    assert_same(batch[np.array(key, dtype=np.int32)], expected)


@given(lists_of_series(), st.data())
def test_masks_select_where_true(series, data):
    mask = data.draw(st.lists(st.booleans(), min_size=len(series), max_size=len(series)))
    batch = as_series(series)
    expected = [x for x, chosen in zip(series, mask, strict=True) if chosen]
    assert_same(batch[mask], expected)
    assert_same(batch[np.array(mask)], expected)


def test_slices_of_step_one_share_memory(batch):
    assert np.shares_memory(batch[1:4].values, batch.values)
    assert not np.shares_memory(batch[::2].values, batch.values)


def test_selections_keep_the_channel_names(batch):
    for part in (batch[1:3], batch[::-1], batch[[0]], batch[np.zeros(5, dtype=bool)]):
        assert part.channel_names == ("x", "y", "z")


@pytest.mark.parametrize("key", [slice(0, 0), slice(3, 1), [], np.zeros(5, dtype=bool)])
def test_an_empty_selection_is_a_batch(batch, key):
    empty = batch[key]
    assert len(empty) == 0
    assert empty.n_channels == 3
    assert empty.n_steps == 0
    assert list(empty) == []
    assert repr(empty) == "SeriesBatch(0 series, 3 channels, 0 steps, 0 bytes)"
    assert empty._repr_html_()
    assert SeriesBatch.concatenate([empty, batch]) == batch
    assert pickle.loads(pickle.dumps(empty)) == empty


# -- joining, comparing, copying


@given(lists_of_series(), st.data())
def test_concatenating_the_pieces_gives_the_whole(series, data):
    cut = data.draw(st.integers(0, len(series)))
    batch = as_series(series)
    assert SeriesBatch.concatenate([batch[:cut], batch[cut:]]) == batch


def test_concatenating_one_batch_returns_it(batch):
    assert SeriesBatch.concatenate([batch]) is batch


def test_concatenation_keeps_the_names_some_batches_have(batch, series):
    joined = SeriesBatch.concatenate([as_series(series), batch])
    assert joined.channel_names == ("x", "y", "z")


def test_batches_that_do_not_fit_are_not_joined(batch, series):
    with pytest.raises(DataError, match="at least one batch"):
        SeriesBatch.concatenate([])
    with pytest.raises(DataError, match=r"batch 1 has 1 channel, expected 3 \(as batch 0\)"):
        SeriesBatch.concatenate([batch, SeriesBatch([[1.0]], [0, 1])])
    with pytest.raises(DataError, match=r"batch 1 names its channels .*'z', 'y', 'x'"):
        SeriesBatch.concatenate([batch, named(series, ["z", "y", "x"])])


def test_equality_is_by_values_bounds_and_names(batch, series):
    assert batch == named(series, ["x", "y", "z"])
    assert batch != as_series(series)
    assert batch != SeriesBatch(batch.values, [0, 19], batch.channel_names)
    assert batch != SeriesBatch(batch.values + 1, batch.offsets, batch.channel_names)
    assert batch != batch[:4]
    assert batch != "batch"


def test_a_batch_is_not_hashable(batch):
    with pytest.raises(TypeError, match="unhashable"):
        hash(batch)


@pytest.mark.parametrize("protocol", range(2, pickle.HIGHEST_PROTOCOL + 1))
def test_pickling_keeps_content_and_read_only_flags(batch, protocol):
    copy = pickle.loads(pickle.dumps(batch, protocol))
    assert copy == batch
    assert not copy.values.flags.writeable
    assert not copy.offsets.flags.writeable


def test_pickling_a_slice_does_not_carry_the_whole():
    batch = as_series(np.zeros((100, 1000)))
    assert len(pickle.dumps(batch[:1])) < 10_000


@given(lists_of_series())
def test_listing_the_series_and_as_series_are_inverse(series):
    batch = as_series(series)
    assert_same(batch, series)
    assert as_series(list(batch)) == batch
    assert as_series([batch[i] for i in range(len(batch))]) == batch
    assert as_series(batch.to_list()) == batch
    assert as_series(batch.to_list("time_first"), layout="time_first") == batch


def test_to_list_gives_views_in_the_layout_asked_for(batch):
    assert_same(batch, batch.to_list())
    assert_same(batch, [x.T for x in batch.to_list("time_first")])
    assert batch.to_list()[0].shape == (3, 4)
    assert batch.to_list("time_first")[0].shape == (4, 3)
    for x in (*batch.to_list(), *batch.to_list("time_first")):
        assert np.shares_memory(x, batch.values)
        assert not x.flags.writeable
    with pytest.raises(DataError, match="layout must be"):
        batch.to_list("sideways")


# -- display


@pytest.mark.parametrize(
    ("shape", "text"),
    [
        ((1, 1, 1), "SeriesBatch(1 series, 1 channel, 1 step, 8 bytes)"),
        ((2, 3, 50), "SeriesBatch(2 series, 3 channels, 50 steps, 2.4 kB)"),
        ((50, 25, 100), "SeriesBatch(50 series, 25 channels, 100 steps, 1 MB)"),
    ],
)
def test_repr_is_one_line_of_facts(shape, text):
    assert repr(as_series(np.zeros(shape))) == text


def test_repr_gives_the_range_of_lengths(batch):
    assert repr(batch) == "SeriesBatch(5 series, 3 channels, 1-7 steps, 456 bytes)"


def test_html_shows_the_first_series_and_counts_the_rest(series):
    html = as_series(series * 3)._repr_html_()
    assert html.count("<svg") == 5
    assert html.count("<polyline") == 15
    assert "and 10 more" in html
    assert "nan" not in html


def test_html_escapes_channel_names():
    html = SeriesBatch([[1.0, 2.0]], [0, 1], ["<script>", "a&b"])._repr_html_()
    assert "<script>" not in html
    assert "&lt;script&gt;" in html
    assert "a&amp;b" in html


def test_html_stays_small_and_finite_for_long_wide_and_extreme_series():
    values = np.full((1, 40, 5000), 1e308)
    values[:, ::2] = -1e308
    html = as_series(values)._repr_html_()
    assert len(html) < 20_000
    assert "and 34 more" in html
    assert "inf" not in html
    assert "nan" not in html


# -- NumPy and scikit-learn


def test_numpy_does_not_guess_a_layout(batch):
    with pytest.raises(TypeError, match=r"use \.values"):
        np.asarray(batch)


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


@pytest.fixture
def labelled():
    rng = np.random.default_rng(1)
    lengths = rng.integers(1, 10, size=60)
    batch = as_series([rng.normal(size=(2, length)) for length in lengths])
    return batch, (lengths > 5).astype(int)


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


def test_cross_validation_hands_out_batches(labelled):
    scores = cross_val_score(MeanLength(5), *labelled, error_score="raise")
    np.testing.assert_array_equal(scores, 1.0)


def test_grid_search_finds_the_threshold(labelled):
    search = GridSearchCV(MeanLength(), {"threshold": [2, 5, 8]}, error_score="raise")
    assert search.fit(*labelled).best_params_ == {"threshold": 5}


def test_train_test_split_keeps_series_and_labels_together(labelled):
    train, test, y_train, y_test = train_test_split(*labelled, random_state=0)
    np.testing.assert_array_equal(train.lengths > 5, y_train)
    np.testing.assert_array_equal(test.lengths > 5, y_test)
