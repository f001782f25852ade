"""Writing of .ts files: everything written is read back exactly, by slts and by aeon."""

import os

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from slts.datasets import read_ts, write_ts
from slts.errors import DataError
from slts.series import as_series

FINITE = st.floats(allow_nan=False, allow_infinity=False)
OR_MISSING = st.floats(allow_infinity=False)
WORD = st.text(
    st.characters(exclude_categories=["Cs", "Z", "Cc"], exclude_characters=":\x85"), min_size=1
)


@st.composite
def series_lists(draw, elements):
    n_channels = draw(st.integers(1, 3))
    lengths = draw(st.lists(st.integers(1, 5), min_size=1, max_size=5))
    return [draw(arrays(np.float64, (n_channels, n), elements=elements)) for n in lengths]


@settings(max_examples=40)
@given(X=series_lists(FINITE), data=st.data())
def test_series_and_classes_come_back_exactly(X, data, tmp_path_factory):
    path = tmp_path_factory.mktemp("ts") / "x.ts"
    labels = data.draw(st.lists(WORD, min_size=len(X), max_size=len(X)))
    write_ts(path, X, labels)
    X_read, y_read = read_ts(path)
    assert X_read == as_series(X)
    assert np.signbit(X_read.values).tolist() == np.signbit(as_series(X).values).tolist()
    assert y_read.tolist() == labels


@settings(max_examples=40)
@given(X=series_lists(OR_MISSING), data=st.data())
def test_gaps_and_targets_come_back_exactly(X, data, tmp_path_factory):
    path = tmp_path_factory.mktemp("ts") / "x.ts.gz"
    assume(not any(np.isnan(x).all() for x in X))
    y = data.draw(arrays(np.float64, len(X), elements=OR_MISSING))
    write_ts(path, X, y)
    X_read, y_read = read_ts(path)
    assert X_read == as_series(X)
    np.testing.assert_array_equal(y_read, y)


def test_the_file_says_what_it_holds(tmp_path):
    path = tmp_path / "x.ts"
    x = [np.array([[1.0, np.nan], [0.1, -2e-300]]), np.array([[3.0, 4.0], [5.0, 6.0]])]
    write_ts(path, x, [7, 2], problem_name="Demo", class_labels=[7, 2, 5], comment="two\nlines")
    assert path.read_text(encoding="utf-8") == (
        "#two\n#lines\n@problemName Demo\n@timeStamps false\n@missing true\n@univariate false\n"
        "@dimensions 2\n@equalLength true\n@seriesLength 2\n@classLabel true 7 2 5\n@data\n"
        "1.0,?:0.1,-2e-300:7\n3.0,4.0:5.0,6.0:2\n"
    )
    write_ts(path, [[1, 2], [3]])
    assert path.read_text(encoding="utf-8") == (
        "@problemName data\n@timeStamps false\n@missing false\n@univariate true\n"
        "@equalLength false\n@classLabel false\n@data\n1.0,2.0\n3.0\n"
    )
    assert os.listdir(tmp_path) == ["x.ts"]


def test_any_form_of_series_can_be_written(tmp_path, rng):
    path = tmp_path / "x.ts"
    array = rng.normal(size=(3, 2, 4))
    for X in (array, list(array), tuple(array), as_series(array)):
        write_ts(path, X, np.array(["a", "b", "a"], dtype=object))
        assert read_ts(path)[0] == as_series(array)


def test_frames_in_a_list_can_be_written(tmp_path):
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"u": [1.0, 2.0, 3.0], "v": [4.0, 5.0, 6.0]})
    write_ts(tmp_path / "x.ts", [frame, frame[:2]])
    assert read_ts(tmp_path / "x.ts")[0].lengths.tolist() == [3, 2]


def test_aeon_reads_what_is_written(tmp_path, rng):
    load = pytest.importorskip("aeon.datasets").load_from_ts_file
    X = [rng.normal(size=(3, n)) for n in (4, 6)]
    write_ts(tmp_path / "x.ts", X, ["a", "b"])
    X_aeon, y_aeon = load(str(tmp_path / "x.ts"))
    assert y_aeon.tolist() == ["a", "b"]
    for x, x_aeon in zip(X, X_aeon, strict=True):
        np.testing.assert_array_equal(x_aeon, x)
    X[0][1, 2] = np.nan
    write_ts(tmp_path / "x.ts", X, [0.5, np.nan])
    X_aeon, y_aeon = load(str(tmp_path / "x.ts"))
    np.testing.assert_array_equal(X_aeon[0], X[0])


REFUSED = {
    r"label 'a b' cannot be written": {"y": ["a b", "c"]},
    r"label 'a:b' cannot be written": {"y": ["a:b", "c"]},
    r"label '' cannot be written": {"y": ["", "c"]},
    r"label 'b' is not in class_labels: a": {"y": ["a", "b"], "class_labels": ["a"]},
    r"one label for each of 2 series, got \(1,\)": {"y": ["a"]},
    r"y holds floats, which are targets": {"y": [0.5, 1.5], "class_labels": ["a"]},
    r"class_labels are given, but y is None": {"class_labels": ["a"]},
    r"problem_name must be one word, got 'two words'": {"problem_name": "two words"},
    r"problem_name must be one word, got ''": {"problem_name": ""},
}


@pytest.mark.parametrize("message", REFUSED)
def test_data_the_format_cannot_hold_raise_an_error(message, tmp_path):
    with pytest.raises(DataError, match=message):
        write_ts(tmp_path / "x.ts", [[1, 2], [3]], **REFUSED[message])
    assert os.listdir(tmp_path) == []


def test_infinite_and_absent_series_are_refused(tmp_path):
    with pytest.raises(DataError, match=r"infinite values"):
        write_ts(tmp_path / "x.ts", [[1, np.inf]])
    with pytest.raises(DataError, match=r"no series to write"):
        write_ts(tmp_path / "x.ts", as_series([[1, 2]])[:0])
    with pytest.raises(DataError, match=r"0 sample"):
        write_ts(tmp_path / "x.ts", [])


def test_a_failure_leaves_the_old_file_and_no_other(tmp_path, monkeypatch):
    path = tmp_path / "x.ts"
    write_ts(path, [[1, 2]])
    before = path.read_bytes()
    with pytest.raises(UnicodeEncodeError):
        write_ts(path, [[3, 4]], ["\ud800"])
    monkeypatch.setattr("os.replace", lambda *a: (_ for _ in ()).throw(OSError("full")))
    with pytest.raises(OSError, match="full"):
        write_ts(path, [[3, 4]])
    assert path.read_bytes() == before
    assert os.listdir(tmp_path) == ["x.ts"]


def test_equal_data_make_equal_compressed_files(tmp_path):
    for name in ("a.ts.gz", "b.ts.gz"):
        write_ts(tmp_path / name, [[1, 2]])
    assert (tmp_path / "a.ts.gz").read_bytes() == (tmp_path / "b.ts.gz").read_bytes()
