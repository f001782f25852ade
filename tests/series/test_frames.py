"""as_series on data frames: long frames of three libraries, and pandas containers."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from slts.errors import DataError
from slts.series import SeriesBatch, as_series

pd = pytest.importorskip("pandas")
pl = pytest.importorskip("polars")
pa = pytest.importorskip("pyarrow")

LIBRARIES = {
    "pandas": pd.DataFrame,
    "pandas-nullable": lambda data: pd.DataFrame(data).convert_dtypes(),
    "pandas-arrow": lambda data: pd.DataFrame(data).convert_dtypes(dtype_backend="pyarrow"),
    "polars": pl.DataFrame,
    "pyarrow": pa.table,
}


@pytest.fixture(params=LIBRARIES)
def make(request):
    return LIBRARIES[request.param]


def long_data():
    return {
        "who": ["b", "a", "b", "a", "b"],
        "when": [2, 1, 1, 0, 3],
        "u": [1.0, 2.0, 3.0, 4.0, 5.0],
        "v": [10, 20, 30, 40, 50],
        "word": ["yes", "no", "yes", "no", "yes"],
    }


def expected(series, names=("x", "y")):
    batch = as_series(series, layout="time_first")
    return SeriesBatch(batch.values, batch.offsets, names)


# -- long frames


def test_series_come_in_order_of_appearance_and_sorted_by_time(make):
    batch = as_series(make(long_data()), id="who", time="when")
    assert batch.channel_names == ("u", "v")
    assert batch.lengths.tolist() == [3, 2]
    np.testing.assert_array_equal(batch[0], [[3, 1, 5], [30, 10, 50]])
    np.testing.assert_array_equal(batch[1], [[4, 2], [40, 20]])
    # Without a time, rows keep their order.
    batch = as_series(make(long_data()), id="who", channels=["u"])
    np.testing.assert_array_equal(batch[0], [[1, 3, 5]])
    np.testing.assert_array_equal(batch[1], [[2, 4]])
    # Identifiers may be of any type, and booleans are channels, in the order given.
    data = long_data() | {"who": [5, 3, 5, 3, 5], "on": [True, False, True, True, False]}
    batch = as_series(make(data), id="who", time="when", channels=["on", "u"])
    assert batch.channel_names == ("on", "u")
    np.testing.assert_array_equal(batch[0], [[1, 1, 0], [3, 1, 5]])


@pytest.mark.parametrize("labels", [["yes", "no"], [7, 8]])
def test_labels_are_one_per_series_and_no_channel(make, labels):
    data = long_data() | {"word": [labels[0], labels[1]] * 2 + [labels[0]]}
    batch, y = as_series(make(data), id="who", time="when", label="word")
    assert batch.channel_names == ("u", "v")
    assert isinstance(y, np.ndarray)
    assert y.tolist() == labels


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(-5, 5)), min_size=1, unique=True))
def test_a_long_frame_equals_grouping_by_hand(rows):
    values = np.arange(len(rows), dtype=float)
    frame = pl.DataFrame({"id": [r[0] for r in rows], "t": [r[1] for r in rows], "x": values})
    series = []
    for key in dict.fromkeys(r[0] for r in rows):
        chosen = sorted((t, x) for (i, t), x in zip(rows, values, strict=True) if i == key)
        series.append([[x] for _, x in chosen])
    assert as_series(frame, id="id", time="t") == expected(series, ["x"])


def test_a_missing_value_is_kept_or_located(make):
    data = long_data() | {"v": [10, 20, None, 40, 50]}
    assert as_series(make(data), id="who", time="when").n_missing.tolist() == [0, 1]
    filled, _ = as_series(make(data), id="who", time="when", missing="interpolate", label="word")
    assert filled.n_missing.tolist() == [0, 0]
    with pytest.raises(DataError, match=r"b, step 0, channel 1 \('v'\) is NaN"):
        as_series(make(data), id="who", time="when", missing="error")


WIDE = {"id": ["a", "b"], **{f"x{k}": [0.5, 1.5] for k in range(9)}}


@pytest.mark.parametrize(
    ("frame", "options", "message"),
    [
        (pd.DataFrame({"who": np.empty(0, int), "u": np.empty(0)}), {"id": "who"}, "0 sample"),
        (pd.DataFrame({"who": [1], "w": ["a"]}), {"id": "who"}, "no numeric column left"),
        (pl.DataFrame(long_data()).lazy(), {"id": "who"}, r"LazyFrame has no rows yet: collect"),
        (pd.DataFrame(long_data()), {}, r"which column identifies the series.*\(id=\)"),
        (pd.DataFrame(long_data()), {"id": "who", "padded": True}, "padded=True is for arrays"),
        (pd.DataFrame(long_data()), {"id": "x"}, r"no column 'x' \(id\)"),
        (pd.DataFrame([[1, 2.0]], columns=["i", "i"]), {"id": "i"}, "Duplicate column names"),
        (pd.DataFrame(WIDE), {}, r"every row .* is one series: use slts\.scan_series"),
    ],
)
def test_other_frames_are_explained(frame, options, message):
    with pytest.raises(DataError, match=message):
        as_series(frame, **options)


# -- pandas containers that are no tables


def test_other_frames_and_series_of_pandas_are_lists_of_series():
    X = np.arange(6.0).reshape(2, 3)
    assert as_series(pd.DataFrame(X)) == as_series(X)
    for several in (
        [pd.Series([1, 2]), pd.Series([3.0])],
        pd.Series([np.zeros((2, 2)), np.zeros((2, 1))]),
    ):
        assert as_series(several).lengths.tolist() == [2, 1]


# -- columns


def test_columns_that_are_not_named_are_stated_in_a_warning():
    frame = pd.DataFrame(long_data()).rename(columns={"who": "recording", "when": "time"})
    with pytest.warns(UserWarning, match=r"id=recording, time=time, channels=u,v, not used: word"):
        batch = as_series(frame)
    assert as_series(frame, id="recording", time="time") == batch
    with pytest.warns(UserWarning, match="id=recording, time=time"):
        assert as_series(frame.set_index("recording")) == batch


def test_other_pandas_containers_and_infinite_values_are_errors():
    index = pd.MultiIndex.from_product([[0, 1], [0, 1, 2]])
    frame = pd.DataFrame({"x": np.arange(6.0)}, index=index)
    with pytest.raises(DataError, match=r"X has an index of several levels.*reset_index"):
        as_series(frame)
    with pytest.raises(DataError, match=r"series 0 is a data frame: pass x\.to_numpy"):
        as_series([frame])
    table = pd.DataFrame({"id": [0, 0, 1, 1], "t": [0, 1, 0, 1], "x": [0.0, 1.0, 2.0, np.inf]})
    with pytest.raises(DataError, match="infinite"):
        as_series(table, id="id", time="t", channels=["x"])
