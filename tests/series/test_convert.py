"""as_series: arrays and lists of many kinds, and an error that helps for all others."""

import numpy as np
import pytest
import scipy.sparse
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import slts
from slts.errors import DataError
from slts.series import SeriesBatch, as_series

FINITE = st.floats(allow_nan=False, allow_infinity=False)


class Tensor:
    """Something with the interface of an array."""

    def __array__(self, dtype=None, copy=None):
        return np.stack([SERIES[0], SERIES[0]])


SERIES = [np.arange(6.0).reshape(2, 3), np.arange(8.0).reshape(2, 4)]
OBJECTS = np.empty(2, dtype=object)
OBJECTS[:] = SERIES


@pytest.mark.parametrize(("X", "layout", "expected"), [
    (SERIES, None, SERIES), (tuple(SERIES), None, SERIES),
    ([x.tolist() for x in SERIES], None, SERIES), (OBJECTS, None, SERIES),
    ([x.T for x in SERIES], "time_first", SERIES),
    ([[1, 2, 3], np.array([4.0])], "channels_first", [[[1, 2, 3]], [[4]]]),
    ([[1, 2, 3], np.array([4.0])], "time_first", [[[1, 2, 3]], [[4]]]),
    (Tensor(), None, [SERIES[0]] * 2), (np.ma.masked_invalid(np.ones((1, 2))), None, [[[1, 1]]]),
])  # fmt: skip
def test_lists_and_arrays_of_many_kinds_are_understood(X, layout, expected):
    batch = as_series(X, layout=layout)
    assert as_series(batch) is batch
    for x, same in zip(batch, expected, strict=True):
        np.testing.assert_array_equal(x, same)


def some_arrays(n_dims):
    shapes = hnp.array_shapes(min_dims=n_dims, max_dims=n_dims, max_side=5)
    return hnp.arrays(np.float64, shapes, elements=FINITE)


@given(some_arrays(3), some_arrays(2))
def test_arrays_equal_the_list_of_their_items(X, flat):
    batch = as_series(X, layout="channels_first")
    assert batch == as_series(list(X), layout="channels_first")
    assert as_series(X, layout="time_first") == as_series(list(X), layout="time_first")
    assert batch == as_series(X.transpose(0, 2, 1), layout="time_first")
    # Arrays are not copied when their layout fits.
    shared = as_series(X, layout="time_first").values
    assert np.shares_memory(shared, X)
    assert X.flags.writeable
    assert as_series(flat) == as_series(list(flat)) == as_series(flat[:, None, :])
    assert as_series(flat, layout="time_first") == as_series(flat)


@pytest.mark.parametrize("kind", [np.asarray, list])
def test_equal_series_with_far_more_channels_than_steps_may_have_swapped_axes(kind):
    swapped = kind(np.random.default_rng(0).normal(size=(8, 30, 3)))
    with pytest.warns(UserWarning, match=r"30 channels and 3 steps.* layout='time_first'"):
        model = slts.OneNNClassifier().fit(swapped, [0, 1] * 4)
    # Neither the layout that was named nor the channels of training are doubted.
    as_series(swapped, layout="channels_first")
    model.predict(swapped)


def test_axes_that_are_certain_are_not_doubted():
    X, y = list(np.random.default_rng(0).normal(size=(12, 9, 2))), ["a", "b"] * 6
    gap = X[0].copy()
    gap[0, 0] = np.nan
    assert slts.align(gap, X[1]).path[-1].tolist() == [1, 1]
    named = as_series(X, layout="channels_first")
    model = slts.LocalSLTSClassifier(n_snippets=4, random_state=0).fit(named, y)
    assert slts.summarize(model, X).channel_importance.shape[1] == 9


@pytest.mark.parametrize("kind", [np.asarray, as_series, list])
def test_a_pair_of_series_and_labels_must_be_unpacked(kind):
    pair = kind(np.zeros((4, 2, 9))), [0, 1, 0, 1]
    for y in (None, pair[1]):
        with pytest.raises(DataError, match="a pair of series and labels: unpack it"):
            slts.OneNNClassifier().fit(pair, y)


@pytest.mark.parametrize(
    "dtype", [bool, np.int8, np.uint64, np.float16, np.longdouble, ">f8", object]
)
def test_all_real_dtypes_become_float64(dtype):
    X = np.array([[0, 1], [1, 1]]).astype(dtype)
    for data in (X, list(X), X[:, None, :]):
        batch = as_series(data)
        assert batch.values.dtype == np.dtype(np.float64)
        np.testing.assert_array_equal(batch.values.ravel(), [0, 1, 1, 1])


