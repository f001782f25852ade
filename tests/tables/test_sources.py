"""Every form gives the same series: whole, in batches, in parts of other processes."""

import io

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import slts
from slts import DataError, SeriesBatch
from slts.series.dataset import SeriesScan, join
from slts.tables import iter_series, read_series, scan_series
from tests.tables import forms
from tests.tables.forms import FORMS, assert_holds, list_table, long_table, make_data


def is_ts(form):
    return form == ".ts" or form.startswith(".ts.")


@pytest.mark.parametrize("form", FORMS)
def test_every_form_gives_the_same_series(form, tmp_path):
    batch, labels, ids = make_data()
    path = forms.write_form(form, tmp_path, batch, labels, ids)
    scan = scan_series(path)
    assert isinstance(scan, SeriesScan)
    whole = scan.read()
    assert np.array_equal(whole.series.values, batch.values)
    assert np.array_equal(whole.series.offsets, batch.offsets)
    assert whole.labels.tolist() == labels.tolist()
    if not is_ts(form):
        suffix = ".csv" if form == "folder" else ""
        assert whole.ids.tolist() == [name + suffix for name in ids]
    if form != ".npz" and not is_ts(form):
        assert whole.series.channel_names == batch.channel_names == scan.channel_names
    # Again, in parts, and in batches that tell the share.
    batches = list(iter_series(path, batch_size=5))
    assert max(map(len, batches)) <= 5
    shares = [batch.share for batch in batches]
    assert (shares, shares[-1]) == (sorted(shares), 1.0)
    for dataset in (scan.read(), forms.read_parts(scan), join(batches)):
        assert (dataset.series, dataset.labels.tolist()) == (whole.series, labels.tolist())
    unlabelled = read_series(path, labels=False)
    assert unlabelled.labels is None
    assert unlabelled.series == whole.series
    assert str(path) in repr(scan)
    assert (scan.n_bytes is None) == form.endswith((".gz", ".bz2", ".zst"))


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
    assert_holds(scan_series(frame).read(), data)


@pytest.mark.parametrize("form", [".csv", ".csv.gz", ".parquet", "parquet folder"])
def test_rows_of_a_small_table_may_have_any_order(form, tmp_path, monkeypatch):
    data = batch, _, _ = make_data()
    steps = np.concatenate([np.arange(length) for length in batch.lengths])
    path = forms.write_form(form, tmp_path, *data, order=np.argsort(steps, kind="stable"))
    assert_holds(forms.read_parts(scan_series(path)), data)
    monkeypatch.setattr("slts.tables.assembly.SMALL_BYTES", 10)
    with pytest.raises(DataError, match=r"All rows of a series must be contiguous.*'recording'"):
        scan_series(path).read()


def test_standard_input_is_csv(monkeypatch):
    data = make_data()
    text = forms.csv_text(long_table(*data))
    for stream in (io.TextIOWrapper(io.BytesIO(text.encode())), io.StringIO(text)):
        monkeypatch.setattr("sys.stdin", stream)
        scan = scan_series("-")
        assert_holds(scan.read(), data)
        assert sum(map(len, scan.batches(batch_size=5))) == 12
    monkeypatch.setattr("sys.stdin", None)
    with pytest.raises(DataError, match="- means standard input, but there is none"):
        scan_series("-")


def test_sources_that_cannot_be_scanned(tmp_path):
    for source in ([1, 2], 3, tmp_path.glob("*"), []):
        given = "an empty list" if source == [] else type(source).__name__
        with pytest.raises(DataError, match=rf"must be a path, a list of paths.*got {given}"):
            scan_series(source)
    for name in ("absent.parquet", "s3://bucket/a.parquet"):
        with pytest.raises(FileNotFoundError, match=r"no such file.*Only local files"):
            scan_series(name)
    (tmp_path / "notes.txt").write_text("x")
    with pytest.raises(DataError, match=r"unknown suffix; expected \.ts, \.csv"):
        scan_series(tmp_path / "notes.txt")
    with pytest.raises(DataError, match=r"must end in .csv or .tsv"):
        scan_series(tmp_path)
    (tmp_path / "a.parquet.gz").write_bytes(b"")
    with pytest.raises(DataError, match=r"compressed \.parquet files cannot be read"):
        scan_series(tmp_path / "a.parquet.gz")
    frame = pytest.importorskip("polars").LazyFrame({"id": [1], "x": [2.0]})
    with pytest.raises(DataError, match=r"LazyFrame has no rows yet: collect\(\) it first"):
        scan_series(frame)
    with pytest.raises(DataError, match="batch_size must be at least 1, got 0"):
        next(scan_series(pa.table({"id": [1, 1], "x": [2.0, 3.0]})).batches(batch_size=0))


