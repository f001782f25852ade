"""Every form gives the same series, read whole, in batches, or scanned."""

import io

import numpy as np
import pytest

pytest.importorskip("pyarrow")
pytest.importorskip("pyarrow")

import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet as pq

from slts import DataError
from slts.datasets import load
from slts.tables import iter_series, read_series, scan_series
from slts.tables.paths import is_path_like
from slts.series.dataset import join
from slts.series.source import SeriesSource
from tests.tables.forms import (
    FORMS,
    assert_holds,
    csv_text,
    list_table,
    long_table,
    make_data,
    read_parts,
    replaced,
    series_of_lengths,
    write_compressed,
    write_folder,
    write_form,
)


def is_ts(form):
    return form == ".ts" or form.startswith(".ts.")


@pytest.mark.parametrize("form", FORMS)
def test_every_form_gives_the_same_series(form, tmp_path):
    batch, labels, ids = make_data()
    path = write_form(form, tmp_path, batch, labels, ids)
    found = read_series(path)
    assert np.array_equal(found.series.values, batch.values)
    assert np.array_equal(found.series.offsets, batch.offsets)
    assert found.labels.tolist() == labels.tolist()
    if not is_ts(form):
        suffix = ".csv" if form == "folder" else ""
        assert found.ids.tolist() == [name + suffix for name in ids]
    if form != ".npz" and not is_ts(form):
        assert found.series.channel_names == batch.channel_names
        assert found.columns.channels == batch.channel_names
    unlabelled = read_series(path, labels=False)
    assert unlabelled.labels is None
    assert unlabelled.series == found.series


@pytest.mark.parametrize("form", FORMS)
def test_a_scan_can_be_read_repeatedly(form, tmp_path):
    path = write_form(form, tmp_path, *make_data())
    scan = scan_series(path)
    assert isinstance(scan, SeriesSource)
    whole = read_series(path)
    for _ in range(2):
        for found in (scan.read(), read_parts(scan)):
            assert found.series == whole.series
            assert found.labels.tolist() == whole.labels.tolist()
    assert read_parts(scan, labels=False).labels is None
    assert scan.columns == whole.columns
    assert scan.channel_names == whole.series.channel_names
    assert str(path) in repr(scan)
    compressed = form.endswith((".gz", ".bz2", ".xz", ".zst"))
    assert (scan.n_bytes is None) == compressed
    assert not hasattr(scan.parts()[0], "payload")


@pytest.mark.slow
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("batch_size", [1, 5, 100])
def test_batches_together_are_the_whole(form, batch_size, tmp_path):
    path = write_form(form, tmp_path, *make_data())
    whole = read_series(path)
    batches = list(iter_series(path, batch_size=batch_size))
    assert max(map(len, batches)) <= batch_size
    found = join(batches)
    assert found.series == whole.series
    assert found.labels.tolist() == whole.labels.tolist()
    # Arrow files do not store their number of rows.
    if form != ".feather":
        shares = [batch.share for batch in batches]
        assert shares == sorted(shares)
        assert shares[-1] == 1.0


@pytest.mark.parametrize("library", ["pandas", "polars", "pyarrow"])
@pytest.mark.parametrize("form", [long_table, list_table])
def test_a_data_frame_is_scanned_with_rows_in_any_order(library, form):
    data = batch, _, _ = make_data()
    table = form(*data)
    if form is long_table:
        steps = np.concatenate([np.arange(length) for length in batch.lengths])
        table = table.take(np.argsort(steps, kind="stable"))
    if library == "pandas":
        frame = table.to_pandas()
    else:
        frame = table if library == "pyarrow" else pytest.importorskip("polars").from_arrow(table)
    scan = scan_series(frame)
    assert_holds(scan.read(), data)
    assert_holds(read_parts(scan), data)


def test_a_lazy_frame_is_an_error():
    frame = pytest.importorskip("polars").LazyFrame({"id": [1], "x": [2.0]})
    with pytest.raises(DataError, match=r"LazyFrame has no rows yet: collect\(\) it first"):
        scan_series(frame)


