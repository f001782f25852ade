"""as_series on containers of pandas."""

from __future__ import annotations

import numpy as np
import pytest

from slts.errors import DataError
from slts.extras import import_extra
from slts.series import SeriesBatch, as_series

pd = pytest.importorskip("pandas")
pl = pytest.importorskip("polars")
pa = pytest.importorskip("pyarrow")


def expected(series, names=("x", "y")):
    batch = as_series(series, layout="time_first")
    return SeriesBatch(batch.values, batch.offsets, names)


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
        with pytest.raises(DataError, match=r"series 1 .*, step 1, channel 1 \('y'\) is NaN"):
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


def test_an_index_of_three_levels_and_an_infinite_value_are_errors():
    levels = pd.MultiIndex.from_product([[0, 1], [0, 1], [0, 1, 2]])
    with pytest.raises(DataError, match="an index of 3 levels, expected one level, or two"):
        as_series(pd.DataFrame({"x": np.arange(12.0)}, index=levels))
    table = pd.DataFrame({"id": [0, 0, 1, 1], "t": [0, 1, 0, 1], "x": [0.0, 1.0, 2.0, np.inf]})
    with pytest.raises(DataError, match="infinite"):
        as_series(table, id="id", time="t", channels=["x"])
