import gc
import pickle
import subprocess
import sys
import weakref
from itertools import pairwise

import numpy as np
import pytest

pytest.importorskip("pyarrow")
pytest.importorskip("narwhals")

import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet as pq
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from slts import DataError, SeriesBatch
from slts.files import dask_collections, is_collection, iter_series, read_series, scan_series
from slts.files.dataset import join
from slts.series.stream import SeriesStream
from tests.files.forms import FORMS, csv_text, list_table, long_table, make_data, write_form


def made(lengths, *, text=False, seed=0):
    """Series of given lengths with values that tell them apart, labels and identifiers."""
    rng = np.random.default_rng(seed)
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    batch = SeriesBatch(rng.normal(size=(offsets[-1], 2)), offsets, ["c1", "c2"])
    ids = rng.permutation(len(lengths)) - 3
    labels = np.array([f"class {i % 3}" for i in range(len(lengths))])
    return batch, labels, np.array([f"s{i}" for i in ids]) if text else ids


def write_groups(path, table, sizes):
    """Write row groups of the given sizes, 0 included, and the rest as one more."""
    with pq.ParquetWriter(path, table.schema) as writer:
        start = 0
        for size in sizes:
            writer.write_table(table.slice(start, size))
            start += size
        if start < table.num_rows:
            writer.write_table(table.slice(start))


def pieces_of(scan, *, batch_size=3, labels=True):
    """What the parts give, each sent through pickle; they must be cut the same every time."""
    parts = scan.parts()
    assert [part.name for part in parts] == [part.name for part in scan.parts()]
    return [
        piece
        for part in parts
        for piece in pickle.loads(pickle.dumps(part)).batches(labels=labels, batch_size=batch_size)
    ]


def assert_same(found, expected):
    assert found.series == expected.series
    assert found.ids.tolist() == expected.ids.tolist()
    if expected.labels is None:
        assert found.labels is None
    else:
        assert found.labels.tolist() == expected.labels.tolist()


def assert_parts_are_the_whole(path, **options):
    scan = scan_series(path, **options)
    whole = read_series(path, **options)
    pieces = pieces_of(scan)
    assert max(map(len, pieces)) <= 3
    assert_same(join(pieces), whole)
    assert_same(join(scan), whole)
    assert_same(scan.read(), whole)
    return scan