def test_a_text_file_has_one_part_and_its_size(tmp_path):
    path = write_form(".csv", tmp_path, *make_data())
    assert scan_series(path).n_bytes == path.stat().st_size
    assert len(scan_series(path).parts()) == 1


def test_standard_input_is_csv(monkeypatch):
    batch, labels, ids = make_data()
    text = csv_text(long_table(batch, labels, ids))
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(text.encode())))
    found = read_series("-")
    assert np.array_equal(found.series.values, batch.values)
    assert found.source == "standard input"
    monkeypatch.setattr("sys.stdin", io.StringIO(text))
    assert sum(map(len, iter_series("-", batch_size=5))) == len(batch)


def test_sources_that_cannot_be_scanned(tmp_path):
    with pytest.raises(DataError, match="standard input can be read only once"):
        scan_series("-")
    for source in ([1, 2], 3, tmp_path.glob("*"), []):
        given = "an empty list" if source == [] else type(source).__name__
        with pytest.raises(DataError, match=rf"must be a path, a list of paths.*got {given}"):
            scan_series(source)
    with pytest.raises(FileNotFoundError, match="no such file"):
        scan_series("absent.parquet")


def test_paths_and_lists_of_paths_are_path_like(tmp_path):
    assert all(map(is_path_like, ("a", tmp_path, ["a", "b"], (tmp_path,))))
    assert not any(map(is_path_like, (None, [], [np.ones(3)], make_data()[0], np.array(["a"]))))


def test_batch_size_is_checked(tmp_path):
    path = write_form(".parquet", tmp_path, *make_data())
    for read in (iter_series(path, batch_size=0), scan_series(path).batches(batch_size=0)):
        with pytest.raises(DataError, match="batch_size must be at least 1, got 0"):
            next(read)


# -- Tables


@pytest.mark.parametrize("suffix", [".parquet", ".feather"])
def test_identifiers_in_list_form_may_be_repeated(suffix, tmp_path):
    batch, labels, ids = series_of_lengths([2, 3, 4])
    ids[:] = 5
    path = tmp_path / f"data{suffix}"
    write = pa.feather.write_feather if suffix == ".feather" else pq.write_table
    write(list_table(batch, labels, ids), path)
    scan = scan_series(path, id="id")
    assert not scan.requires_unique_ids
    assert scan.read().ids.tolist() == [5, 5, 5]
    write(long_table(*series_of_lengths([2, 3, 4])), path)
    assert scan_series(path).requires_unique_ids


def test_dictionaries_are_read_as_their_values(tmp_path):
    data = series_of_lengths([3, 30, 2, 7], text=True)
    table = long_table(*data)
    table = replaced(table, "recording", table["recording"].dictionary_encode())
    pq.write_table(table, tmp_path / "data.parquet", row_group_size=4)
    scan = scan_series(tmp_path / "data.parquet")
    assert_holds(scan.read(), data)
    assert_holds(read_parts(scan), data)


def test_text_keeps_its_zeros_and_typed_files_their_types(tmp_path):
    batch, _, _ = make_data(4)
    numbers = np.arange(4)
    for form in (".csv", ".parquet"):
        path = write_form(form, tmp_path, batch, numbers % 2, numbers)
        found = read_series(path, label="label")
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


@pytest.mark.usefixtures("tables_in_parts")
@pytest.mark.parametrize("suffix", ["", ".gz", ".bz2", ".xz", ".zst"])
def test_blocks_end_inside_lines(suffix, tmp_path, monkeypatch):
    monkeypatch.setattr("slts.tables.text_files._BLOCK", 1 << 12)
    rows = "".join(f"series {i // 100},{i % 100},{i % 97},{-(i % 89)}\r\n" for i in range(5_000))
    path = tmp_path / f"data.csv{suffix}"
    write_compressed(path, f"\ufeffid,t,x,z\r\n{rows}".encode())
    found = read_series(path)
    assert len(found) == 50
    assert found.series.values[:, 0].tolist() == [i % 97 for i in range(5_000)]
    assert found.series.values[:, 1].tolist() == [-(i % 89) for i in range(5_000)]
    batches = list(iter_series(path, batch_size=7))
    assert sum(map(len, batches)) == 50
    # Decompressors read ahead.
    assert suffix != "" or batches[0].share < 0.5