def test_padding_is_removed_from_every_kind_of_array():
    nan = np.nan
    X = np.array([[1.0, 2.0, nan], [3.0, nan, nan], [4.0, 5.0, 6.0]])
    for data in (X, list(X), X[:, None, :], X.astype(object)):
        assert as_series(data, padded=True).lengths.tolist() == [2, 1, 3]
    series = [np.arange(6.0).reshape(3, 2), np.ones((5, 2)), np.zeros((1, 2))]
    X = np.stack([np.pad(x, [(0, 5 - len(x)), (0, 0)], constant_values=nan) for x in series])
    batch = as_series(X, layout="time_first", padded=True)
    assert batch == as_series(series, layout="time_first")
    complete = np.zeros((2, 3))
    assert np.shares_memory(as_series(complete, padded=True).values, complete)


@pytest.mark.parametrize(("X", "place"), [
    # A step with some channels is not padding.
    ([[[0, 0, 0], [0, 0, np.nan]]], "series 0, step 2, channel 1"),
    ([[1, 1, 1, np.nan], [0, np.nan, 1, np.nan]], "series 1, step 1, channel 0"),
    ([[1, np.nan], [np.nan, np.nan]], "series 1"),
])  # fmt: skip
def test_other_missing_values_in_padded_arrays_are_errors(X, place):
    with pytest.raises(DataError, match=f"{place} is NaN"):
        as_series(np.array(X), padded=True)


def with_value(value, shape=(3, 2, 9), at=(2, 1, 7)):
    X = np.zeros(shape)
    X[at] = value
    return X


@pytest.mark.parametrize("X", [
    with_value(np.nan), list(with_value(np.nan)), np.ma.masked_equal(with_value(5.0), 5.0),
    as_series(with_value(np.nan)),
], ids=["array", "list", "masked", "batch"])  # fmt: skip
def test_missing_values_are_kept_or_an_error(X):
    batch = as_series(X)
    assert batch.n_missing.tolist() == [0, 1]
    assert repr(batch).endswith("432 bytes, 1 missing value)")
    with pytest.raises(DataError, match=r"series 2, step 7, channel 1 is NaN, .*missing='ignore'"):
        as_series(X, missing="error")


def test_steps_at_the_end_without_a_value_are_removed():
    X = with_value(np.nan)
    X[1, :, 6:] = np.nan
    assert as_series(X).lengths.tolist() == [9, 6, 9]
    with pytest.raises(DataError, match="series 1, step 6, channel 0 is NaN"):
        as_series(X, missing="error")


def test_gaps_can_be_interpolated():
    nan = np.nan
    X = [[[nan, 1.0, nan, 3.0, nan], [nan] * 5]]
    filled = [[1.0, 1.0, 2.0, 3.0], [nan] * 4]
    for same in (X, as_series(X)):
        np.testing.assert_array_equal(as_series(same, missing="interpolate")[0], filled)


@pytest.mark.parametrize(
    ("kind", "channels"), [("numpy3D", 2), ("np-list", 2), ("numpy2D", 1), ("pd-wide", 1)]
)
def test_collections_of_aeon_are_understood(kind, channels):
    conversion = pytest.importorskip("aeon.utils.conversion")
    X = np.random.default_rng(0).normal(size=(3, channels, 5))
    batch = as_series(conversion.convert_collection(X, kind))
    np.testing.assert_array_equal(batch.values, as_series(X).values)
    np.testing.assert_array_equal(batch.offsets, as_series(X).offsets)


RAGGED = [np.zeros((12, 4)), np.zeros((12, 7)), np.zeros((12, 4)), np.zeros((5, 9))]
TRANSPOSED = [np.zeros((7, 12)), np.zeros((9, 12)), np.zeros((7, 12))]


