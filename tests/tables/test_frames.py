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


def test_channels_are_taken_in_the_order_given(make):
    frame = make(long_data())
    assert as_series(frame, id="who", channels=["v", "u"]).channel_names == ("v", "u")
    assert as_series(frame, id="who", channels="v").channel_names == ("v",)


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


@pytest.mark.parametrize("ids", [[5, 3, 5, 3, 5], [True, False, True, False, True]])
def test_id_may_be_any_type(make, ids):
    batch = as_series(make(long_data() | {"who": ids}), id="who", channels="u")
    assert batch.lengths.tolist() == [3, 2]


def test_boolean_columns_are_channels(make):
    data = long_data() | {"on": [True, False, True, True, False]}
    batch = as_series(make(data), id="who")
    assert batch.channel_names == ("when", "u", "v", "on")
    np.testing.assert_array_equal(batch[0][3], [1, 1, 0])
    np.testing.assert_array_equal(as_series(make(data), id="who", channels=["on"])[0], [[1, 1, 0]])


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
    with pytest.raises(DataError, match=r"series 0 \(id 'b'\), step 0, channel 1 \('v'\) is NaN"):
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


def test_frames_without_rows_or_numbers_are_explained():
    empty = pd.DataFrame({"who": pd.Series([], dtype="int64").to_numpy(), "u": np.empty(0)})
    words = pd.DataFrame({"who": [1, 2], "word": ["a", "b"]})
    for frame, message in ((empty, r"0 sample\(s\)"), (words, "no numeric column left")):
        with pytest.raises(DataError, match=message):
            as_series(frame, id="who")


def test_frames_that_are_no_tables_are_explained():
    frame = pd.DataFrame({"i": [1, 1], "t": pd.Series([1, "a"], dtype=object), "x": [0.0, 1.0]})
    with pytest.raises(DataError, match=r"values have several types.*column t"):
        as_series(frame, id="i", time="t", channels="x")
    with pytest.raises(DataError, match=r"columns with the same name.*'x', 'x'"):
        as_series(pd.DataFrame([[1, 2.0, 3.0]], columns=["i", "x", "x"]))
    with pytest.raises(DataError, match=r"Duplicate column names.*'x', 'x'"):
        as_series(pd.DataFrame([[1, 2.0, 3.0]], columns=["i", "x", "x"]), id="i")
    index = pd.MultiIndex.from_tuples([("a", 1), ("a", "b")])
    with pytest.raises(DataError, match="the times cannot be sorted"):
        as_series(pd.DataFrame({"x": [0.0, 1.0]}, index=index))
    index = pd.MultiIndex.from_tuples([("a", 1.0), ("b", np.inf)])
    with pytest.raises(DataError, match="the time in row 1 is inf"):
        as_series(pd.DataFrame({"x": [0.0, 1.0]}, index=index))


def test_rows_and_identifiers_must_be_clear():
    with pytest.raises(DataError, match=r"LazyFrame has no rows yet: collect\(\)"):
        as_series(pl.DataFrame(long_data()).lazy(), id="who")
    with pytest.raises(DataError, match=r"which column identifies the series.*\(id=\)"):
        as_series(pd.DataFrame(long_data()))


def test_without_pyarrow_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(ImportError, match=r'pyarrow is required .*pip install "slts\[io\]"'):
        as_series(pd.DataFrame(long_data()), id="who")


def test_a_broken_module_is_not_reported_as_a_missing_extra(monkeypatch, tmp_path):
    (tmp_path / "slts_broken_module.py").write_text("import slts_no_such_dependency\n")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(ModuleNotFoundError, match="slts_no_such_dependency"):
        import_extra("slts_broken_module", "io")


# -- pandas containers of sktime and aeon


@pytest.fixture
def series():
    rng = np.random.default_rng(0)
    return [rng.normal(size=(length, 2)) for length in (3, 5, 1)]


def test_frames_of_nested_series_and_arrays_are_understood(series):
    nested = pd.DataFrame({c: [pd.Series(s[:, j]) for s in series] for j, c in enumerate("xy")})
    assert as_series(nested) == as_series(nested, layout="time_first") == expected(series)
    nested = pd.DataFrame({j: [s[:, j] for s in series] for j in range(2)})
    assert as_series(nested) == expected(series, None)
    ragged = pd.DataFrame({"x": [pd.Series([1.0, 2.0])], "y": [pd.Series([1.0])]})
    with pytest.raises(DataError, match="series 0, channel 1 has 1 steps, expected 2"):
        as_series(ragged)


