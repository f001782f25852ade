"""Parquet files read as one table: folders, patterns and lists, and what is refused."""

import os
import pickle
import re
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("pyarrow")
pytest.importorskip("narwhals")

import pyarrow as pa
import pyarrow.parquet as pq

from slts import DataError
from slts.files import iter_series, read_series, scan_series
from slts.files.dataset import join
from tests.files.forms import csv_text, list_table, long_table, make_data, write_form

DATA = make_data(30)


def write_parts(folder, count=12, form=long_table, name="part-{}.parquet"):
    """Files that end inside series; names sort by their numbers, not by their letters."""
    folder.mkdir(parents=True, exist_ok=True)
    table = form(*DATA)
    cuts = np.linspace(0, table.num_rows, count + 1).astype(int)
    paths = [folder / name.format(number) for number in range(count)]
    for path, (start, stop) in zip(paths, pairwise(cuts), strict=True):
        pq.write_table(table.slice(start, stop - start), path, row_group_size=5)
    return paths


def assert_is_the_whole(source, **options):
    """Every way of reading gives all series in order."""
    scan = scan_series(source, **options)
    parts = [pickle.loads(pickle.dumps(part)) for part in scan.parts()]
    in_parts = join(piece for part in parts for piece in part.batches(labels=True, batch_size=3))
    for found in (
        read_series(source, **options),
        join(iter_series(source, batch_size=4, **options)),
        scan.read(),
        in_parts,
    ):
        assert found.series == DATA[0]
        assert found.labels.tolist() == DATA[1].tolist()
        assert found.ids.tolist() == DATA[2].tolist()
    return scan


def refused(source, message, error=DataError):
    for read in (read_series, lambda source: list(iter_series(source)), scan_series):
        with pytest.raises(error, match=message):
            read(source)


# -- Folders


@pytest.mark.parametrize(
    "name",
    [
        "labels.csv", "more.CSV.gz", "deeper/more.tsv", "data.ts", "data.npz", "data.feather",
    ],
)  # fmt: skip
def test_a_folder_of_two_kinds_is_refused_with_one_file_of_each(name, tmp_path):
    first = write_parts(tmp_path / "data")[0]
    other = tmp_path / "data" / name
    other.parent.mkdir(exist_ok=True)
    other.write_text("what is inside does not matter")
    refused(tmp_path / "data", f"data holds files of two kinds, {first} and {other}, .*pattern")
    # The remedy works.
    assert_is_the_whole(str(tmp_path / "data" / "**" / "*.parquet"))


@pytest.mark.parametrize(
    "name",
    [
        "_SUCCESS", "_metadata", "_common_metadata", "README.md", "LICENSE", ".part-0.parquet.crc",
        ".hidden.csv", "_temporary/0/part-0.parquet", "_delta_log/00.checkpoint.parquet",
        ".ipynb_checkpoints/labels.csv", "_log.csv", "schema.json",
    ],
)  # fmt: skip
def test_what_tools_write_into_a_folder_is_left_alone(name, tmp_path):
    write_parts(tmp_path / "data")
    other = tmp_path / "data" / name
    other.parent.mkdir(parents=True, exist_ok=True)
    other.write_text("nothing to read")
    assert_is_the_whole(tmp_path / "data")
    assert_is_the_whole(str(tmp_path / "data" / "**" / "*"))


def test_underscores_of_the_way_to_the_data_do_not_matter(tmp_path):
    write_parts(tmp_path / "_work" / ".cache" / "data")
    folder = tmp_path / "_work" / ".cache" / "data"
    assert_is_the_whole(folder)
    assert_is_the_whole(str(folder / "*.parquet"))


