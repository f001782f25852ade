"""Parts of Parquet files hold every series exactly once, however the files are cut."""

import gc
import weakref

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from slts import DataError
from slts.series.dataset import join
from slts.tables import scan_series
from tests.tables import forms
from tests.tables.forms import assert_holds, list_table, long_table, read_parts

pytestmark = pytest.mark.usefixtures("tables_in_parts")


def write_groups(path, table, sizes):
    """Write row groups of the given sizes, 0 included, and the rest as one more."""
    with pq.ParquetWriter(path, table.schema) as writer:
        start = 0
        for size in sizes:
            writer.write_table(table.slice(start, size))
            start += size
        if start < table.num_rows:
            writer.write_table(table.slice(start))


def write_files(folder, data, rows_per_file):
    """Write long form to files that end inside series."""
    folder.mkdir()
    table = long_table(*data)
    for number, start in enumerate(range(0, table.num_rows, rows_per_file)):
        pq.write_table(table.slice(start, rows_per_file), folder / f"part-{number:05d}.parquet")
    return folder


def counts(parts):
    return [sum(map(len, part.batches(labels=True, batch_size=99))) for part in parts]


def assert_complete(scan, data):
    assert_holds(scan.read(), data)
    assert_holds(join(scan), data)
    assert_holds(read_parts(scan), data)


@settings(
    max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    lengths=st.lists(st.integers(1, 30), min_size=1, max_size=25),
    sizes=st.lists(st.integers(0, 25), max_size=20), cut=st.floats(0, 1), lists=st.booleans(),
    text=st.booleans(),
)  # fmt: skip
def test_any_cut_gives_the_same_series(lengths, sizes, cut, lists, text, tmp_path_factory):
    data = forms.series_of_lengths(lengths, text=text)
    table = (list_table if lists else long_table)(*data)
    folder = tmp_path_factory.mktemp("folder")
    row = int(cut * table.num_rows)
    half = len(sizes) // 2
    write_groups(folder / "0.parquet", table.slice(0, row), sizes[:half])
    write_groups(folder / "1.parquet", table.slice(row), sizes[half:])
    id, label = ("id", "label") if lists else ("recording", "label")
    assert_holds(read_parts(scan_series(folder, id=id, label=label, channels="c1,c2")), data)


def test_neighbours_in_different_parts_may_look_alike(tmp_path):
    # Label and values are equal; only the identifiers differ.
    path = tmp_path / "data.parquet"
    table = pa.table({"id": [1, 1, 2, 2, 3], "label": ["a"] * 5, "x": [0.0] * 5})
    pq.write_table(table, path, row_group_size=1)
    assert read_parts(scan_series(path, id="id", channels="x")).series.lengths.tolist() == [2, 2, 1]


def test_parts_have_about_equal_size(tmp_path):
    path = tmp_path / "data.parquet"
    pq.write_table(long_table(*forms.series_of_lengths([4] * 1000)), path, row_group_size=10)
    found = counts(scan_series(path).parts())
    assert len(found) == 16
    assert min(found) > 55
    assert max(found) < 70


@pytest.mark.parametrize("form", [long_table, list_table])
@pytest.mark.parametrize("rows_per_group", [7, 1 << 20])
def test_the_size_is_computed_from_the_footers(form, rows_per_group, tmp_path):
    data = forms.series_of_lengths(np.arange(1, 60))
    pq.write_table(form(*data), tmp_path / "data.parquet", row_group_size=rows_per_group)
    scan = scan_series(tmp_path / "data.parquet", id=form(*data).column_names[0])
    assert scan.n_bytes == data[0].values.nbytes


def two_files(folder, change, **columns):
    table = long_table(*forms.make_data())
    pq.write_table(table, folder / "a.parquet")
    pq.write_table(change(table), folder / "b.parquet")
    return scan_series(folder, **columns)


def test_a_changed_file_is_an_error(tmp_path):
    path = tmp_path / "data.parquet"
    table = long_table(*forms.make_data())
    pq.write_table(table, path)
    part = scan_series(path).parts()[0]
    pq.write_table(table.slice(0, 20), path)
    with pytest.raises(DataError, match=r"data.parquet changed after it was scanned"):
        list(part.batches(labels=True, batch_size=5))


@pytest.mark.parametrize("form", [long_table, list_table])
def test_a_damaged_row_group_is_named_and_other_parts_can_be_read(form, tmp_path):
    path = tmp_path / "data.parquet"
    size = 50 if form is list_table else 300
    pq.write_table(
        form(*forms.make_data(400)), path, row_group_size=size, compression="none",
        write_page_checksum=True,
    )  # fmt: skip
    scan = scan_series(path)
    group = pq.ParquetFile(path).metadata.row_group(3).column(3)
    content = bytearray(path.read_bytes())
    middle = group.data_page_offset + group.total_compressed_size // 2
    content[middle : middle + 8] = bytes(byte ^ 0xFF for byte in content[middle : middle + 8])
    path.write_bytes(content)
    with pytest.raises(DataError, match=r"data.parquet, row group 3 cannot be read"):
        scan.read()
    readable = 0
    for part in scan.parts():
        try:
            readable += counts([part])[0]
        except DataError as error:
            assert "row group 3" in str(error)  # noqa: PT017 - some parts must fail, and some not
    assert 200 < readable < 400