@pytest.mark.parametrize("suffix", [".csv.gz", ".csv.zst", ".parquet", ".feather", ".npz"])
def test_damaged_files_are_named(suffix, tmp_path):
    path = forms.write_form(suffix, tmp_path, *make_data())
    for content in (path.read_bytes()[:-40], b""):
        path.write_bytes(content)
        with pytest.raises(DataError, match=f"data{suffix}"):
            read_series(path)


@pytest.mark.parametrize("form", ["csv", "parquet", "lists"])
def test_missing_values_are_kept_and_trailing_ones_removed(form, tmp_path):
    nan = np.nan
    x = [[1.0, nan, 3.0, nan], [nan, 2.0, 5.0]]
    z = [[nan, nan, 1.0, nan], [nan, 1.0, 3.0]]
    if form == "lists":
        pq.write_table(pa.table({"id": ["a", "b"], "x": x, "z": z}), tmp_path / "data.parquet")
    else:
        columns = {"id": list("aaaabbb"), "x": [*x[0], *x[1]], "z": [*z[0], *z[1]]}
        table = pa.table(columns).to_pandas()
        to = {"csv": table.to_csv, "parquet": table.to_parquet}[form]
        to(tmp_path / f"data.{form}", index=False)
    dataset = read_series(next(tmp_path.iterdir()))
    np.testing.assert_array_equal(dataset.series[0], [[1.0, nan, 3.0], [nan, nan, 1.0]])
    np.testing.assert_array_equal(dataset.series[1], [[nan, 2.0, 5.0], [nan, 1.0, 3.0]])


@pytest.mark.parametrize("form", ["long", "lists", "wide"])
def test_a_series_without_values_is_an_error(form):
    empty = [None, None]
    table = {
        "long": {"id": list("aabb"), "x": [1.0, 2.0, *empty]},
        "lists": {"id": list("ab"), "x": [[1.0, 2.0], [None, None]]},
        "wide": {"id": list("ab")} | {f"s{k}": [float(k % 3), None] for k in range(8)},
    }[form]
    with pytest.raises(DataError, match=r"series '?b'?\)?: the series has no values"):
        scan_series(pa.table(table), id="id").read()


@pytest.mark.parametrize(("change", "message"), [
    ({"x": [[1.0], None]}, r"row 1 \(series 'b'\): 'x' has 0 steps"),
    ({"x": [[1.0], []]}, r"row 1 \(series 'b'\): 'x' has 0 steps"),
    ({"x": [[1.0, 2.0], [1.0]]}, r"row 0 \(series 'a'\): 'y' has 1 steps and 'x' has 2"),
    ({"x": [[1.0], [np.inf]]}, r"row 1 \(series 'b'\): step 0 of 'x' is inf"),
    ({"x": [["u"], ["v"]]}, r"channel 'x' has type list<.*string>, expected lists of numbers"),
])  # fmt: skip
def test_bad_lists(change, message):
    table = pa.table({"id": ["a", "b"], "x": [[1.0], [2.0]], "y": [[0.0], [5.0]]} | change)
    with pytest.raises(DataError, match=message):
        scan_series(table, channels=["x", "y"]).read()


def test_labels_must_be_there_and_agree(tmp_path):
    ids = list("aabb")
    x = [1.0, 0.0, 3.0, 2.0]
    varying = pa.table({"id": ids, "label": list("uuuv"), "x": x})
    with pytest.raises(DataError, match=r"'label' \(label\) varies in series 'b': 'u' and 'v'"):
        scan_series(varying).read()
    assert len(scan_series(varying).read(labels=False)) == 2
    for missing in (None, ""):
        table = pa.table({"id": ids, "label": ["u", "u", missing, missing], "x": x})
        with pytest.raises(DataError, match=r"row 2 \(series 'b'\): 'label' \(label\) is missing"):
            scan_series(table).read()
    with pytest.raises(DataError, match=r"row 1: 'id' \(id\) is missing"):
        scan_series(pa.table({"id": ["a", None, "b", "b"], "x": x})).read()