@pytest.mark.parametrize("text", [False, True])
@pytest.mark.parametrize("size", [1, 2, 3, 5, 7, 16, 50, 1000])
def test_parts_together_are_the_whole(size, text, tmp_path):
    lengths = [1, 4, 2, 40, 1, 1, 9, 3, 25, 2, 2, 6]
    path = tmp_path / "data.parquet"
    pq.write_table(long_table(*made(lengths, text=text)), path, row_group_size=size)
    scan = assert_parts_are_the_whole(path)
    n_groups = -(-sum(lengths) // size)
    # One row group to a part, or sixteen parts of about the same size.
    assert len(scan.parts()) == min(n_groups, 16)


@pytest.mark.parametrize("text", [False, True])
def test_a_series_may_go_on_through_parts_and_files(text, tmp_path):
    batch, labels, ids = made([3, 100, 1, 60, 2], text=text)
    table = long_table(batch, labels, ids)
    folder = tmp_path / "folder"
    folder.mkdir()
    cuts = [0, 1, 1, 20, 70, 101, 103, 104, 130, 166]
    for number, (start, stop) in enumerate(pairwise(cuts)):
        write_groups(folder / f"{number}.parquet", table.slice(start, stop - start), [0, 5, 0, 5])
    scan = assert_parts_are_the_whole(folder)
    owned = [sum(map(len, part.batches(labels=True, batch_size=9))) for part in scan.parts()]
    assert sum(owned) == 5
    assert owned.count(0) >= 5


def many_files(folder, lengths, rows_per_file):
    """Write series of the given lengths to files that end inside series."""
    folder.mkdir()
    data = made(lengths)
    table = long_table(*data)
    for number, start in enumerate(range(0, table.num_rows, rows_per_file)):
        pq.write_table(table.slice(start, rows_per_file), folder / f"part-{number:05d}.parquet")
    return data


@pytest.mark.parametrize("n_files", [40, 300])
def test_a_part_of_many_files_is_small(n_files, tmp_path, monkeypatch):
    many_files(tmp_path / "folder", [5] * n_files, 5)
    # Sixteen parts, and one part a file.
    for parts in (16, 1 << 20):
        monkeypatch.setattr("slts.files.row_groups._PARTS", parts)
        scan = scan_series(tmp_path / "folder")
        assert len(scan.parts()) == min(n_files, parts)
        assert max(len(pickle.dumps(part)) for part in scan.parts()) < 2000


@pytest.mark.parametrize("n_files", [3, 12])
def test_a_series_may_span_files(n_files, tmp_path, monkeypatch):
    # More files than a part knows of: the others are found when the series goes on.
    monkeypatch.setattr("slts.files.row_groups._PARTS", 1 << 20)
    batch, _, ids = many_files(tmp_path / "folder", [10, 10 * n_files, 10, 7], 9)
    scan = assert_parts_are_the_whole(tmp_path / "folder")
    found = scan.read()
    assert found.series == batch
    assert found.ids.tolist() == ids.tolist()


def test_a_folder_that_has_changed_is_noticed_where_it_is_listed_again(tmp_path, monkeypatch):
    monkeypatch.setattr("slts.files.row_groups._PARTS", 1 << 20)
    many_files(tmp_path / "folder", [3, 100, 5], 9)
    first = scan_series(tmp_path / "folder").parts()[0]
    (tmp_path / "folder" / "part-00011.parquet").unlink()
    with pytest.raises(DataError, match=r"folder has 11 Parquet files, and had 12 when it was sca"):
        list(first.batches(labels=True, batch_size=5))


@pytest.mark.parametrize("rows_per_group", [100, 33])
def test_rows_that_are_series_are_cut_inside_row_groups_too(rows_per_group, tmp_path, monkeypatch):
    monkeypatch.setattr("slts.files.row_groups._PIECE_STEPS", 8)
    batch, labels, ids = made(np.arange(100) % 7 + 1)
    path = tmp_path / "data.parquet"
    table = list_table(batch, labels, ids)
    pq.write_table(table, path, row_group_size=rows_per_group)
    scan = assert_parts_are_the_whole(path, id="id")
    parts = scan.parts()
    counts = [sum(map(len, part.batches(labels=True, batch_size=9))) for part in parts]
    assert len(counts) > -(-100 // rows_per_group)
    assert max(counts) <= 14
    assert len({part.name for part in parts}) == len(parts)
    assert max(piece.share for piece in pieces_of(scan)) == 1.0
    pq.write_table(table.drop_columns(["id"]), path, row_group_size=rows_per_group)
    assert join(pieces_of(scan_series(path))).ids.tolist() == list(range(100))


def test_neighbours_in_different_parts_may_look_alike(tmp_path):
    # The label, the times and the values are the same; only identifiers tell where one ends.
    path = tmp_path / "data.parquet"
    table = pa.table({"id": [1, 1, 2, 2, 3], "label": ["a"] * 5, "x": [0.0] * 5})
    pq.write_table(table, path, row_group_size=1)
    scan = assert_parts_are_the_whole(path, id="id")
    assert scan.read().series.lengths.tolist() == [2, 2, 1]


@settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    lengths=st.lists(st.integers(1, 30), min_size=1, max_size=25),
    sizes=st.lists(st.integers(0, 25), max_size=20),
    cut=st.floats(0, 1),
    lists=st.booleans(),
    text=st.booleans(),
)
def test_any_cut_gives_the_same_series(lengths, sizes, cut, lists, text, tmp_path_factory):
    data = made(lengths, text=text)
    table = (list_table if lists else long_table)(*data)
    folder = tmp_path_factory.mktemp("folder")
    row = int(cut * table.num_rows)
    half = len(sizes) // 2
    for number, (rows, groups) in enumerate(
        [(table.slice(0, row), sizes[:half]), (table.slice(row), sizes[half:])]
    ):
        write_groups(folder / f"{number}.parquet", rows, groups)
    id, label = ("id", "label") if lists else ("recording", "speaker")
    batch, labels, ids = data
    found = join(pieces_of(scan_series(folder, id=id, label=label, channels=["c1", "c2"])))
    assert found.series == batch
    assert found.ids.tolist() == ids.tolist()
    assert found.labels.tolist() == labels.tolist()


def test_rows_of_lists_without_identifiers_are_numbered(tmp_path):
    batch, labels, ids = made([2, 3, 1, 4, 2, 5, 1])
    table = list_table(batch, labels, ids).drop_columns(["id"])
    folder = tmp_path / "folder"
    folder.mkdir()
    pq.write_table(table.slice(0, 4), folder / "a.parquet", row_group_size=1)
    pq.write_table(table.slice(4), folder / "b.parquet", row_group_size=2)
    scan = scan_series(folder)
    parts = scan.parts()
    assert len(parts) > 2
    assert [p.ids.tolist() for p in parts[-1].batches(labels=True, batch_size=9)] == [[6]]
    found = join(pieces_of(scan, batch_size=1))
    assert found.ids.tolist() == list(range(7))
    assert found.series == batch


@pytest.mark.parametrize("rows_per_group", [7, 1 << 20])
def test_size_is_told_by_the_footers(rows_per_group, tmp_path):
    data = made(np.arange(1, 60))
    true = data[0].values.nbytes
    long, lists = tmp_path / "long.parquet", tmp_path / "lists.parquet"
    pq.write_table(long_table(*data), long, row_group_size=rows_per_group)
    pq.write_table(list_table(*data), lists, row_group_size=rows_per_group)
    assert scan_series(long).n_bytes == true
    assert scan_series(lists, id="id").n_bytes == true


def test_parts_are_of_about_equal_size(tmp_path):
    path = tmp_path / "data.parquet"
    pq.write_table(long_table(*made([4] * 1000)), path, row_group_size=10)
    parts = scan_series(path).parts()
    counts = [sum(map(len, part.batches(labels=False, batch_size=1000))) for part in parts]
    assert len(counts) == 16
    assert min(counts) > 55
    assert max(counts) < 70
    assert len(pickle.dumps(parts[3])) < 2000


@pytest.mark.parametrize("form", FORMS)
def test_every_form_can_be_scanned_and_read_twice(form, tmp_path):
    path = write_form(form, tmp_path, *make_data())
    scan = scan_series(path)
    assert isinstance(scan, SeriesStream)
    whole = read_series(path)
    for _ in range(2):
        found = scan.read()
        assert found.series == whole.series
        assert found.labels.tolist() == whole.labels.tolist()
        again = join(pieces_of(scan, labels=False))
        assert again.series == whole.series
        assert again.labels is None
    assert scan.columns == whole.columns
    assert scan.channel_names == whole.series.channel_names
    assert str(path) in repr(scan)
    compressed = form.endswith((".gz", ".bz2", ".xz", ".zst"))
    assert (scan.n_bytes is None) == compressed
    assert not hasattr(scan.parts()[0], "payload")


def test_a_csv_has_the_size_of_the_file(tmp_path):
    path = write_form(".csv", tmp_path, *make_data())
    assert scan_series(path).n_bytes == path.stat().st_size
    assert len(scan_series(path).parts()) == 1


def test_columns_are_found_once(tmp_path):
    # In the second file alone, `x` would be taken for the identifier.
    folder = tmp_path / "folder"
    folder.mkdir()
    first = {"unit": [1, 1, 2, 2], "x": [1, 2, 3, 4], "y": [0.5, 0.1, 0.2, 0.3]}
    second = {"unit": [3, 4, 5, 6], "x": [1, 1, 2, 2], "y": [0.5, 0.1, 0.2, 0.3]}
    pq.write_table(pa.table(first), folder / "a.parquet")
    pq.write_table(pa.table(second), folder / "b.parquet")
    scan = scan_series(folder)
    assert scan.columns.id == "unit"
    assert [p.ids.tolist() for p in pieces_of(scan, batch_size=9)] == [[1, 2], [3, 4, 5, 6]]


@pytest.mark.parametrize("lists", [False, True])
def test_files_that_have_been_read_are_let_go(lists, tmp_path, monkeypatch):
    """Files and footers hold memory, and a fit opens every file many times.

    They must not wait for the garbage collector, which counts objects and not their size.
    """
    opened = []

    class Watched(pq.ParquetFile):
        def __init__(self, *args, **kwargs):
            super().__init__(*args, **kwargs)
            opened.extend([weakref.ref(self), weakref.ref(self.metadata)])

    monkeypatch.setattr(pq, "ParquetFile", Watched)
    batch, labels, ids = made([3, 5, 2, 4] * 5)
    table = (list_table if lists else long_table)(batch, labels, ids)
    write_groups(tmp_path / "a.parquet", table, [7] * 3)
    gc.disable()
    try:
        scan = scan_series(tmp_path / "a.parquet")
        pieces_of(scan)
        assert len(opened) > 2
        assert [kept() for kept in opened if kept() is not None] == []
    finally:
        gc.enable()


def test_standard_input_and_other_things_are_no_source():
    with pytest.raises(DataError, match="standard input, which can be read only once"):
        scan_series("-")
    with pytest.raises(DataError, match=r"must be a path.*got list"):
        scan_series([1, 2])
    with pytest.raises(FileNotFoundError, match="no such file"):
        scan_series("absent.parquet")


def test_batch_size_is_checked(tmp_path):
    scan = scan_series(write_form(".parquet", tmp_path, *make_data()))
    with pytest.raises(DataError, match="batch_size must be at least 1, got 0"):
        next(scan.batches(batch_size=0))


def test_nothing_to_read_is_an_error_of_the_whole(tmp_path):
    table = long_table(*make_data())
    pq.write_table(table.slice(0, 0), tmp_path / "data.parquet")
    with pytest.raises(DataError, match=r"data.parquet has no rows"):
        scan_series(tmp_path / "data.parquet")


@pytest.mark.parametrize("lists", [False, True])
def test_a_damaged_row_group_is_named(lists, tmp_path):
    path = tmp_path / "data.parquet"
    data = make_data(400)
    table = (list_table if lists else long_table)(*data)
    size = 50 if lists else 300
    pq.write_table(table, path, row_group_size=size, compression="none", write_page_checksum=True)
    scan = scan_series(path)
    group = pq.ParquetFile(path).metadata.row_group(3).column(3)
    content = bytearray(path.read_bytes())
    middle = group.data_page_offset + group.total_compressed_size // 2
    for position in range(middle, middle + 8):
        content[position] ^= 0xFF
    path.write_bytes(content)
    with pytest.raises(DataError, match=r"data.parquet, row group 3 cannot be read"):
        scan.read()
    readable = 0
    for part in scan.parts():
        try:
            readable += sum(map(len, part.batches(labels=True, batch_size=10)))
        except DataError as error:
            assert "row group 3" in str(error)  # noqa: PT017 - some parts must fail, and some not
    assert 200 < readable < 400


def test_a_file_that_has_changed_is_noticed(tmp_path):
    path = tmp_path / "data.parquet"
    table = long_table(*make_data())
    pq.write_table(table, path)
    scan = scan_series(path)
    part = scan.parts()[0]
    pq.write_table(table.slice(0, 20), path)
    with pytest.raises(DataError, match=f"has 20 rows, and had {table.num_rows} when it was scann"):
        list(part.batches(labels=True, batch_size=5))


def two_files(folder, second):
    table = long_table(*make_data())
    folder.mkdir()
    pq.write_table(table, folder / "a.parquet")
    pq.write_table(second(table), folder / "b.parquet")
    return scan_series(folder)


def test_files_must_have_one_schema(tmp_path):
    scan = two_files(tmp_path / "a", lambda table: table.drop_columns(["c2"]))
    with pytest.raises(DataError, match=r"b.parquet has no column 'c2', which a.parquet has"):
        scan.parts()
    numbers = pa.array(range(make_data()[0].n_steps))
    scan = two_files(tmp_path / "b", lambda table: table.set_column(0, "recording", numbers))
    with pytest.raises(
        DataError, match=r"b.parquet: column 'recording' has type int64, and string"
    ):
        scan.parts()


def test_labels_that_a_file_does_not_have_matter_only_where_they_are_read(tmp_path):
    def unlabelled(table):
        ids = pa.array([f"other {id}" for id in table["recording"].to_pylist()])
        return table.drop_columns(["speaker"]).set_column(0, "recording", ids)

    scan = two_files(tmp_path / "a", unlabelled)
    for read in (scan.parts, scan.read):
        with pytest.raises(DataError, match=r"b.parquet has no column 'speaker'"):
            read()
    parts = scan.parts(labels=False)
    assert len(scan.read(labels=False)) == 24
    with pytest.raises(DataError, match=r"b.parquet has no column 'speaker'"):
        list(parts[-1].batches(labels=True, batch_size=5))


def test_missing_labels_are_named_by_row(tmp_path):
    batch, labels, ids = make_data()
    table = long_table(batch, labels, ids)
    gaps = table["speaker"].to_pylist()
    start, stop = batch.offsets[6:8]
    gaps[start:stop] = [None] * (stop - start)
    path = tmp_path / "data.parquet"
    column = table.schema.get_field_index("speaker")
    pq.write_table(table.set_column(column, "speaker", pa.array(gaps)), path, row_group_size=5)
    scan = scan_series(path)
    message = rf"data.parquet, row {start} \(series 'r006'\): 'speaker' \(label\) is missing"
    with pytest.raises(DataError, match=message):
        pieces_of(scan)
    assert len(scan.read(labels=False)) == len(batch)


def test_a_label_that_changes_inside_a_series_is_an_error_even_across_parts(tmp_path):
    path = tmp_path / "data.parquet"
    table = pa.table(
        {"id": ["a"] * 4 + ["b"] * 4, "label": ["u"] * 6 + ["v"] * 2, "x": np.arange(8.0)}
    )
    pq.write_table(table, path, row_group_size=2)
    scan = scan_series(path, id="id", label="label")
    with pytest.raises(DataError, match="label 'label' varies in the series with id 'b': u and v"):
        pieces_of(scan)
    # Labels are equal inside "a"; where a series ends they may change.
    assert len(next(scan.batches(batch_size=1))) == 1


def test_steps_are_sorted_inside_a_series_only(tmp_path):
    path = tmp_path / "data.parquet"
    table = pa.table(
        {"id": [1, 1, 1, 2, 2], "t": [2, 0, 1, 0, 1], "x": [20.0, 0.0, 10.0, 5.0, 6.0]}
    )
    pq.write_table(table, path, row_group_size=1)
    first, second = pieces_of(scan_series(path), batch_size=1)
    assert first.series.values[:, 0].tolist() == [0, 10, 20]
    assert "sorted by 't'" in first.notes[0]
    assert second.series.values[:, 0].tolist() == [5, 6]
    assert second.notes == ()
    again = table.set_column(1, "t", pa.array([0, 1, 1, 0, 1]))
    pq.write_table(again, path, row_group_size=1)
    with pytest.raises(DataError, match="time 1 occurs twice in the series with id 1"):
        pieces_of(scan_series(path))


def test_a_series_that_comes_back_in_a_later_part_is_found_by_the_whole(tmp_path):
    path = tmp_path / "data.parquet"
    ids = [*np.repeat(np.arange(40), 5), 7]
    pq.write_table(pa.table({"id": ids, "x": np.ones(201)}), path, row_group_size=10)
    scan = scan_series(path)
    pieces = pieces_of(scan)
    assert join(pieces).ids.tolist().count(7) == 2
    with pytest.raises(DataError, match=r"data.parquet, from row group .*: series 7 comes back"):
        scan.read()


def test_a_series_that_comes_back_within_a_part_is_found_by_it(tmp_path):
    path = tmp_path / "data.parquet"
    pq.write_table(pa.table({"id": [1, 1, 2, 2, 1], "x": np.ones(5)}), path)
    with pytest.raises(DataError, match=r"data.parquet, row 4: series 1 comes back"):
        pieces_of(scan_series(path))


def test_a_series_that_comes_back_is_not_taken_for_the_end_of_the_one_before(tmp_path):
    # Two row groups to a part: the second part is series 2, and then a row of series 1 again.
    path = tmp_path / "data.parquet"
    ids = [1, 1, 2, 1, *range(10, 38)]
    pq.write_table(pa.table({"id": ids, "x": np.ones(32)}), path, row_group_size=1)
    scan = scan_series(path, id="id")
    second = list(scan.parts()[1].batches(labels=True, batch_size=9))
    assert join(second).ids.tolist() == [2, 1]
    with pytest.raises(DataError, match="series 1 comes back"):
        scan.read()


def test_equal_identifiers_of_rows_that_are_series_are_no_error(tmp_path):
    path = tmp_path / "data.parquet"
    batch, labels, ids = made([2, 3, 4])
    ids[:] = 5
    pq.write_table(list_table(batch, labels, ids), path, row_group_size=1)
    assert scan_series(path, id="id").read().ids.tolist() == [5, 5, 5]


def test_equal_identifiers_of_rows_that_are_series_are_no_error_in_other_files(tmp_path):
    batch, labels, ids = made([2, 3, 4])
    ids[:] = 5
    pa.feather.write_feather(list_table(batch, labels, ids), tmp_path / "data.feather")
    scan = scan_series(tmp_path / "data.feather", id="id")
    assert not scan.in_rows
    assert scan.read().ids.tolist() == [5, 5, 5]
    pa.feather.write_feather(long_table(*made([2, 3, 4])), tmp_path / "data.feather")
    assert scan_series(tmp_path / "data.feather").in_rows


def test_bad_values_are_named_by_file_and_row(tmp_path):
    path = tmp_path / "data.parquet"
    values = np.arange(20.0)
    values[13] = np.inf
    pq.write_table(
        pa.table({"id": np.repeat(np.arange(5), 4), "x": values}), path, row_group_size=3
    )
    with pytest.raises(DataError, match=r"data.parquet, row 13 \(series 3\): 'x' is infinite"):
        pieces_of(scan_series(path))


@pytest.mark.parametrize("form", [".csv", ".parquet"])
def test_share_grows_to_one(form, tmp_path):
    scan = scan_series(write_form(form, tmp_path, *make_data()))
    shares = [batch.share for batch in scan.batches(batch_size=2)]
    assert shares == sorted(shares)
    assert shares[-1] == 1.0


def test_dictionaries_are_read_as_what_they_stand_for(tmp_path):
    batch, labels, ids = made([3, 30, 2, 7], text=True)
    table = long_table(batch, labels, ids)
    table = table.set_column(0, "recording", table["recording"].dictionary_encode())
    path = tmp_path / "data.parquet"
    pq.write_table(table, path, row_group_size=4)
    assert_parts_are_the_whole(path)


def bag_of(elements, n_partitions):
    bag = pytest.importorskip("dask.bag")
    return bag.from_sequence(elements, npartitions=n_partitions)


def test_a_bag_of_pairs():
    batch, labels, _ = make_data()
    bag = bag_of(list(zip(batch, labels, strict=True)), 5)
    assert is_collection(bag)
    scan = scan_series(bag)
    parts = scan.parts()
    assert len(parts) == bag.npartitions
    pieces = [p for part in parts for p in part.batches(labels=True, batch_size=2)]
    assert max(map(len, pieces)) == 2
    assert all(piece.ids is None for piece in pieces)
    assert np.array_equal(join(pieces).series.values, batch.values)
    assert join(pieces).labels.tolist() == labels.tolist()
    assert next(parts[0].batches(labels=False, batch_size=2)).labels is None
    assert scan.read().ids.tolist() == list(range(len(batch)))
    assert (scan.columns, scan.channel_names, scan.n_bytes) == (None, None, None)


def test_a_bag_of_series_with_empty_partitions():
    batch, _, _ = make_data()
    bag = bag_of(range(len(batch)), 6).filter(lambda i: i > 4).map(lambda i: np.array(batch[i]))
    scan = scan_series(bag)
    counts = [sum(map(len, p.batches(labels=True, batch_size=9))) for p in scan.parts()]
    assert counts[0] == 0
    assert sum(counts) == len(batch) - 5
    found = scan.read()
    assert found.labels is None
    assert np.array_equal(found.series.values, batch[5:].values)
    with pytest.raises(DataError, match="dask bag has no"):
        scan_series(bag.filter(lambda x: False)).read()


def test_bad_bags():
    with pytest.raises(DataError, match="no named columns, so id= has no meaning"):
        scan_series(bag_of([np.ones((2, 3))], 1), id="id")
    mixed = bag_of([np.ones((2, 3)), (np.ones((2, 3)), "a")], 1)
    with pytest.raises(DataError, match=r"partition 0: element 1 is a pair.*unlike element 0"):
        scan_series(mixed).read()
    later = bag_of([(np.ones((2, 3)), "a"), (np.ones((2, 3)), 1)], 1)
    with pytest.raises(DataError, match=r"partition 0: the label of element 1 is 1, and 'a' of"):
        # In another batch than the first.
        list(scan_series(later).parts()[0].batches(labels=True, batch_size=1))
    broken = bag_of([np.ones((2, 3)), np.full((2, 3), np.nan)], 2)
    with pytest.raises(DataError, match=r"dask bag, partition 1, from element 0: .*NaN"):
        scan_series(broken).read()


@pytest.mark.parametrize("label", [None, np.nan, np.float32("nan"), "", np.array("")])
def test_labels_that_a_bag_lacks(label):
    pairs = [(np.ones((2, 3)), "a"), (np.ones((2, 3)), "b"), (np.ones((2, 3)), label)]
    scan = scan_series(bag_of(pairs, 2))
    with pytest.raises(DataError, match=r"partition 1: the label of element 0 is missing"):
        scan.read()
    assert len(scan.read(labels=False)) == 3


@pytest.mark.parametrize(
    ("labels", "expected"),
    [
        ([np.array(2), np.int8(1)], [2, 1]),
        ([np.array("b"), np.str_("a")], ["b", "a"]),
        ([True, False], [True, False]),
        ([1, 2.5], [1, 2.5]),
    ],
)
def test_labels_of_a_bag_are_one_array(labels, expected):
    found = scan_series(bag_of([(np.ones((2, 3)), label) for label in labels], 1)).read().labels
    assert found.shape == (2,)
    assert found.tolist() == expected


@pytest.mark.parametrize("second", [np.ones(3), np.array([1]), [1], (1, 2)])
@pytest.mark.parametrize("labels", [False, True])
def test_a_pair_in_a_bag_is_no_pair_of_channels(second, labels):
    message = rf"label of element 0 is of type {type(second).__name__}.*A tuple of two.*stack"
    with pytest.raises(DataError, match=message):
        scan_series(bag_of([(np.ones(3), second)], 1)).read(labels=labels)


def frame_of(tables):
    """A dask DataFrame with one partition per table."""
    dask = pytest.importorskip("dask")
    frames = pytest.importorskip("dask.dataframe")
    parts = [dask.delayed(table.to_pandas()) for table in tables]
    return frames.from_delayed(parts, meta=tables[0].slice(0, 0).to_pandas())


def partitions(batch, labels, ids):
    """Whole series, and an empty partition at the beginning and in the middle."""
    table = long_table(batch, labels, ids)
    cuts = [0, 0, int(batch.offsets[5]), int(batch.offsets[5]), table.num_rows]
    return [table.slice(a, b - a) for a, b in pairwise(cuts)]


def test_a_dask_frame():
    batch, labels, ids = make_data()
    frame = frame_of(partitions(batch, labels, ids))
    assert is_collection(frame)
    scan = scan_series(frame)
    assert (scan.columns.id, scan.columns.label) == ("recording", "speaker")
    parts = scan.parts()
    counts = [sum(map(len, p.batches(labels=True, batch_size=3))) for p in parts]
    assert counts == [0, 5, 0, 7]
    found = scan.read()
    assert found.series == batch
    assert found.labels.tolist() == labels.tolist()
    assert found.ids.tolist() == ids.tolist()
    assert "dask DataFrame; id=recording" in repr(scan)


def test_parts_of_dask_read_what_was_computed_elsewhere():
    dask = pytest.importorskip("dask")
    data = make_data()
    frame = scan_series(frame_of(partitions(*data)))
    bag = scan_series(bag_of(list(zip(data[0], data[1], strict=True)), 4))
    for scan in (frame, bag):
        parts = scan.parts()
        computed = dask.compute(*[part.payload for part in parts], scheduler="synchronous")
        held = [part.holding(found) for part, found in zip(parts, computed, strict=True)]
        assert [part.name for part in held] == [part.name for part in parts]
        assert not any(hasattr(part, "payload") for part in held)
        pieces = [
            piece
            for part in held
            for piece in pickle.loads(pickle.dumps(part)).batches(labels=True, batch_size=4)
        ]
        assert np.array_equal(join(pieces).series.values, data[0].values)
        assert join(pieces).labels.tolist() == data[1].tolist()


def test_a_dask_frame_may_have_its_identifiers_in_the_index():
    pytest.importorskip("dask.dataframe")
    batch, labels, ids = make_data()
    frame = frame_of(partitions(batch, labels, ids)).set_index("recording", sorted=True)
    found = scan_series(frame, id="recording").read()
    assert found.series == batch
    assert found.ids.tolist() == ids.tolist()


def test_bad_dask_frames():
    batch, labels, ids = make_data()
    table = long_table(batch, labels, ids)
    inside = int(batch.offsets[5]) + 1
    split = frame_of([table.slice(0, inside), table.slice(inside)])
    with pytest.raises(DataError, match=r"partition 1: series 'r005' comes back.*one partition"):
        scan_series(split).read()
    with pytest.raises(DataError, match="dask DataFrame has no rows"):
        scan_series(frame_of([table.slice(0, 0)]))
    with pytest.raises(DataError, match=r"has no column 'absent' .id."):
        scan_series(split, id="absent")
    cut = int(batch.offsets[5])
    gaps = table["c1"].to_pylist()
    gaps[cut + 2] = None
    gappy = table.set_column(table.schema.get_field_index("c1"), "c1", pa.array(gaps))
    with pytest.raises(DataError, match=r"partition 1, row 2 \(series 'r005'\): 'c1' is missing"):
        scan_series(frame_of([gappy.slice(0, cut), gappy.slice(cut)])).read()


def test_columns_are_found_in_the_head_of_a_partition(monkeypatch):
    computed = []

    def watched(payload):
        computed.append(compute(payload))
        return computed[-1]

    compute = dask_collections._computed
    monkeypatch.setattr(dask_collections, "_computed", watched)
    ids = np.repeat(np.arange(300), 100)
    scan = scan_series(frame_of([pa.table({"id": ids, "x": np.ones(len(ids))})]), id="id")
    assert [len(frame) for frame in computed] == [20_000]
    assert len(scan.read()) == 300


def test_what_a_cluster_holds_is_read_by_its_client():
    distributed = pytest.importorskip("distributed")
    batch, labels, ids = make_data()
    with (
        distributed.LocalCluster(
            n_workers=1, threads_per_worker=1, processes=False, dashboard_address=":0"
        ) as cluster,
        distributed.Client(cluster),
    ):
        frame = frame_of(partitions(batch, labels, ids))
        bag = bag_of(list(zip(batch, labels, strict=True)), 3)
        for collection in (frame, frame.persist(), bag, bag.persist()):
            found = scan_series(collection).read()
            assert np.array_equal(found.series.values, batch.values)
            assert found.labels.tolist() == labels.tolist()
    # Without the cluster, all is computed here again.
    assert len(scan_series(bag_of(list(batch), 3)).read()) == len(batch)


def test_other_things_are_no_collections(tmp_path):
    for thing in (None, [np.ones((2, 3))], make_data()[0], "data.parquet", tmp_path):
        assert not is_collection(thing)


def test_scanning_a_file_does_not_import_dask(tmp_path):
    path = tmp_path / "data.csv"
    path.write_text(csv_text(long_table(*make_data())))
    program = (
        "import sys; from slts.files import scan_series; "
        f"scan_series({str(path)!r}).read(); "
        "assert 'dask' not in sys.modules"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_reading_piece_by_piece_and_scanning_agree(tmp_path):
    path = tmp_path / "data.parquet"
    pq.write_table(long_table(*made([5] * 300)), path, row_group_size=64)
    one = join(iter_series(path, batch_size=7))
    assert_same(scan_series(path).read(), one)
