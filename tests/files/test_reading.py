import io

import numpy as np
import pytest

pytest.importorskip("pyarrow")
pytest.importorskip("narwhals")

from slts.datasets import load
from slts.files import iter_series, read_series
from tests.files.forms import (
    FORMS,
    csv_text,
    long_table,
    make_data,
    write_compressed,
    write_folder,
    write_form,
)


@pytest.mark.parametrize("form", FORMS)
def test_every_form_gives_the_same_series(form, tmp_path):
    batch, labels, ids = make_data()
    found = read_series(write_form(form, tmp_path, batch, labels, ids))
    assert np.array_equal(found.series.values, batch.values)
    assert np.array_equal(found.series.offsets, batch.offsets)
    assert found.labels.tolist() == labels.tolist()
    if ".ts" not in form or ".tsv" in form:
        suffix = ".csv" if form == "folder" else ""
        assert found.ids.tolist() == [name + suffix for name in ids]
    if form not in (".npz", ".ts") and not form.startswith(".ts."):
        assert found.series.channel_names == batch.channel_names
        assert found.columns.channels == batch.channel_names


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("batch_size", [1, 5, 100])
def test_batches_put_together_are_the_whole(form, batch_size, tmp_path):
    path = write_form(form, tmp_path, *make_data())
    whole = read_series(path)
    parts = list(iter_series(path, batch_size=batch_size))
    assert max(map(len, parts)) <= batch_size
    assert np.array_equal(
        np.concatenate([part.series.values for part in parts]), whole.series.values
    )
    assert np.concatenate([part.series.lengths for part in parts]).tolist() == (
        whole.series.lengths.tolist()
    )
    assert np.concatenate([part.labels for part in parts]).tolist() == whole.labels.tolist()
    # Arrow files do not say how many rows they have.
    assert parts[-1].share == (None if form == ".feather" else 1.0)


@pytest.mark.parametrize("form", FORMS)
def test_labels_can_be_left_alone(form, tmp_path):
    path = write_form(form, tmp_path, *make_data())
    found = read_series(path, labels=False)
    assert found.labels is None
    assert found.series.n_channels == 3


def test_standard_input_is_csv(monkeypatch):
    batch, labels, ids = make_data()
    text = csv_text(long_table(batch, labels, ids))
    stream = io.TextIOWrapper(io.BytesIO(text.encode()))
    monkeypatch.setattr("sys.stdin", stream)
    found = read_series("-")
    assert np.array_equal(found.series.values, batch.values)
    assert found.source == "standard input"
    monkeypatch.setattr("sys.stdin", io.StringIO(text))
    assert sum(len(part) for part in iter_series("-", batch_size=5)) == len(batch)


def test_published_data_sets_have_names():
    pytest.importorskip("aeon")
    X, y = load("japanese_vowels", "test")
    found = read_series("japanese_vowels:test")
    assert found.series == X
    assert found.labels.tolist() == y.tolist()
    assert len(read_series("japanese_vowels")) == 640


def test_a_file_comes_before_a_data_set_of_its_name(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "japanese_vowels").mkdir()
    with pytest.raises(ValueError, match="neither Parquet files nor one CSV"):
        read_series("japanese_vowels")


def test_text_keeps_its_zeros_and_typed_files_their_types(tmp_path):
    batch, _, _ = make_data(4)
    numbers = np.arange(4)
    for form in (".csv", ".parquet"):
        path = write_form(form, tmp_path, batch, numbers % 2, numbers)
        found = read_series(path, label="speaker")
        assert found.ids.tolist() == (["0", "1", "2", "3"] if form == ".csv" else [0, 1, 2, 3])
        assert found.labels.tolist() == (["0", "1"] * 2 if form == ".csv" else [0, 1] * 2)
    path = tmp_path / "zeros.csv"
    path.write_text("id,label,x\n007,01,1\n007,01,2\n")
    found = read_series(path)
    assert (found.ids[0], found.labels[0]) == ("007", "01")