@pytest.mark.parametrize("extra", [".ipynb_checkpoints", "_temporary/0", "a/.hidden/b", "a/_b/c"])
def test_folders_named_as_files_are_read_as_folders(extra, tmp_path):
    # As Spark and Dask write them.
    write_parts(tmp_path / "data" / "train.parquet")
    other = tmp_path / "data" / "train.parquet" / extra
    other.mkdir(parents=True)
    pq.write_table(long_table(*make_data(4, seed=1)), other / "part-0.parquet")
    (tmp_path / "data" / "empty.csv").mkdir()
    for source in (tmp_path / "data", tmp_path / "data" / "train.parquet"):
        assert_is_the_whole(source)
        assert_is_the_whole(str(source / "**" / "*.parquet"))


# -- Folders that stand for columns


def write_partitions(folder, keys):
    """A file for each of some folders, with its share of the series and without their labels."""
    batch, labels, ids = DATA
    for number, key in enumerate(keys):
        place = folder / key
        place.mkdir(parents=True, exist_ok=True)
        chosen = slice(number * len(batch) // len(keys), (number + 1) * len(batch) // len(keys))
        rows = long_table(batch[chosen], labels[chosen], ids[chosen])
        pq.write_table(rows.drop_columns(["speaker"]), place / "part-0.parquet", row_group_size=5)
    return folder


def every_way(source, **options):
    """Columns and labels, the same in every way of reading."""
    scan = scan_series(source, **options)
    parts = pickle.loads(pickle.dumps(scan.parts()))
    ways = [
        read_series(source, **options),
        join(iter_series(source, batch_size=4, **options)),
        scan.read(),
        join(piece for part in parts for piece in part.batches(labels=True, batch_size=3)),
    ]
    for found in ways:
        assert found.series == DATA[0]
        assert found.columns == scan.columns
        assert found.labels.tolist() == ways[0].labels.tolist()
    return scan.columns, ways[0].labels


@pytest.mark.parametrize("parts", [16, 1 << 20])
def test_names_of_folders_are_columns(parts, tmp_path, monkeypatch):
    monkeypatch.setattr("slts.files.row_groups._PARTS", parts)
    keys = ["day=3/label=a", "day=3/label=b%2Fc", "day=12/label=%C3%A9"]
    folder = write_partitions(tmp_path / "data", keys)
    files = [folder / key / "part-0.parquet" for key in keys]
    for source in (folder, str(folder / "*" / "label=*" / "*"), files):
        columns, labels = every_way(source, label="label")
        assert labels.tolist() == np.repeat(["a", "b/c", "é"], 10).tolist()
        assert columns.channels == ("c1", "c2", "c3")
        assert columns.ignored == ("day",)
        columns, labels = every_way(source, label="day")
        assert labels.dtype.kind == "i"
        assert labels.tolist() == np.repeat([3, 3, 12], 10).tolist()
        # Guessed by its name.
        assert every_way(source)[0].label == "label"
    found = scan_series(folder, channels=["c1", "day"], label="label").read()
    assert found.series.channel_names == ("c1", "day")
    assert set(found.series.values[:, 1]) == {3, 12}


def test_names_of_folders_are_no_times_and_no_channels(tmp_path):
    # By its name a time, and an integer: what becomes a channel otherwise.
    folder = write_partitions(tmp_path / "data", ["date=20240101/fold=1", "date=20240102/fold=2"])
    columns = scan_series(folder).columns
    assert columns.time == "t"
    assert columns.channels == ("c1", "c2", "c3")
    assert columns.ignored == ("date", "fold")
    for file in folder.rglob("*.parquet"):
        pq.write_table(pq.ParquetFile(file).read().drop_columns(["t"]), file)
    assert scan_series(folder).columns.time is None


def test_names_of_folders_are_identifiers_and_labels_by_name_only(tmp_path):
    # Every one is text that changes from block to block.
    columns = scan_series(write_partitions(tmp_path / "a", ["split=train", "split=test"])).columns
    assert columns.id == "recording"
    assert columns.label is None
    assert columns.ignored == ("split",)
    columns = scan_series(write_partitions(tmp_path / "b", ["class=u", "class=v"])).columns
    assert columns.label == "class"


def test_numbers_with_zeros_in_front_are_text(tmp_path):
    folder = write_partitions(tmp_path / "data", ["label=007", "label=7", "label=-1"])
    _, labels = every_way(folder)
    assert labels.tolist() == np.repeat(["007", "7", "-1"], 10).tolist()


def test_a_folder_may_be_a_series(tmp_path):
    # The name is read although no column of the file is the identifier.
    for number, length in enumerate([3, 4, 2]):
        place = tmp_path / f"label={'ab'[number % 2]}" / f"recording=r{number}"
        place.mkdir(parents=True)
        pq.write_table(
            pa.table({"x": np.arange(length) + 0.5}), place / "0.parquet", row_group_size=1
        )
    for read in (read_series, lambda *a, **k: scan_series(*a, **k).read()):
        found = read(tmp_path, id="recording", label="label")
        assert found.ids.tolist() == ["r0", "r2", "r1"]
        assert found.labels.tolist() == ["a", "a", "b"]
        assert found.series.lengths.tolist() == [3, 2, 4]


def test_lists_with_labels_in_the_names_of_folders(tmp_path):
    batch, labels, ids = DATA
    for number in range(2):
        place = tmp_path / f"label={number}"
        place.mkdir()
        rows = list_table(batch[number::2], labels[number::2], ids[number::2])
        pq.write_table(rows.drop_columns(["label"]), place / "0.parquet", row_group_size=4)
    found = scan_series(tmp_path, id="id", label="label").read()
    truth = {name: number % 2 for number, name in enumerate(ids.tolist())}
    assert dict(zip(found.ids.tolist(), found.labels.tolist(), strict=True)) == truth
    # Nothing but lists in the files.
    for file in tmp_path.rglob("*.parquet"):
        pq.write_table(pq.ParquetFile(file).read().drop_columns(["id"]), file)
    assert scan_series(tmp_path, label="label").read().labels.tolist() == [0] * 15 + [1] * 15


@pytest.mark.parametrize("value", ["__HIVE_DEFAULT_PARTITION__", ""])
def test_a_folder_without_a_value_is_a_missing_one(value, tmp_path):
    folder = write_partitions(tmp_path / "data", ["label=a", f"label={value}"])
    message = rf"label={value}.part-0.parquet, row 0 .*'label' \(label\) is missing"
    with pytest.raises(DataError, match=message):
        read_series(folder, label="label")
    with pytest.raises(DataError, match=message):
        scan_series(folder, label="label").read()
    assert len(scan_series(folder).read(labels=False)) == 30


def test_a_column_and_a_folder_of_one_name_are_refused(tmp_path):
    folder = write_partitions(tmp_path / "data", ["label=a", "label=b"])
    file = folder / "label=b" / "part-0.parquet"
    table = pq.ParquetFile(file).read()
    pq.write_table(table.append_column("label", pa.array(["b"] * table.num_rows)), file)
    message = r"label=b.part-0.parquet has a column 'label', and lies in a folder label=\.\.\."
    with pytest.raises(DataError, match=message):
        read_series(folder)
    with pytest.raises(DataError, match=message):
        scan_series(folder).read()
    # As the message says: above what is read, names of folders do not count.
    for source in (folder / "label=b", file, [file], str(folder / "label=b" / "*")):
        assert set(read_series(source).labels) == {"b"}


@pytest.mark.parametrize("keys", [["label=a", "other"], [".", "label=a"], ["label=a", "day=3"]])
def test_folders_that_name_other_columns_are_refused(keys, tmp_path):
    folder = write_partitions(tmp_path / "data", keys)
    refused(folder, "columns must be the same for all files. Give a pattern")


def test_a_column_named_by_two_folders_is_refused(tmp_path):
    folder = write_partitions(tmp_path / "data", ["label=a/label=b", "label=a/label=c"])
    refused(folder, "part-0.parquet lies in two folders label=...: rename one")


def test_a_file_that_is_linked_counts_once(tmp_path):
    first = write_parts(tmp_path / "data")[0]
    (tmp_path / "data" / "zz.parquet").symlink_to(first)
    for source in (tmp_path / "data", str(tmp_path / "data" / "*.parquet")):
        refused(source, f"zz.parquet is in .* twice, also as {first}")


def test_an_iterator_of_paths_is_refused(tmp_path):
    write_parts(tmp_path / "data")
    for read in (read_series, iter_series):
        with pytest.raises(DataError, match=r"a list of paths, got generator: say list"):
            list(read((tmp_path / "data").glob("*.parquet")))


def test_files_follow_each_other_by_their_numbers(tmp_path):
    # Dask names them so; by letters, 10 would come before 2.
    write_parts(tmp_path / "data", name="part.{}.parquet")
    assert_is_the_whole(tmp_path / "data")


# -- Patterns


@pytest.mark.parametrize("form", [long_table, list_table], ids=["long", "lists"])
@pytest.mark.parametrize("pattern", ["part-*.parquet", "part-[0-9]*.parquet", "*", "**/*.parquet"])
def test_a_pattern_is_the_files_that_match(pattern, form, tmp_path):
    write_parts(tmp_path / "data", form=form)
    given = tmp_path / "data" / pattern
    assert assert_is_the_whole(str(given)).name == str(given)
    assert_is_the_whole(given)


def test_a_pattern_may_be_relative(tmp_path, monkeypatch):
    write_parts(tmp_path / "data")
    monkeypatch.chdir(tmp_path)
    for pattern in ("data/*.parquet", "./data/part-*", "dat?/*.parquet"):
        assert_is_the_whole(pattern)


def test_a_pattern_chooses(tmp_path):
    write_parts(tmp_path)
    other = write_form(".csv", tmp_path, *DATA)
    assert_is_the_whole(str(tmp_path / "part-*"))
    assert other.exists()
    table = long_table(*make_data(4, seed=1))
    pq.write_table(table, tmp_path / "other.parquet")
    assert len(read_series(str(tmp_path / "o*.parquet"))) == 4


def test_a_file_comes_before_a_pattern_of_its_name(tmp_path):
    pq.write_table(long_table(*DATA), tmp_path / "part-[1].parquet")
    pq.write_table(long_table(*make_data(4, seed=1)), tmp_path / "part-1.parquet")
    assert_is_the_whole(str(tmp_path / "part-[1].parquet"))
    (tmp_path / "run[1]").mkdir()
    (tmp_path / "part-[1].parquet").rename(tmp_path / "run[1]" / "part-0.parquet")
    assert_is_the_whole(tmp_path / "run[1]")


def test_an_underscore_that_is_asked_for_is_found(tmp_path):
    write_parts(tmp_path, name="_part-{}.parquet")
    assert_is_the_whole(str(tmp_path / "_part-*.parquet"))


def test_patterns_that_match_nothing_to_read(tmp_path):
    refused(
        str(tmp_path / "part-*.parquet"),
        r"part-\*.parquet: there is no file of this name",
        FileNotFoundError,
    )
    (tmp_path / "notes.txt").write_text("")
    refused(str(tmp_path / "n*"), "no Parquet file matches it as a pattern", FileNotFoundError)
    (tmp_path / "year=3").mkdir()
    message = r"matches the folder .*year=3: add '/\*.parquet'"
    refused(str(tmp_path / "year=*"), message, FileNotFoundError)
    path = write_form(".csv", tmp_path, *DATA)
    refused(str(tmp_path / "*.csv"), f"matches {path}, which is no Parquet file")
    first = write_parts(tmp_path)[0]
    refused(str(tmp_path / "*"), f"holds files of two kinds, {first} and {path}.*end in '.parquet'")


# -- Lists


@pytest.mark.parametrize("form", [long_table, list_table], ids=["long", "lists"])
def test_a_list_is_read_in_its_order(form, tmp_path, monkeypatch):
    # A part for every file: series go on in files that the part does not know at first.
    monkeypatch.setattr("slts.files.row_groups._PARTS", 1 << 20)
    paths = write_parts(tmp_path, form=form)
    scan = assert_is_the_whole(paths)
    assert scan.name == f"{paths[0]} and 11 more files"
    assert_is_the_whole(tuple(map(str, paths)))
    # In an order that no names have.
    for number, path in enumerate(paths):
        path.rename(tmp_path / f"{(7 * number + 3) % 12}.parquet")
    assert_is_the_whole([tmp_path / f"{(7 * number + 3) % 12}.parquet" for number in range(12)])


@pytest.mark.parametrize("parts", [16, 1 << 20])
def test_a_scan_is_the_same_in_other_folders(parts, tmp_path, monkeypatch):
    # Many parts have to list the files again, there.
    monkeypatch.setattr("slts.files.row_groups._PARTS", parts)
    (tmp_path / "elsewhere").mkdir()
    names = [f"data/{path.name}" for path in write_parts(tmp_path / "data")]
    pq.write_table(long_table(*DATA), tmp_path / "data.parquet", row_group_size=5)
    write_form(".csv", tmp_path, *DATA)
    sources = ["data", Path("data"), "data/*.parquet", names, "data.parquet", "./data.csv"]
    monkeypatch.chdir(tmp_path)
    scans = [scan_series(source) for source in sources]
    sent = pickle.dumps([scan.parts() for scan in scans[::2]])
    monkeypatch.chdir(tmp_path / "elsewhere")
    for scan in scans:
        assert scan.n_bytes
        assert scan.read().series == DATA[0]
    for parts in pickle.loads(sent):
        pieces = (piece for part in parts for piece in part.batches(labels=True, batch_size=3))
        assert join(pieces).series == DATA[0]


def test_messages_name_files_as_they_were_given(tmp_path, monkeypatch):
    paths = write_parts(tmp_path / "data")
    table = pq.read_table(paths[7])
    pq.write_table(table.set_column(2, "speaker", pa.nulls(table.num_rows, "string")), paths[7])
    pq.write_table(pq.read_table(paths[7]), tmp_path / "one.parquet")
    monkeypatch.chdir(tmp_path)
    for source, file in (("data", "data/part-7.parquet"), ("one.parquet", "one.parquet")):
        scan = scan_series(source, id="recording", label="speaker")
        assert scan.name == source
        assert all(part.name.startswith(source) for part in scan.parts())
        with pytest.raises(DataError, match=rf"^{file}, row 0 .*'speaker' \(label\) is missing"):
            scan.read()


def test_a_list_of_one_file(tmp_path):
    paths = write_parts(tmp_path, 1)
    assert assert_is_the_whole(paths).name == str(paths[0])


@pytest.mark.parametrize("number", [1, 11])
def test_files_of_a_list_must_have_one_schema(number, tmp_path):
    paths = write_parts(tmp_path)
    pq.write_table(pq.read_table(paths[number]).drop_columns(["c2"]), paths[number])
    for source in (paths, str(tmp_path / "*.parquet")):
        message = f"{paths[number].name} has no column 'c2', which part-0.parquet has"
        with pytest.raises(DataError, match=message):
            read_series(source)
        with pytest.raises(DataError, match=message):
            scan_series(source).parts()


def test_a_series_that_comes_back_in_a_list_is_an_error(tmp_path):
    paths = write_parts(tmp_path)
    with pytest.raises(DataError, match="comes back"):
        list(iter_series([*paths[6:], *paths[:6]]))
    with pytest.raises(DataError, match="comes back"):
        scan_series([*paths[6:], *paths[:6]]).read()


def test_lists_that_are_refused(tmp_path):
    paths = write_parts(tmp_path)
    same = os.path.join(tmp_path, ".", paths[0].name)
    refused([*paths, same], "part-0.parquet is in the list of files twice")
    (tmp_path / "link.parquet").symlink_to(paths[1])
    refused([*paths, tmp_path / "link.parquet"], "link.parquet is in the list of files twice")
    refused([], r"the list of files is empty|list of paths.*got list")
    refused([paths[0], 3], "item 1 of the list of files is of type int, expected a path")
    refused([paths[0], tmp_path / "no.parquet"], "no.parquet, in the list", FileNotFoundError)
    refused([paths[0], tmp_path], "is a folder: a list may hold Parquet files only")
    text = tmp_path / "data.csv"
    text.write_text(csv_text(long_table(*DATA)))
    refused([text], "data.csv, in the list of files, is no Parquet file")
    refused(["-"], "there is no such file", FileNotFoundError)
    refused([paths[0], "s3://bucket/part-1.parquet"], "only local files are read")
    refused(["japanese_vowels"], "there is no such file", FileNotFoundError)


def test_files_that_have_changed_are_noticed_where_they_are_listed_again(tmp_path, monkeypatch):
    monkeypatch.setattr("slts.files.row_groups._PARTS", 1 << 20)
    table = long_table(*make_data(1))
    for number in range(table.num_rows):
        pq.write_table(table.slice(number, 1), tmp_path / f"{number}.parquet")
    pattern = str(tmp_path / "*.parquet")
    first = scan_series(pattern).parts()[0]
    (tmp_path / f"{table.num_rows}.parquet").write_bytes(Path(tmp_path / "0.parquet").read_bytes())
    n = table.num_rows
    with pytest.raises(DataError, match=rf"\*.parquet has {n + 1} Parquet files, and had {n} when"):
        list(first.batches(labels=True, batch_size=5))


@pytest.mark.parametrize(
    "address",
    [
        "s3://bucket/part-0.parquet", "https://example.org/a.csv", "gs://bucket/part-*.parquet",
        "file:///data/a.parquet", Path("s3://bucket/part-0.parquet"),
    ],
)  # fmt: skip
def test_addresses_are_no_paths(address):
    message = re.escape(f"{address} is an address, and only local files are read")
    refused(address, f"{message}.*dask.dataframe")


def test_a_folder_may_be_named_as_an_address_is(tmp_path, monkeypatch):
    write_parts(tmp_path / "run:" / "data")
    monkeypatch.chdir(tmp_path)
    assert_is_the_whole("run:/data")


def test_a_relative_pattern_in_a_folder_whose_name_looks_like_one(tmp_path, monkeypatch):
    monkeypatch.setattr("slts.files.row_groups._PARTS", 1 << 20)
    # A row to a file: the last series of a part goes on in files that it has to find.
    write_parts(tmp_path / "run[1]", long_table(*DATA).num_rows)
    monkeypatch.chdir(tmp_path / "run[1]")
    assert_is_the_whole("*.parquet")


# -- What columns become


@pytest.mark.parametrize("form", [long_table, list_table], ids=["long", "lists"])
@pytest.mark.parametrize(
    "change",
    [
        lambda column: column.cast(pa.large_string()),
        lambda column: column.dictionary_encode(),
        lambda column: column.cast(pa.large_string()).dictionary_encode(),
    ],
    ids=["large", "dictionary", "large dictionary"],
)
def test_text_may_be_stored_in_several_ways(change, form, tmp_path):
    paths = write_parts(tmp_path, form=form)
    for path in paths[1::2]:
        table = pq.read_table(path)
        for number, field in enumerate(table.schema):
            if field.type == pa.string():
                table = table.set_column(number, field.name, change(table[field.name]))
        pq.write_table(table, path, row_group_size=5)
    assert pq.read_schema(paths[0]) != pq.read_schema(paths[1])
    # One file is too little for a guess.
    id, label = ("id", "label") if form is list_table else ("recording", "speaker")
    assert_is_the_whole(paths, id=id, label=label)


def test_text_and_numbers_are_not_one_type(tmp_path):
    paths = write_parts(tmp_path)
    table = pq.read_table(paths[3])
    numbers = pa.array(np.ones(table.num_rows, int))
    pq.write_table(table.set_column(2, "speaker", numbers), paths[3])
    with pytest.raises(
        DataError, match=r"part-3.parquet: column 'speaker' has type int64, and string"
    ):
        read_series(paths, id="recording", label="speaker")