@pytest.mark.parametrize(("X", "message"), [
    (RAGGED, r"series 3 has 5 channels, expected 12 \(as series 0\)"),
    (TRANSPOSED, r"series 1 has 9 channels, expected 7 .*layout="),
    ([np.zeros(4), np.zeros((2, 4))], "series 1 has 2 channels, expected 1"),
    (np.array(["0", [1]], dtype=object), "series 0 holds the text '0'"),
    (with_value(np.inf), "series 2, step 7, channel 1 is inf"),
    (with_value(-np.inf), "series 2, step 7, channel 1 is -inf"),
    (np.array([[1.0, None], [None, None]], dtype=object), "series 1 is NaN throughout"),
    ([np.array([[np.longdouble("1e4000")]])], "series 0, step 0, channel 0 is inf"),
    ([], r"0 sample\(s\) while a minimum of 1 is required"),
    (np.empty((0, 3)), r"0 sample\(s\) \(shape=\(0, 3\)\) while a minimum of 1 is required"),
    (np.empty((0, 2, 3)), r"0 sample\(s\) \(shape=\(0, 2, 3\)\)"),
    (np.empty((12, 0)), r"0 feature\(s\) \(shape=\(12, 0\)\) while a minimum of 1 is required"),
    (np.empty((2, 0, 3)), r"0 feature\(s\) \(shape=\(2, 0, 3\)\)"),
    (np.empty((2, 3, 0)), r"0 feature\(s\) \(shape=\(2, 3, 0\)\)"),
    ([np.zeros((2, 3)), np.zeros((2, 0))], "series 1 has 0 steps"),
    ([np.zeros((2, 3)), []], "series 1 has 0 steps"),
    ([np.zeros((0, 3))], "series 0 has 0 channels"),
    ([np.zeros((2, 3)), np.zeros((1, 2, 3))], "series 1 has 3 dimensions"),
    ([1.0, 2.0], r"series 0 has 0 dimensions.*Reshape your data"),
    (np.zeros(3), r"X has 1 dimension\(s\) .*Reshape your data"),
    (np.zeros(3).astype(object), "Reshape your data"),
    (np.array(1.0), r"X has 0 dimension\(s\).*Reshape your data"),
    (np.zeros((1, 2, 3, 4)), r"X has 4 dimension\(s\)"),
    ([[[1, 2], [3]]], "series 0 is not rectangular"), ([["a", "b"]], "series 0 holds the text 'a'"),
    (np.array([["a"]]), "X holds the text 'a'"),
    (np.array([["1.5", 2.0]], dtype=object), "X holds the text '1.5'"),
    ([np.array([1.0, "2"], dtype=object)], "series 0 holds the text '2'"),
    (np.array([[1, 2]], dtype="M8[s]"), r"X has dtype datetime64\[s\]"),
    (np.zeros((2, 2), dtype=complex), "Complex data not supported: X has dtype complex128"),
    ([[1j]], "Complex data not supported: series 0"), ({"a": [1]}, "X is of type dict"),
    (None, "X is of type NoneType"), ("abc", "X is of type str"),
    ((x for x in "ab"), "X is of type generator"),
])  # fmt: skip
def test_data_that_cannot_be_used_are_explained(X, message):
    with pytest.raises(DataError, match=message):
        as_series(X)


@pytest.mark.parametrize(("X", "message"), [
    (scipy.sparse.csr_array(np.eye(3)), r"X is sparse .*toarray"),
    ([scipy.sparse.coo_matrix(np.eye(3))], "series 0 is sparse"),
    (np.array([[{"foo": "bar"}, 0]]), "X holds .*argument must be"),
    ([SeriesBatch(np.zeros((2, 3)), [0, 2])], r"SeriesBatch\.concatenate"),
])  # fmt: skip
def test_other_types_raise_type_error(X, message):
    with pytest.raises(TypeError, match=message):
        as_series(X)


@pytest.mark.parametrize(("options", "message"), [
    *(({name: "a"}, f"{name}= names a column .* got ndarray")
      for name in ("id", "time", "channels", "label")),
    ({"layout": "F"}, "layout must be .* got 'F'"),
    ({"missing": "drop"}, "missing must be .*'interpolate'.*, got 'drop'"),
])  # fmt: skip
def test_parameters_are_checked(options, message):
    with pytest.raises(DataError, match=message):
        as_series(np.zeros((2, 3)), **options)


def test_other_frames_and_series_of_pandas_are_lists_of_series():
    pd = pytest.importorskip("pandas")
    X = np.arange(6.0).reshape(2, 3)
    assert as_series(pd.DataFrame(X)) == as_series(X)
    for several in (
        [pd.Series([1, 2]), pd.Series([3.0])],
        pd.Series([np.zeros((2, 2)), np.zeros((2, 1))]),
    ):
        assert as_series(several).lengths.tolist() == [2, 1]


def test_other_pandas_containers_and_infinite_values_are_errors():
    pd = pytest.importorskip("pandas")
    index = pd.MultiIndex.from_product([[0, 1], [0, 1, 2]])
    frame = pd.DataFrame({"x": np.arange(6.0)}, index=index)
    with pytest.raises(DataError, match=r"X has an index of several levels.*reset_index"):
        as_series(frame)
    with pytest.raises(DataError, match=r"series 0 is a data frame: pass x\.to_numpy"):
        as_series([frame])
    table = pd.DataFrame({"id": [0, 0, 1, 1], "t": [0, 1, 0, 1], "x": [0.0, 1.0, 2.0, np.inf]})
    with pytest.raises(DataError, match="infinite"):
        as_series(table, id="id", time="t", channels=["x"])
