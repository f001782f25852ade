"""as_series on data frames: long frames of three libraries, and pandas containers."""

from __future__ import annotations

import datetime as dt
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from slts.errors import DataError
from slts.extras import import_extra
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


@pytest.mark.parametrize(
    "times",
    [
        [dt.datetime(2020, 1, d) for d in (2, 1, 1, 3, 3)],
        [dt.datetime(2020, 1, d, tzinfo=dt.UTC) for d in (2, 1, 1, 3, 3)],
        [dt.date(2020, 1, d) for d in (2, 1, 1, 3, 3)],
        ["2", "1", "1", "3", "3"],
        [0.2, 0.1, 0.1, 0.3, 0.3],
        [2**62 + 2, 2**62 + 1, 2**62 + 1, 2**62 + 3, 2**62 + 3],
    ],
    ids=["datetime", "zoned", "date", "text", "float", "large"],
)
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
    assert as_series(frame, id="id", time="t") == expected(series, ["x"])


def test_a_missing_value_is_kept_or_located(make):
    data = long_data() | {"v": [10, 20, None, 40, 50]}
    assert as_series(make(data), id="who", time="when").n_missing.tolist() == [0, 1]
    filled, _ = as_series(make(data), id="who", time="when", missing="interpolate", label="word")
    assert filled.n_missing.tolist() == [0, 0]
    with pytest.raises(DataError, match=r"b, step 0, channel 1 \('v'\) is NaN"):
        as_series(make(data), id="who", time="when", missing="error")


MISSING_ID = {"who": ["b", None, "b", "a", "b"]}
WORDS = ["yes", "no", "yes", "maybe", "yes"]


@pytest.mark.parametrize(
    ("change", "options", "message"),
    [
        ({}, {"id": "x"}, r"no column 'x' \(id\). Its columns are 'who', 'when'"),
        ({}, {"time": "x"}, r"no column 'x' \(time\)"),
        ({}, {"label": "x"}, r"no column 'x' \(label\)"),
        ({}, {"channels": ["u", "x"]}, r"no column 'x' \(channels\)"),
        ({}, {"channels": []}, r"channels must be .*got \[\]"),
        ({}, {"channels": ["u", "u"]}, "channels must be one or more distinct"),
        ({}, {"channels": ["word"]}, "channel 'word' holds text such as 'yes'"),
        ({}, {"padded": True}, "padded=True is for arrays"),
        (MISSING_ID, {}, r"row 1: 'who' \(id\) is missing"),
        ({"when": [2.0, 1.0, 1.0, None, 3.0]}, {"time": "when"}, r"row 3 .*'when' \(time\)"),
        ({"when": ["2", "1", "1", "", "3"]}, {"time": "when"}, r"row 3 .*'when' \(time\)"),
        ({"when": [2, 1, 2, 0, 3]}, {"time": "when"}, "time 2 occurs twice .* id 'b'"),
        ({"word": WORDS}, {"label": "word"}, r"'word' \(label\) varies in series 'a'"),
        ({"word": [*WORDS[:3], None, "yes"]}, {"label": "word"}, r"row 3 .*'word' \(label\)"),
    ],
)
def test_long_frames_that_cannot_be_used_are_explained(change, options, message):
    with pytest.raises(DataError, match=message):
        as_series(pd.DataFrame(long_data() | change), **{"id": "who"} | options)


def test_frames_that_are_no_tables_are_explained():
    frame = pd.DataFrame({"i": [1, 1], "t": pd.Series([1, "a"], dtype=object), "x": [0.0, 1.0]})
    with pytest.raises(DataError, match=r"values have several types.*column t"):
        as_series(frame, id="i", time="t", channels="x")
    with pytest.raises(DataError, match=r"Duplicate column names.*'x', 'x'"):
        as_series(pd.DataFrame([[1, 2.0, 3.0]], columns=["i", "x", "x"]), id="i")


WIDE = {"id": ["a", "b"], **{f"x{k}": [0.5, 1.5] for k in range(9)}}


@pytest.mark.parametrize(
    ("frame", "options", "message"),
    [
        (pd.DataFrame({"who": np.empty(0, int), "u": np.empty(0)}), {"id": "who"}, "0 sample"),
        (pd.DataFrame({"who": [1], "w": ["a"]}), {"id": "who"}, "no numeric column left"),
        (pl.DataFrame(long_data()).lazy(), {"id": "who"}, r"LazyFrame has no rows yet: collect"),
        (pd.DataFrame(long_data()), {}, r"which column identifies the series.*\(id=\)"),
        (pd.DataFrame(WIDE), {}, r"every row .* is one series: use slts\.scan_series"),
    ],
)
def test_other_frames_are_explained(frame, options, message):
    with pytest.raises(DataError, match=message):
        as_series(frame, **options)