def multiindexed(series, names=("x", "y")):
    keys = [(f"s{9 - i}", t) for i, s in enumerate(series) for t in range(len(s))]
    index = pd.MultiIndex.from_tuples(keys, names=["instance", "time"])
    return pd.DataFrame(np.concatenate(series), index=index, columns=list(names))


def test_an_instance_and_time_index_is_sorted_by_time(series):
    frame = multiindexed(series)
    shuffled = frame.iloc[[2, 0, 1, *range(3, 9)]]
    assert as_series(frame) == as_series(shuffled) == expected(series)
    assert as_series(frame.convert_dtypes()) == expected(series)
    assert as_series(multiindexed(series, (0, 1))) == expected(series, None)
    with pytest.raises(DataError, match=r"time 1 occurs twice .* id 's9'"):
        as_series(pd.concat([frame, frame.iloc[[1]]]))


def test_missing_values_under_an_index_are_kept_or_located(series):
    frame = multiindexed(series)
    frame.iloc[4, 1] = np.nan
    for same in (frame, frame.convert_dtypes()):
        assert as_series(same).n_missing.tolist() == [0, 1]
        with pytest.raises(DataError, match=r"series 1, step 1, channel 1 \('y'\) is NaN"):
            as_series(same, missing="error")
    with pytest.raises(DataError, match=r"0 sample\(s\)"):
        as_series(frame.iloc[:0])


def test_lists_of_frames_follow_their_names_or_the_layout(series):
    frames = [pd.DataFrame(s, columns=["x", "y"]) for s in series]
    assert as_series(frames) == expected(series)
    assert as_series([pd.DataFrame(s.T) for s in series]) == expected(series, None)
    unnamed = [pd.DataFrame(s) for s in series]
    assert as_series(unnamed, layout="time_first") == expected(series, None)
    with pytest.raises(DataError, match=r"series 1 has the columns \['y', 'x'\]"):
        as_series([frames[0], frames[0][["y", "x"]]])
    with pytest.raises(DataError, match="series 1 is a ndarray, expected a DataFrame"):
        as_series([frames[0], series[1]])


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
    assert labels.tolist() == [["run", "walk"][int(name[1]) % 2] for name in names]


def test_columns_that_are_named_give_no_warning():
    _, shuffled = recordings()
    batch = as_series(shuffled, id="recording", time="time_s", channels=["on", "x"])
    kept = shuffled.drop(columns="subject")
    assert as_series(kept, id="recording", time="time_s") == batch


def test_identifiers_may_be_in_the_index_of_a_frame():
    _, shuffled = recordings()
    with pytest.warns(UserWarning, match="id=recording, time=time_s"):
        batch = as_series(shuffled.set_index("recording"))
    assert len(batch) == 6


def test_text_times_are_not_sorted_as_text(make):
    data = long_data() | {"when": ["10", "2", "9", "1", "11"]}
    batch = as_series(make(data), id="who", time="when", channels="u")
    np.testing.assert_array_equal(batch.values.ravel(), [3, 1, 5, 4, 2])
    with pytest.raises(DataError, match=r"'when' \(time\) holds text such as 'soon', expected"):
        as_series(make(long_data() | {"when": ["soon"] * 5}), id="who", time="when", channels="u")


def test_a_frame_with_one_series_per_row_is_explained():
    frame = pd.DataFrame({"id": ["a", "b"], **{f"x{k}": [0.5, 1.5] for k in range(9)}})
    with pytest.raises(DataError, match=r"every row .* is one series: use slts.scan_series\(X\)"):
        as_series(frame)


def test_later_rows_that_contradict_the_guess_are_an_error(monkeypatch):
    monkeypatch.setattr("slts.series.convert.SAMPLE_ROWS", 30)
    ordered, _ = recordings()
    changed = ordered.assign(subject=np.arange(60) // 57)
    with (
        pytest.warns(UserWarning, match="constant in every series: subject"),
        pytest.raises(DataError, match="but it varies in series 'r5'"),
    ):
        as_series(changed)


def test_an_index_of_three_levels_and_an_infinite_value_are_errors():
    levels = pd.MultiIndex.from_product([[0, 1], [0, 1], [0, 1, 2]])
    with pytest.raises(DataError, match="an index of 3 levels, expected one level, or two"):
        as_series(pd.DataFrame({"x": np.arange(12.0)}, index=levels))
    table = pd.DataFrame({"id": [0, 0, 1, 1], "t": [0, 1, 0, 1], "x": [0.0, 1.0, 2.0, np.inf]})
    with pytest.raises(DataError, match="infinite"):
        as_series(table, id="id", time="t", channels=["x"])