@pytest.mark.parametrize("storage", ["dictionary", "large_string", "string_view"])
def test_text_may_be_stored_in_several_ways(storage, tmp_path):
    data = forms.series_of_lengths([3, 30, 2, 7], text=True)
    table = long_table(*data)
    column = table["recording"].combine_chunks()
    types = {"large_string": pa.large_string(), "string_view": pa.string_view()}
    stored = column.cast(types[storage]) if storage in types else column.dictionary_encode()
    table = forms.replaced(table, "recording", stored)
    pq.write_table(table, tmp_path / "data.parquet", row_group_size=4)
    assert_holds(scan_series(tmp_path / "data.parquet").read(), data)


def test_several_columns_identify_a_series_together(tmp_path, tables_in_parts):
    rng = np.random.default_rng(0)
    subjects, trials = np.repeat(["s1", "s1", "s/2"], 4), np.repeat([1, 2, 1], 4)
    table = pa.table({"subject": subjects, "trial": trials, "x": rng.normal(size=12)})
    pq.write_table(table, tmp_path / "data.parquet", row_group_size=3)
    table.to_pandas().to_csv(tmp_path / "data.csv", index=False)
    for source in (table, tmp_path / "data.parquet", tmp_path / "data.csv"):
        dataset = scan_series(source, id=["subject", "trial"], groups="subject").read()
        assert dataset.ids.tolist() == ["s1/1", "s1/2", "s\\/2/1"]
        assert dataset.groups.tolist() == ["s1", "s1", "s/2"]
    with pytest.raises(DataError, match=r"varies in series.*id=\['subject', '\.\.\.'\]"):
        scan_series(table, id="subject", label="trial", channels="x").read()


def test_booleans_are_zeros_and_ones(tmp_path):
    table = pa.table({"id": list("aab"), "on": [True, False, True], "x": [0.5, 1.5, 2.5]})
    table.to_pandas().to_csv(tmp_path / "data.csv", index=False)
    for source in (table, tmp_path / "data.csv"):
        assert scan_series(source).read().series.values[:, 0].tolist() == [1.0, 0.0, 1.0]


def large(form, path, lengths, n_channels):
    """One row group of series with many values."""
    rng = np.random.default_rng(0)
    values = rng.normal(size=(sum(lengths), n_channels))
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    batch = SeriesBatch(values, offsets, [f"c{c}" for c in range(n_channels)])
    data = batch, np.array(["u", "v"])[np.arange(len(lengths)) % 2], np.arange(len(lengths))
    table = (long_table if form == "long" else list_table)(*data)
    pq.write_table(table, path, row_group_size=table.num_rows)
    return data


@pytest.mark.parametrize("form", ["long", "lists"])
@pytest.mark.parametrize("lengths", [[40] * 60, [30] * 20 + [4000] + [30] * 20])
def test_a_batch_ends_at_a_number_of_bytes(form, lengths, tmp_path, monkeypatch, tables_in_parts):
    monkeypatch.setattr("slts.tables.assembly.BATCH_BYTES", 1 << 15)
    path = tmp_path / "data.parquet"
    data = large(form, path, lengths, 4)
    batches = list(iter_series(path))
    sizes = [batch.series.values.nbytes for batch in batches]
    assert all(len(b) == 1 or size <= 1 << 15 for b, size in zip(batches, sizes, strict=True))
    assert len(batches) <= 20
    assert_holds(join(batches), data)


@pytest.mark.slow
@pytest.mark.parametrize(("form", "length"), [("long", 100), ("lists", 10_000)])
def test_a_large_row_group_is_not_held_in_memory(form, length, tmp_path, tables_in_parts):
    large(form, tmp_path / "data.parquet", [length] * (2_000_000 // length), 6)
    assert (tmp_path / "data.parquet").stat().st_size > 90e6
    before = pa.total_allocated_bytes()
    held = [pa.total_allocated_bytes() - before for _ in iter_series(tmp_path / "data.parquet")]
    assert len(held) > 4
    assert max(held) < 60e6


def test_a_scan_does_not_depend_on_the_working_directory(tmp_path, monkeypatch):
    data = make_data()
    forms.write_form(".parquet", tmp_path, *data)
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path)
    scans = [slts.scan_series(name) for name in ("data.parquet", "*.parquet", ["data.parquet"])]
    monkeypatch.chdir(tmp_path / "elsewhere")
    for scan in scans:
        assert_holds(forms.read_parts(scan), data)
