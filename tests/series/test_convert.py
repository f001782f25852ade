"""as_series: arrays and lists of many kinds, and an error that helps for all others."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import slts
from slts.errors import DataError
from slts.series import SeriesBatch, as_series
from slts.tables.roles import ExpectedColumns

FINITE = st.floats(allow_nan=False, allow_infinity=False)


def lengths_of(batch):
    return batch.lengths.tolist()


# -- what is accepted


def test_a_batch_is_returned_as_it_is():
    batch = as_series(np.zeros((2, 3)))
    assert as_series(batch) is batch


def test_lists_hold_channels_by_time_or_time_by_channels():
    x, y = np.arange(6.0).reshape(2, 3), np.arange(8.0).reshape(2, 4)
    batches = [as_series(X) for X in ([x, y], (x, y), [x.tolist(), y.tolist()])]
    for batch in (*batches, as_series([x.T, y.T], layout="time_first")):
        assert lengths_of(batch) == [3, 4]
        np.testing.assert_array_equal(batch[0], x)
        np.testing.assert_array_equal(batch[1], y)


def test_one_dimensional_series_are_univariate():
    for layout in ("channels_first", "time_first"):
        batch = as_series([[1, 2, 3], np.array([4.0])], layout=layout)
        assert lengths_of(batch) == [3, 1]
        assert batch.n_channels == 1


def some_arrays(n_dims):
    shapes = hnp.array_shapes(min_dims=n_dims, max_dims=n_dims, max_side=5)
    return hnp.arrays(np.float64, shapes, elements=FINITE)


@given(some_arrays(3), some_arrays(2))
def test_arrays_equal_the_list_of_their_items(X, flat):
    batch = as_series(X, layout="channels_first")
    assert batch == as_series(list(X), layout="channels_first")
    assert as_series(X, layout="time_first") == as_series(list(X), layout="time_first")
    assert batch == as_series(X.transpose(0, 2, 1), layout="time_first")
    assert as_series(flat) == as_series(list(flat)) == as_series(flat[:, None, :])
    assert as_series(flat, layout="time_first") == as_series(flat)


@pytest.mark.parametrize(("kind", "axes"), [(np.asarray, "n, time"), (list, "time")])
def test_equal_series_with_far_more_channels_than_steps_may_have_swapped_axes(kind, axes):
    swapped = kind(np.random.default_rng(0).normal(size=(8, 30, 3)))
    match = rf"30 channels and 3 steps.* \({axes}, channels\), use .*'time_first'"
    with pytest.warns(UserWarning, match=match):
        model = slts.OneNNClassifier().fit(swapped, [0, 1] * 4)
    # Neither the layout that was named nor the channels of training are doubted.
    as_series(swapped, layout="channels_first")
    model.predict(swapped)


def test_axes_that_are_certain_are_not_doubted(tmp_path):
    X, y = list(np.random.default_rng(0).normal(size=(12, 9, 2))), ["a", "b"] * 6
    named = as_series(X, layout="channels_first")
    slts.datasets.write_ts(tmp_path / "wide.ts", named, y)
    assert slts.datasets.read_ts(tmp_path / "wide.ts")[0].n_channels == 9
    gap = X[0].copy()
    gap[0, 0] = np.nan
    assert slts.align(gap, X[1]).path[-1].tolist() == [1, 1]
    model = slts.LocalSLTSClassifier(n_snippets=4, random_state=0).fit(named, y)
    assert slts.summarize(model, X).channel_importance.shape[1] == 9
    np.savez(tmp_path / "known.npz", X=X)
    known = ExpectedColumns(n_channels=9)
    assert len(slts.scan_series(tmp_path / "known.npz", expect=known).read()) == 12
    bag = pytest.importorskip("dask.bag").from_sequence(zip(X, y, strict=True), npartitions=3)
    slts.OneNNClassifier().fit(slts.scan_series(bag), None)


@pytest.mark.parametrize("kind", [np.asarray, as_series, list])
def test_a_pair_of_series_and_labels_must_be_unpacked(kind):
    pair = kind(np.zeros((4, 2, 9))), [0, 1, 0, 1]
    for y in (None, pair[1]):
        with pytest.raises(DataError, match="a pair of series and labels: unpack it"):
            slts.OneNNClassifier().fit(pair, y)


@pytest.mark.parametrize(
    ("X", "layout"),
    [
        (np.zeros((3, 4)), "channels_first"),
        (np.zeros((3, 1, 4)), "channels_first"),
        (np.zeros((3, 4, 2)), "time_first"),
    ],
)
def test_arrays_are_not_copied_when_their_layout_fits(X, layout):
    batch = as_series(X, layout=layout)
    assert np.shares_memory(batch.values, X)
    assert X.flags.writeable


@pytest.mark.parametrize(
    "dtype", [bool, np.int8, np.uint64, np.float16, np.longdouble, ">f8", object]
)
def test_all_real_dtypes_become_float64(dtype):
    X = np.array([[0, 1], [1, 1]]).astype(dtype)
    for data in (X, list(X), X[:, None, :]):
        batch = as_series(data)
        assert batch.values.dtype == np.dtype(np.float64)
        np.testing.assert_array_equal(batch.values.ravel(), [0, 1, 1, 1])


def test_object_arrays_may_hold_series_or_channels():
    X = np.empty(2, dtype=object)
    X[:] = [np.zeros((2, 3)), np.zeros((2, 5))]
    assert lengths_of(as_series(X)) == [3, 5]
    X[:] = [np.zeros(3), [1, 2]]
    assert lengths_of(as_series(X)) == [3, 2]
    X = np.empty((2, 2), dtype=object)
    for i, length in enumerate((3, 5)):
        X[i, 0], X[i, 1] = np.arange(length), -np.arange(length)
    batch = as_series(X)
    assert lengths_of(batch) == [3, 5]
    np.testing.assert_array_equal(batch[1], [np.arange(5), -np.arange(5)])


def test_anything_with_an_array_interface_is_an_array():
    class Tensor:
        def __array__(self, dtype=None, copy=None):
            return np.zeros((2, 3, 4))

    assert lengths_of(as_series(Tensor())) == [4, 4]
    masked = np.ma.masked_invalid(np.zeros((2, 3)))
    assert as_series(masked) == as_series(np.zeros((2, 3)))


# -- padding


def test_padding_is_removed_from_every_kind_of_array():
    nan = np.nan
    X = np.array([[1.0, 2.0, nan], [3.0, nan, nan], [4.0, 5.0, 6.0]])
    for data in (X, list(X), X[:, None, :], X.astype(object)):
        assert lengths_of(as_series(data, padded=True)) == [2, 1, 3]
    series = [np.arange(6.0).reshape(3, 2), np.ones((5, 2)), np.zeros((1, 2))]
    X = np.stack([np.pad(x, [(0, 5 - len(x)), (0, 0)], constant_values=nan) for x in series])
    batch = as_series(X, layout="time_first", padded=True)
    assert batch == as_series(series, layout="time_first")
    complete = np.zeros((2, 3))
    assert np.shares_memory(as_series(complete, padded=True).values, complete)


@pytest.mark.parametrize(
    ("X", "place"),
    [
        # A step with some channels is not padding.
        ([[[0, 0, 0], [0, 0, np.nan]]], "series 0, step 2, channel 1"),
        ([[1, 1, 1, np.nan], [0, np.nan, 1, np.nan]], "series 1, step 1, channel 0"),
        ([[1, np.nan], [np.nan, np.nan]], "series 1"),
    ],
)
def test_other_missing_values_in_padded_arrays_are_errors(X, place):
    with pytest.raises(DataError, match=f"{place} is NaN"):
        as_series(np.array(X), padded=True)


def with_value(value, shape=(3, 2, 9), at=(2, 1, 7)):
    X = np.zeros(shape)
    X[at] = value
    return X


# -- missing values


@pytest.mark.parametrize(
    "X",
    [
        with_value(np.nan),
        list(with_value(np.nan)),
        np.ma.masked_equal(with_value(5.0), 5.0),
        as_series(with_value(np.nan)),
    ],
    ids=["array", "list", "masked", "batch"],
)
def test_missing_values_are_kept_or_an_error(X):
    batch = as_series(X)
    assert batch.n_missing.tolist() == [0, 1]
    assert repr(batch).endswith("432 bytes, 1 missing value)")
    with pytest.raises(DataError, match=r"series 2, step 7, channel 1 is NaN, .*missing='ignore'"):
        as_series(X, missing="error")


def test_steps_at_the_end_without_a_value_are_removed():
    X = with_value(np.nan)
    X[1, :, 6:] = np.nan
    assert lengths_of(as_series(X)) == [9, 6, 9]
    with pytest.raises(DataError, match="series 1, step 6, channel 0 is NaN"):
        as_series(X, missing="error")


def test_gaps_can_be_interpolated():
    nan = np.nan
    X = [[[nan, 1.0, nan, 3.0, nan], [nan] * 5]]
    filled = [[1.0, 1.0, 2.0, 3.0], [nan] * 4]
    for same in (X, as_series(X)):
        np.testing.assert_array_equal(as_series(same, missing="interpolate")[0], filled)


def test_complete_series_pass_all_settings_of_missing():
    X = np.ones((2, 3))
    for missing in ("error", "interpolate"):
        assert as_series(X, missing=missing) == as_series(X, missing="ignore")
    with pytest.raises(DataError, match=r"missing must be 'ignore', .* or 'error', got 'drop'"):
        as_series(X, missing="drop")


# -- aeon


@pytest.mark.parametrize(
    ("kind", "channels"),
    [("numpy3D", 2), ("np-list", 2), ("df-list", 2), ("pd-multiindex", 2), ("numpy2D", 1),
     ("pd-wide", 1)],
)  # fmt: skip
def test_collections_of_aeon_are_understood(kind, channels):
    conversion = pytest.importorskip("aeon.utils.conversion")
    X = np.random.default_rng(0).normal(size=(3, channels, 5))
    batch = as_series(conversion.convert_collection(X, kind))
    np.testing.assert_array_equal(batch.values, as_series(X).values)
    np.testing.assert_array_equal(batch.offsets, as_series(X).offsets)


# -- errors


RAGGED = [np.zeros((12, 4)), np.zeros((12, 7)), np.zeros((12, 4)), np.zeros((5, 9))]
TRANSPOSED = [np.zeros((7, 12)), np.zeros((9, 12)), np.zeros((7, 12))]


@pytest.mark.parametrize(
    ("X", "message"),
    [
        (RAGGED, r"series 3 has 5 channels, expected 12 \(as series 0\)"),
        (TRANSPOSED, r"series 1 has 9 channels, expected 7 .*layout time_first\?"),
        ([np.zeros(4), np.zeros((2, 4))], "series 1 has 2 channels, expected 1"),
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
        ([1.0, 2.0], r"series 0 is a single number.*Reshape your data"),
        (np.zeros(3), r"X has 1 dimension\(s\) .*Reshape your data"),
        (np.zeros(3).astype(object), "Reshape your data"),
        (np.array(1.0), r"X has 0 dimension\(s\).*Reshape your data"),
        (np.zeros((1, 2, 3, 4)), r"X has 4 dimension\(s\)"),
        ([[[1, 2], [3]]], "series 0 is not rectangular"),
        ([["a", "b"]], "series 0 has dtype <U1"),
        (np.array([["a"]]), "X has dtype <U1"),
        (np.array([["1.5", 2.0]], dtype=object), "X holds the string '1.5'"),
        ([np.array([1.0, "2"], dtype=object)], "series 0 holds the string '2'"),
        (np.array([[1, 2]], dtype="M8[s]"), r"X has dtype datetime64\[s\]"),
        (np.zeros((2, 2), dtype=complex), "Complex data not supported: X has dtype complex128"),
        ([[1j]], "Complex data not supported: series 0"),
        ({"a": [1]}, r"X is a dict.*list\(X.values\(\)\)"),
        (None, "X is of type NoneType"),
        ("abc", "X is of type str"),
        ((x for x in "ab"), "X is of type generator"),
    ],
)
def test_data_that_cannot_be_used_are_explained(X, message):
    with pytest.raises(DataError, match=message):
        as_series(X)


def test_object_arrays_of_the_wrong_shape_are_explained():
    X = np.empty((1, 2), dtype=object)
    for cells, message in (
        ((np.zeros(3), np.zeros(4)), "series 0, channel 1 has 4 steps, expected 3"),
        ((np.zeros(3), np.zeros((2, 3))), "series 0, channel 1 has 2 dimensions"),
        ((1.0, np.zeros(4)), "X cannot be read as numbers"),
    ):
        X[0, 0], X[0, 1] = cells
        with pytest.raises(DataError, match=message):
            as_series(X)


@pytest.mark.parametrize(
    ("X", "message"),
    [
        (scipy.sparse.csr_array(np.eye(3)), r"X is sparse .*toarray"),
        ([scipy.sparse.coo_matrix(np.eye(3))], "series 0 is sparse"),
        (np.array([[{"foo": "bar"}, 0]]), "X holds .*argument must be"),
        ([SeriesBatch(np.zeros((2, 3)), [0, 2])], r"SeriesBatch\.concatenate"),
    ],
)
def test_other_types_raise_type_error(X, message):
    with pytest.raises(TypeError, match=message):
        as_series(X)


def test_layouts_are_checked():
    with pytest.raises(DataError, match=r"layout must be .* got 'F'"):
        as_series(np.zeros((2, 3)), layout="F")
    with pytest.raises(DataError, match=r"Is the layout channels_first\?"):
        as_series([np.zeros((2, 7)), np.zeros((2, 9))], layout="time_first")


@pytest.mark.parametrize("option", ["id", "time", "channels", "label"])
def test_column_names_need_a_frame(option):
    with pytest.raises(DataError, match=f"{option}= names a column .* got ndarray"):
        as_series(np.zeros((2, 3)), **{option: "a"})
