"""Several files: folders of Parquet, folders of CSV, patterns and lists; arrays files."""

import os

import numpy as np
import pyarrow.parquet as pq
import pytest

from slts import DataError
from slts.datasets import load
from slts.tables import ExpectedColumns, read_series, scan_series
from tests.tables import forms
from tests.tables.forms import assert_holds, long_table, make_data, write_folder


def parquet_files(folder, names, form=long_table):
    """Write a data set to several files, in the order of their names."""
    data = make_data()
    table = form(*data)
    size = -(-table.num_rows // len(names))
    for number, name in enumerate(names):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        pq.write_table(table.slice(number * size, size), folder / name)
    return data


@pytest.mark.parametrize("form", [long_table, forms.list_table])
def test_folders_patterns_and_lists_of_parquet(form, tmp_path):
    names = ["part-2.parquet", "part-10.parquet", "part-11.pq"]
    data = parquet_files(tmp_path, names, form)
    for other in ("_SUCCESS", ".part-0.parquet.crc", "_delta_log/0.parquet", "notes.txt"):
        (tmp_path / other).parent.mkdir(exist_ok=True)
        (tmp_path / other).write_text("nothing")
    files = [tmp_path / name for name in names]
    for source in (tmp_path, f"{tmp_path}/part-*", f"{tmp_path}/**/*.p*", files):
        scan = scan_series(source)
        assert_holds(scan.read(), data)
        assert_holds(forms.read_parts(scan), data)
    assert len(scan_series(files[:1]).read()) < 12
    assert len(scan_series(tmp_path / "_delta_log" / "..").read()) == 12


def test_what_cannot_be_read_together(tmp_path):
    parquet_files(tmp_path / "a", ["0.parquet"])
    (tmp_path / "a" / "1.csv").write_text("x\n1\n")
    for source in (tmp_path / "a", f"{tmp_path}/a/*", sorted((tmp_path / "a").iterdir())):
        with pytest.raises(DataError, match=r"1.csv cannot be read together with .*0.parquet"):
            scan_series(source)
    file = tmp_path / "a" / "0.parquet"
    os.symlink(file, tmp_path / "link.parquet")
    with pytest.raises(DataError, match=r"link.parquet is in .* twice, also as .*0.parquet"):
        scan_series([file, tmp_path / "link.parquet"])
    with pytest.raises(FileNotFoundError, match=r"absent\.parquet"):
        scan_series([file, tmp_path / "absent.parquet"])
    with pytest.raises(FileNotFoundError, match=r"no file matches it as a pattern.*add '/\*.parq"):
        scan_series(f"{tmp_path}/[a]")


def test_columns_in_names_of_folders_must_be_columns(tmp_path):
    parquet_files(tmp_path / "run=3", ["label=a/0.parquet", "label=b/0.parquet"])
    with pytest.raises(DataError, match=r"label=a/0.parquet: columns in names.*Write 'label' as"):
        scan_series(tmp_path / "run=3")
    # Folders above the data define nothing.
    assert len(scan_series(tmp_path / "run=3" / "label=a").read()) > 0


def test_a_folder_per_class_a_pattern_and_one_file(tmp_path):
    rng = np.random.default_rng(0)
    for name in ("walk/1", "walk/2", "run/1"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        rows = "".join(f"{k},{rng.normal()},{rng.normal()}\n" for k in range(9))
        (tmp_path / f"{name}.csv").write_text(f"t,x,y\n{rows}")
    dataset = read_series(tmp_path)
    assert dataset.labels.tolist() == ["run", "walk", "walk"]
    assert dataset.ids.tolist() == ["run/1.csv", "walk/1.csv", "walk/2.csv"]
    assert (dataset.columns.time, dataset.columns.channels) == ("t", ("x", "y"))
    with pytest.raises(DataError, match=r"no label \(the names of its folders are the labels"):
        read_series(tmp_path, label="gait")
    walks = read_series(f"{tmp_path}/walk/*.csv")
    assert (walks.labels, walks.ids.tolist()) == (None, ["1.csv", "2.csv"])
    # One file is one series for a model that was trained on such files.
    known = ExpectedColumns(("x", "y"), dataset.columns.label)
    one = read_series(tmp_path / "walk" / "2.csv", expect=known, labels=False)
    assert one.series[0].tolist() == dataset.series[2].tolist()
    with pytest.raises(DataError, match="no column is named as the identifier"):
        read_series(tmp_path / "walk" / "2.csv", expect=("x", "y"))


def test_labels_of_a_folder_are_in_a_file(tmp_path):
    forms.write_compressed(tmp_path / "a.csv.gz", b"1,2\n3,4\n")
    (tmp_path / "b.csv").write_text("5,6\n")
    (tmp_path / "labels.csv").write_text("label,file,who\nyes,b,s1\nno,a,s2\n")
    scan = scan_series(tmp_path, groups="who")
    dataset = scan.read()
    assert dataset.ids.tolist() == ["b", "a"]
    assert (dataset.labels.tolist(), dataset.groups.tolist()) == (["yes", "no"], ["s1", "s2"])
    assert dataset.series.values.tolist() == [[5, 6], [1, 2], [3, 4]]
    assert scan.channel_names is None
    assert read_series(tmp_path, label="who").labels.tolist() == ["s1", "s2"]


@pytest.mark.parametrize(("text", "message"), [
    ("r000.csv,high\n", r"labels.csv has no column 'file' .id."),
    ("file\nr000.csv\n", r"labels.csv has no column 'label' .label.. The columns are file"),
    ("file,label\nr000,u\n", r"'r001.csv' has no label in .*labels.csv \(2 without"),
    ("file,label\nr000,u\nr9,v\n", "names 'r9', which is not in the folder"),
    ("file,label\nr000,u\nr000,v\n", "line 3: 'r000' is listed twice"),
    ("file,label\nr000,\nr001,u\nr002,v\n", r"line 2 .*'label' \(label\) is missing"),
])  # fmt: skip
def test_bad_labels_of_a_folder(text, message, tmp_path):
    folder = write_folder(tmp_path / "f", *make_data(3))
    (folder / "labels.csv").write_text(text)
    with pytest.raises(DataError, match=message):
        read_series(folder)
    assert len(read_series(folder, labels=False)) == 3


def test_a_pattern_leaves_out_labels_of_files_that_do_not_exist(tmp_path):
    folder = write_folder(tmp_path / "f", *make_data(3))
    (folder / "r001.csv").unlink()
    with pytest.raises(DataError, match=r"'r001.csv', which is not in the folder") as caught:
        read_series(folder)
    pattern = str(caught.value).split("pattern: ")[1]
    assert read_series(eval(pattern)).ids.tolist() == ["r000.csv", "r002.csv"]


def test_a_folder_without_labels_and_a_bad_line(tmp_path):
    folder = write_folder(tmp_path / "f", *make_data(3), with_labels=False)
    assert read_series(folder).labels is None
    with pytest.raises(DataError, match=r"no labels.csv, so it has no label: add labels.csv"):
        read_series(folder, label="label")
    with pytest.raises(DataError, match=r"must be one column of labels.csv"):
        read_series(folder, id=["a", "b"])
    with open(folder / "r002.csv", "a") as file:
        file.write("1,oops,2\n")
    n_lines = len((folder / "r002.csv").read_text().splitlines())
    with pytest.raises(DataError, match=rf"r002.csv, line {n_lines}: 'c2' holds 'oops'"):
        read_series(folder)


def test_npz_arrays(tmp_path):
    path = tmp_path / "data.npz"
    X = np.arange(24.0).reshape(2, 3, 4)
    np.savez(path, X=X, y=[0, 1], ids=["u", "v"], channel_names=["a", "b", "c"])
    dataset = read_series(path, expect=("c", "b", "a"))
    assert np.array_equal(dataset.series[1], X[1][::-1])
    assert dataset.series.channel_names == ("c", "b", "a")
    assert (dataset.labels.tolist(), dataset.ids.tolist()) == ([0, 1], ["u", "v"])
    np.savez(path, X=X[:, 0])
    assert read_series(path).series.n_channels == 1


@pytest.mark.parametrize(("arrays", "message"), [
    ({"Z": np.zeros(3)}, "the file holds Z: expected X of shape"),
    ({"X": np.zeros((2, 3)), "y": [1]}, r"y has shape \(1,\), expected \(2,\)"),
    ({"X": np.zeros((2, 3)), "y": [1.0, np.nan]}, r"y\[1\] is missing"),
    ({"X": np.full((2, 3), np.nan)}, "series 0 is NaN throughout"),
    ({"X": np.full((2, 3), np.inf)}, "series 0, step 0, channel 0 is inf"),
    ({"X": np.array([None, 1], dtype=object)}, "it holds Python objects"),
])  # fmt: skip
def test_bad_npz_files(arrays, message, tmp_path):
    np.savez(tmp_path / "data.npz", **arrays)
    with pytest.raises(DataError, match=rf"data.npz.*{message}"):
        read_series(tmp_path / "data.npz")


def test_ts_files_name_the_line_and_have_no_columns(tmp_path):
    path = tmp_path / "data.ts"
    path.write_text("@classLabel true a b\n@data\n1,2:a\n1,x:b\n")
    with pytest.raises(DataError, match=r"data.ts, line 4 \(series 1\): channel 0, step 1 is 'x'"):
        read_series(path)
    with pytest.raises(DataError, match=r"no named columns, so id \(--id\) cannot be used"):
        scan_series(path, id="id")


def test_published_data_sets_have_names():
    pytest.importorskip("aeon")
    X, y = load("japanese_vowels", "test")
    dataset = read_series("japanese_vowels:test")
    assert (dataset.series, dataset.labels.tolist()) == (X, y.tolist())
    with pytest.raises(DataError, match="expected train or test"):
        read_series("japanese_vowels:all")
