"""as_series on long data frames of three libraries."""

from __future__ import annotations

import datetime as dt
import sys

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
    "pandas": pd.DataFrame, "pandas-nullable": lambda data: pd.DataFrame(data).convert_dtypes(),
    "pandas-arrow": lambda data: pd.DataFrame(data).convert_dtypes(dtype_backend="pyarrow"),
    "polars": pl.DataFrame, "pyarrow": pa.table,
}  # fmt: skip


@pytest.fixture(params=LIBRARIES)
def make(request):
    return LIBRARIES[request.param]


def long_data():
    return {
        "who": ["b", "a", "b", "a", "b"], "when": [2, 1, 1, 0, 3], "u": [1.0, 2.0, 3.0, 4.0, 5.0],
        "v": [10, 20, 30, 40, 50],
    }  # fmt: skip


def expected(series, names=("x", "y")):
    batch = as_series(series, layout="time_first")
    return SeriesBatch(batch.values, batch.offsets, names)


def test_series_come_in_order_of_appearance_and_sorted_by_time(make):
    batch = as_series(make(long_data()), id="who", time="when")
    assert (batch.channel_names, batch.lengths.tolist()) == (("u", "v"), [3, 2])
    np.testing.assert_array_equal(batch[0], [[3, 1, 5], [30, 10, 50]])
    np.testing.assert_array_equal(batch[1], [[4, 2], [40, 20]])
    # Without a time, rows keep their order, which is not known if series are mixed.
    with pytest.raises(DataError, match=r"rows of different series are mixed.*--time"):
        as_series(make(long_data()), id="who", channels=["u"])
    in_order = {**long_data(), "who": ["b", "b", "b", "a", "a"]}
    batch = as_series(make(in_order), id="who", channels=["u"])
    np.testing.assert_array_equal(batch[0], [[1, 2, 3]])
    np.testing.assert_array_equal(batch[1], [[4, 5]])


@pytest.mark.parametrize("labels", [["yes", "no"], [7, 8]])
def test_labels_are_one_per_series_and_no_channel(make, labels):
    data = long_data() | {"word": [labels[0], labels[1]] * 2 + [labels[0]]}
    batch, y = as_series(make(data), id="who", time="when", label="word")
    assert batch.channel_names == ("u", "v")
    assert isinstance(y, np.ndarray)
    assert y.tolist() == labels


@pytest.mark.parametrize("times", [
    [dt.datetime(2020, 1, d) for d in (2, 1, 1, 3, 3)],
    [dt.datetime(2020, 1, d, tzinfo=dt.UTC) for d in (2, 1, 1, 3, 3)],
    [dt.date(2020, 1, d) for d in (2, 1, 1, 3, 3)], ["10", "9", "9", "11", "11"],
    [0.2, 0.1, 0.1, 0.3, 0.3], [2**62 + 2, 2**62 + 1, 2**62 + 1, 2**62 + 3, 2**62 + 3],
], ids=["datetime", "zoned", "date", "text", "float", "large"])  # fmt: skip
def test_time_may_be_anything_that_sorts(make, times):
    batch = as_series(make(long_data() | {"when": times}), id="who", time="when", channels="u")
    np.testing.assert_array_equal(batch.values.ravel(), [3, 1, 5, 2, 4])


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(-5, 5)), min_size=1, unique=True))
def test_a_long_frame_equals_grouping_by_hand(rows):
    values = np.arange(len(rows), dtype=float)
    frame = pl.DataFrame({"id": [r[0] for r in rows], "t": [r[1] for r in rows], "x": values})
    series = []
    for key in dict.fromkeys(r[0] for r in rows):
        chosen = sorted((t, x) for (i, t), x in zip(rows, values, strict=True) if i == key)
        series.append([[x] for _, x in chosen])
    assert as_series(frame, id="id", time="t", channels=["x"]) == expected(series, ["x"])


def test_a_missing_value_is_kept_or_located(make):
    data = long_data() | {"v": [10, 20, None, 40, 50]}
    assert as_series(make(data), id="who", time="when").n_missing.tolist() == [0, 1]
    filled = as_series(make(data), id="who", time="when", missing="interpolate")
    assert filled.n_missing.tolist() == [0, 0]
    with pytest.raises(DataError, match=r"b, step 0, channel 1 \('v'\) is NaN"):
        as_series(make(data), id="who", time="when", missing="error")


MISSING_ID = {"who": ["b", None, "b", "a", "b"]}
WORDS = ["yes", "no", "yes", "maybe", "yes"]


@pytest.mark.parametrize(("change", "options", "message"), [
    ({}, {"id": "x"}, r"no column 'x' \(id\). The columns are 'who' \(text\), 'when'"),
    ({}, {"time": "x"}, r"no column 'x' \(time\)"),
    ({}, {"label": "x"}, r"no column 'x' \(label\)"),
    ({}, {"channels": ["u", "x"]}, r"no column 'x' \(channels\)"),
    ({}, {"channels": []}, r"channels must be .*got \[\]"),
    ({}, {"channels": ["u", "u"]}, "channels must be one or more distinct"),
    ({"word": WORDS}, {"channels": ["word"]}, "channel 'word' holds text, such as 'yes'"),
    ({}, {"padded": True}, "padded=True is for arrays"),
    (MISSING_ID, {}, r"row 1: 'who' \(id\) is missing"),
    ({"when": [2.0, 1.0, 1.0, None, 3.0]}, {"time": "when"}, r"row 3 .*'when' \(time\)"),
    ({"when": ["soon"] * 5}, {"time": "when"}, r"'when' \(time\) holds text, such as 'soon', exp"),
    ({"when": ["2", "1", "1", "", "3"]}, {"time": "when"}, r"row 3 .*'when' \(time\)"),
    ({"when": [2, 1, 2, 0, 3]}, {"time": "when"}, "time 2 occurs twice in series 'b'"),
    ({"word": WORDS}, {"time": "when", "label": "word"}, r"'word' \(label\) varies in series 'a'"),
    ({"word": [*WORDS[:3], None, "yes"]}, {"time": "when", "label": "word"},
     r"row 3 .*'word' \(label\)"),
])  # fmt: skip
def test_long_frames_that_cannot_be_used_are_explained(change, options, message):
    with pytest.raises(DataError, match=message):
        as_series(pd.DataFrame(long_data() | change), **{"id": "who"} | options)


def test_frames_without_rows_or_numbers_are_explained():
    empty = pd.DataFrame({"who": pd.Series([], dtype="int64").to_numpy(), "u": np.empty(0)})
    words = pd.DataFrame({"who": [1, 1], "word": ["a", "b"]})
    for frame, message in ((empty, r"0 sample\(s\)"), (words, "'word' holds text.* has no role")):
        with pytest.raises(DataError, match=message):
            as_series(frame, id="who")


def test_without_pyarrow_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(ImportError, match=r'pyarrow is required .*pip install "slts\[io\]"'):
        as_series(pd.DataFrame(long_data()), id="who")


def test_a_frame_with_one_series_per_row_is_explained():
    frame = pd.DataFrame({"id": ["a", "b"], **{f"x{k}": [0.5, 1.5] for k in range(9)}})
    with pytest.raises(DataError, match=r"every row .* is one series: use slts.scan_series\(X\)"):
        as_series(frame)


def test_identifiers_may_be_in_the_index_of_a_frame():
    frame = pd.DataFrame(long_data()).set_index("who")
    assert as_series(frame, id="who", time="when").lengths.tolist() == [3, 2]