def test_without_pyarrow_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(ImportError, match=r'pyarrow is required .*pip install "slts\[io\]"'):
        as_series(pd.DataFrame(long_data()), id="who")


def test_a_broken_module_is_not_reported_as_a_missing_extra(monkeypatch, tmp_path):
    (tmp_path / "slts_broken_module.py").write_text("import slts_no_such_dependency\n")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(ModuleNotFoundError, match="slts_no_such_dependency"):
        import_extra("slts_broken_module", "io")


# -- pandas containers that are no tables


def test_other_frames_and_series_of_pandas_are_lists_of_series():
    X = np.arange(6.0).reshape(2, 3)
    assert as_series(pd.DataFrame(X)) == as_series(X)
    for several in (
        [pd.Series([1, 2]), pd.Series([3.0])],
        pd.Series([np.zeros((2, 2)), np.zeros((2, 1))]),
    ):
        assert as_series(several).lengths.tolist() == [2, 1]


# -- Guessed columns


def recordings():
    """Six series of ten steps, with rows in random order and columns of every sort."""
    rng = np.random.default_rng(0)
    series = np.repeat(np.arange(6), 10)
    data = {
        "recording": [f"r{k}" for k in series],
        "time_s": np.tile(np.arange(10) * 0.5, 6),
        "gait": np.where(series % 2, "walk", "run"),
        "subject": series // 2,
        "on": rng.random(60) > 0.5,
        "x": rng.normal(size=60),
    }
    frame = pd.DataFrame(data)
    order = rng.permutation(60)
    return frame, frame.iloc[order].reset_index(drop=True)


@pytest.mark.parametrize("library", ["pandas", "polars", "pyarrow"])
def test_columns_are_guessed_as_for_files_and_a_warning_names_them(library):
    ordered, shuffled = recordings()
    convert = {"pandas": lambda x: x, "polars": pl.from_pandas, "pyarrow": pa.table}[library]
    message = r"guessed: id=recording, time=time_s, channels=on,x, not used: gait, not used, const"
    with pytest.warns(UserWarning, match=message):
        batch = as_series(convert(shuffled))
    assert batch.channel_names == ("on", "x")
    by_name = {key: rows["x"].tolist() for key, rows in ordered.groupby("recording")}
    names = shuffled["recording"].drop_duplicates().tolist()
    assert [x[1].tolist() for x in batch] == [by_name[name] for name in names]
    with pytest.warns(UserWarning, match="id=recording, time=time_s, label=gait, channels=on,x"):
        again, labels = as_series(convert(shuffled), id="recording", label="gait")
    assert again == batch
    indexed = shuffled.set_index("recording")
    with pytest.warns(UserWarning, match="id=recording, time=time_s"):
        assert as_series(indexed) == batch
    # Columns that are named give no warning.
    columns = {"id": "recording", "time": "time_s"}
    assert as_series(shuffled, **columns, channels=["on", "x"]) == batch
    assert as_series(shuffled.drop(columns="subject"), **columns) == batch
    assert labels.tolist() == [["run", "walk"][int(name[1]) % 2] for name in names]


def test_text_times_are_not_sorted_as_text(make):
    data = long_data() | {"when": ["10", "2", "9", "1", "11"]}
    batch = as_series(make(data), id="who", time="when", channels="u")
    np.testing.assert_array_equal(batch.values.ravel(), [3, 1, 5, 4, 2])
    with pytest.raises(DataError, match=r"'when' \(time\) holds text such as 'soon', expected"):
        as_series(make(long_data() | {"when": ["soon"] * 5}), id="who", time="when", channels="u")


def test_later_rows_that_contradict_the_guess_are_an_error(monkeypatch):
    monkeypatch.setattr("slts.series.frames.SAMPLE_ROWS", 30)
    ordered, _ = recordings()
    changed = ordered.assign(subject=np.arange(60) // 57)
    with (
        pytest.warns(UserWarning, match="constant in every series: subject"),
        pytest.raises(DataError, match="but it varies in series 'r5'"),
    ):
        as_series(changed)


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