def test_semicolons_decimal_commas_and_a_byte_order_mark(tmp_path):
    path = tmp_path / "european.csv"
    path.write_text("\ufeffid; t ;x;y\na;0;1,5;2\na;1;-,5;3\n", encoding="utf-8")
    found = read_series(path)
    assert found.series.values.tolist() == [[1.5, 2.0], [-0.5, 3.0]]
    assert found.columns.time == "t"


@pytest.mark.parametrize("suffix", ["", ".gz", ".bz2", ".xz", ".zst"])
def test_blocks_end_inside_lines(suffix, tmp_path):
    rows = "".join(f"series {i // 100},{i % 100},{i},{-i}\r\n" for i in range(150_000))
    path = tmp_path / f"data.csv{suffix}"
    write_compressed(path, f"\ufeffid,t,x,z\r\n{rows}".encode())
    found = read_series(path)
    assert len(found) == 1500
    assert found.series.values[:, 0].tolist() == list(range(150_000))
    parts = list(iter_series(path, batch_size=7))
    assert sum(map(len, parts)) == 1500
    assert parts[0].share < 0.8


def test_an_integer_at_first_may_be_a_fraction_later(tmp_path):
    path = tmp_path / "data.csv"
    rows = "".join(f"a,{i},{i}\n" for i in range(200_000))
    path.write_text(f"id,t,x\n{rows}a,200000.5,0.25\n")
    found = read_series(path)
    assert found.series.n_steps == 200_001
    assert found.series.values[-1, 0] == 0.25


def test_npz_forms(tmp_path):
    path = tmp_path / "data.npz"
    X = np.arange(24.0).reshape(2, 3, 4)
    np.savez(path, X=X, y=[0, 1])
    assert np.array_equal(read_series(path).series[1], X[1])
    np.savez(path, X=X, lengths=[2, 4], channel_names=["a", "b", "c"])
    found = read_series(path)
    assert found.series.lengths.tolist() == [2, 4]
    assert found.series.channel_names == ("a", "b", "c")
    assert found.labels is None
    np.savez(path, X=X[:, 0])
    assert read_series(path).series.n_channels == 1


def test_named_channels_come_in_the_order_of_the_model(tmp_path):
    path = tmp_path / "data.npz"
    np.savez(path, X=np.arange(6.0).reshape(1, 2, 3), channel_names=["a", "b"])
    found = read_series(path, expect=("b", "a"))
    assert found.series.channel_names == ("b", "a")
    assert found.series[0].tolist() == [[3, 4, 5], [0, 1, 2]]
    found = read_series(path, expect=("p", "q"))
    assert found.series[0].tolist() == [[0, 1, 2], [3, 4, 5]]
    assert "trained with p, q: taken in this order" in found.notes[0]
    folder = tmp_path / "folder"
    folder.mkdir()
    (folder / "a.csv").write_text("1,2\n")
    assert read_series(folder, expect=("p", "q")).series.n_channels == 2


def test_a_folder_may_name_its_files_without_suffix_and_have_no_header(tmp_path):
    folder = tmp_path / "folder"
    folder.mkdir()
    write_compressed(folder / "a.csv.gz", b"1,2\n3,4\n")
    (folder / "b.csv").write_text("5,6\n")
    (folder / "labels.csv").write_text("label,name\nyes,b\nno,a\n")
    found = read_series(folder)
    assert found.ids.tolist() == ["b", "a"]
    assert found.labels.tolist() == ["yes", "no"]
    assert found.series.values.tolist() == [[5, 6], [1, 2], [3, 4]]
    assert found.series.channel_names is None


def test_a_folder_without_labels_is_read_by_name(tmp_path):
    batch, labels, ids = make_data(3)
    found = read_series(write_folder(tmp_path / "f", batch, labels, ids, with_labels=False))
    assert found.labels is None
    assert found.ids.tolist() == ["r000.csv", "r001.csv", "r002.csv"]