@pytest.mark.parametrize("form", [long_table, list_table])
def test_files_are_released_after_reading(form, tmp_path, monkeypatch):
    """A fit opens every file many times, and the garbage collector ignores the size of footers."""
    opened = []

    class Watched(pq.ParquetFile):
        def __init__(self, *args, **kwargs):
            super().__init__(*args, **kwargs)
            opened.extend([weakref.ref(self), weakref.ref(self.metadata)])

    monkeypatch.setattr(pq, "ParquetFile", Watched)
    write_groups(tmp_path / "a.parquet", form(*forms.series_of_lengths([3, 5, 2, 4] * 5)), [7] * 3)
    gc.disable()
    try:
        read_parts(scan_series(tmp_path / "a.parquet"))
        assert len(opened) > 2
        assert [kept() for kept in opened if kept() is not None] == []
    finally:
        gc.enable()


def test_infinite_values_are_named_by_row(tmp_path):
    path = tmp_path / "data.parquet"
    values = np.arange(20.0)
    values[13] = np.inf
    table = pa.table({"id": np.repeat(np.arange(5), 4), "x": values})
    pq.write_table(table, path, row_group_size=3)
    with pytest.raises(DataError, match=r"data.parquet, row 13 \(series 3\): 'x' is infinite"):
        read_parts(scan_series(path))


def test_steps_are_sorted_within_a_series_only(tmp_path):
    path = tmp_path / "data.parquet"
    table = pa.table({"id": [1, 1, 1, 2, 2], "t": [2, 0, 1, 0, 1], "x": [20, 0, 10, 5, 6]})
    pq.write_table(table, path, row_group_size=1)
    first, second = scan_series(path).batches(batch_size=1)
    assert first.series.values[:, 0].tolist() == [0, 10, 20]
    assert "sorted by 't'" in first.notes[0]
    assert (second.series.values[:, 0].tolist(), second.notes) == ([5, 6], ())
    pq.write_table(forms.replaced(table, "t", pa.array([0, 1, 1, 0, 1])), path, row_group_size=1)
    with pytest.raises(DataError, match="time 1 occurs twice in series 1"):
        read_parts(scan_series(path))


@pytest.mark.parametrize(("change", "message"), [
    (lambda table: table.drop_columns(["c2"]), r"b.parquet has no column 'c2'.*--channels c1,c3"),
    (lambda table: forms.replaced(table, "recording", pa.array(range(table.num_rows))),
     r"b.parquet: column 'recording' has type int64, but string in .*a.parquet"),
])  # fmt: skip
def test_files_must_have_the_same_schema(change, message, tmp_path):
    with pytest.raises(DataError, match=message):
        two_files(tmp_path, change)


def test_labels_that_a_file_does_not_have_matter_only_if_they_are_read(tmp_path):
    def unlabelled(table):
        ids = pa.array([f"other {id}" for id in table["recording"].to_pylist()])
        return forms.replaced(table, "recording", ids).drop_columns(["label"])

    scan = two_files(tmp_path, unlabelled, channels=["c1", "c2", "c3"])
    for read in (scan.parts, scan.read):
        with pytest.raises(DataError, match=r"b.parquet has no column 'label'.*Add the column"):
            read()
    assert len(scan.read(labels=False)) == 24


def test_numbers_of_another_width_are_one_schema(tmp_path):
    def narrow(table):
        ids = pa.array([f"other {id}" for id in table["recording"].to_pylist()])
        table = forms.replaced(table, "recording", ids.dictionary_encode())
        return forms.replaced(table, "c1", table["c1"].cast(pa.float32()))

    assert len(two_files(tmp_path, narrow).read()) == 24


@pytest.mark.parametrize(("ids", "size"), [
    ([1, 1, 2, 2, 1], 100), ([*np.repeat(np.arange(40), 5), 7], 10),
    # The second part has series 2 and then a row of series 1, which ended the first part.
    ([1, 1, 2, 1, *range(10, 38)], 1),
])  # fmt: skip
def test_a_repeated_series_is_an_error_in_a_large_table(ids, size, tmp_path, monkeypatch):
    path = tmp_path / "data.parquet"
    pq.write_table(pa.table({"id": ids, "x": np.arange(len(ids)) % 2}), path, row_group_size=size)
    scan = scan_series(path, id="id", channels="x")
    for read in (scan.read, lambda: list(scan)):
        with pytest.raises(DataError, match=rf"series {ids[-1] if size > 1 else 1} is repeated"):
            read()
    # A small table can be sorted by time.
    monkeypatch.setattr("slts.tables.assembly.SMALL_BYTES", 1 << 20)
    with pytest.raises(DataError, match="rows of different series are mixed"):
        scan.read()
    table = pq.read_table(path)
    pq.write_table(table.append_column("t", pa.array(np.arange(len(ids)))), path)
    scan = scan_series(path, id="id", channels="x", time="t")
    assert scan.read().ids.tolist() == list(dict.fromkeys(ids))


def test_a_series_of_very_many_row_groups_is_an_error(tmp_path):
    table = pa.table({"id": np.repeat([1, 2], 200), "x": np.arange(400) % 7})
    pq.write_table(table, tmp_path / "data.parquet", row_group_size=1)
    with pytest.raises(DataError, match=r"series 1 goes on over more than 64 row groups"):
        scan_series(tmp_path / "data.parquet", id="id").read()