def test_an_integer_at_first_may_be_a_fraction_later(tmp_path, monkeypatch):
    monkeypatch.setattr("slts.tables.text_files._BLOCK", 1 << 10)
    path = tmp_path / "data.csv"
    rows = "".join(f"a,{i},{i % 7}\n" for i in range(1000))
    path.write_text(f"id,t,x\n{rows}a,1000.5,0.25\n")
    found = read_series(path)
    assert found.series.n_steps == 1001
    assert found.series.values[-1, 0] == 0.25


# -- Arrays, published data sets and folders


def test_npz_arrays(tmp_path):
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
    with pytest.raises(DataError, match="neither Parquet files nor CSV files"):
        read_series("japanese_vowels")


def test_named_channels_have_the_order_of_the_model(tmp_path):
    path = tmp_path / "data.npz"
    np.savez(path, X=np.arange(6.0).reshape(1, 2, 3), channel_names=["a", "b"])
    found = read_series(path, expect=("b", "a"))
    assert found.series.channel_names == ("b", "a")
    assert found.series[0].tolist() == [[3, 4, 5], [0, 1, 2]]
    found = read_series(path, expect=("p", "q"))
    assert found.series[0].tolist() == [[0, 1, 2], [3, 4, 5]]
    folder = tmp_path / "folder"
    folder.mkdir()
    (folder / "a.csv").write_text("1,2\n")
    assert read_series(folder, expect=("p", "q")).series.n_channels == 2


def test_a_folder_may_name_its_files_without_suffix_and_have_no_header(tmp_path):
    write_compressed(tmp_path / "a.csv.gz", b"1,2\n3,4\n")
    (tmp_path / "b.csv").write_text("5,6\n")
    (tmp_path / "labels.csv").write_text("label,name\nyes,b\nno,a\n")
    scan = scan_series(tmp_path)
    found = scan.read()
    assert found.ids.tolist() == ["b", "a"]
    assert found.labels.tolist() == ["yes", "no"]
    assert found.series.values.tolist() == [[5, 6], [1, 2], [3, 4]]
    assert found.series.channel_names is None
    assert scan.channel_names is None


def test_a_folder_without_labels_is_read_in_the_order_of_its_names(tmp_path):
    batch, labels, ids = make_data(3)
    scan = scan_series(write_folder(tmp_path / "f", batch, labels, ids, with_labels=False))
    assert scan.columns.label is None
    found = scan.read()
    assert found.labels is None
    assert found.ids.tolist() == ["r000.csv", "r001.csv", "r002.csv"]


def test_a_folder_is_sorted_by_time(tmp_path):
    (tmp_path / "a.csv").write_text("t,x\n1,10\n0,20\n")
    found = read_series(tmp_path)
    assert found.series.values[:, 0].tolist() == [20, 10]
    assert "sorted by 't'" in found.notes[0]
    (tmp_path / "a.csv").write_text("t,x\n1,10\n1,20\n2,30\n")
    with pytest.raises(DataError, match=r"time 1.0 occurs twice in the series with id 'a.csv'"):
        read_series(tmp_path)


@pytest.mark.parametrize(
    "form", [".csv", ".csv.gz", ".csv.zst", ".parquet", ".feather", "parquet folder"]
)
def test_rows_of_a_small_table_may_have_any_order(form, tmp_path, monkeypatch):
    data = batch, _, _ = make_data()
    steps = np.concatenate([np.arange(length) for length in batch.lengths])
    path = write_form(form, tmp_path, *data, order=np.argsort(steps, kind="stable"))
    assert len(scan_series(path).parts()) == 1
    assert_holds(read_parts(scan_series(path)), data)
    monkeypatch.setattr("slts.tables.scan._SMALL_BYTES", 10)
    with pytest.raises(DataError, match="must be contiguous to be read in batches"):
        list(scan_series(path).batches())
