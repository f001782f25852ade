"""Parquet files read as one table: folders, patterns and lists, and what is an error."""

import os
import re
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("pyarrow")
pytest.importorskip("pyarrow")

import pyarrow as pa
import pyarrow.parquet as pq

from slts import DataError
from slts.tables import read_series, scan_series
from tests.tables.forms import (
    assert_holds,
    csv_text,
    list_table,
    long_table,
    make_data,
    read_parts,
    replaced,
    write_form,
)

pytestmark = pytest.mark.usefixtures("tables_in_parts")

DATA = make_data()


def write_parts(folder, count=4, form=long_table, name="part-{}.parquet"):
    """Files that end inside series."""
    folder.mkdir(parents=True, exist_ok=True)
    table = form(*DATA)
    cuts = np.linspace(0, table.num_rows, count + 1).astype(int)
    paths = [folder / name.format(number) for number in range(count)]
    for path, (start, stop) in zip(paths, pairwise(cuts), strict=True):
        pq.write_table(table.slice(start, stop - start), path, row_group_size=5)
    return paths


def assert_complete(source, **options):
    """The whole and the parts hold all series in order."""
    scan = scan_series(source, **options)
    assert_holds(scan.read(), DATA)
    assert_holds(read_parts(scan), DATA)
    return scan


def refused(source, message, error=DataError):
    with pytest.raises(error, match=message):
        scan_series(source)


@pytest.fixture
def one_part_per_row_group(monkeypatch):
    monkeypatch.setattr("slts.tables.parquet_parts._PARTS", 1 << 20)


# -- Folders


@pytest.mark.parametrize(
    "name",
    [
        "labels.csv", "more.CSV.gz", "deeper/more.tsv", "data.ts", "data.npz", "data.feather",
    ],
)  # fmt: skip
def test_a_folder_of_two_kinds_is_an_error(name, tmp_path):
    first = write_parts(tmp_path / "data")[0]
    other = tmp_path / "data" / name
    other.parent.mkdir(exist_ok=True)
    other.write_text("the content does not matter")
    refused(tmp_path / "data", f"data holds files of two kinds, {first} and {other}, .*pattern")
    # The remedy works.
    assert_complete(str(tmp_path / "data" / "**" / "*.parquet"))


def test_files_that_tools_write_into_a_folder_are_ignored(tmp_path):
    write_parts(tmp_path / "data")
    for name in (
        "_SUCCESS", "_metadata", "_common_metadata", "README.md", "LICENSE", ".part-0.parquet.crc",
        ".hidden.csv", "_temporary/0/part-0.parquet", "_delta_log/00.checkpoint.parquet",
        ".ipynb_checkpoints/labels.csv", "_log.csv", "schema.json",
    ):  # fmt: skip
        other = tmp_path / "data" / name
        other.parent.mkdir(parents=True, exist_ok=True)
        other.write_text("nothing to read")
    assert_complete(tmp_path / "data")
    assert_complete(str(tmp_path / "data" / "**" / "*"))


def test_names_of_folders_above_the_data_do_not_matter(tmp_path):
    folder = tmp_path / "_work" / ".cache" / "data"
    write_parts(folder)
    assert_complete(folder)
    assert_complete(str(folder / "*.parquet"))


def test_folders_may_have_names_of_files(tmp_path):
    # Spark and Dask write them.
    write_parts(tmp_path / "data" / "train.parquet")
    for extra in (".ipynb_checkpoints", "_temporary/0", "a/.hidden/b", "a/_b/c"):
        other = tmp_path / "data" / "train.parquet" / extra
        other.mkdir(parents=True)
        pq.write_table(long_table(*make_data(4, seed=1)), other / "part-0.parquet")
    (tmp_path / "data" / "empty.csv").mkdir()
    for source in (tmp_path / "data", tmp_path / "data" / "train.parquet"):
        assert_complete(source)
        assert_complete(str(source / "**" / "*.parquet"))


def test_files_are_sorted_by_their_numbers(tmp_path):
    # As text, 10 would come before 2.
    write_parts(tmp_path / "data", 12, name="part.{}.parquet")
    assert_complete(tmp_path / "data")


def test_a_linked_file_is_not_read_twice(tmp_path):
    first = write_parts(tmp_path / "data")[0]
    (tmp_path / "data" / "zz.parquet").symlink_to(first)
    for source in (tmp_path / "data", str(tmp_path / "data" / "*.parquet")):
        refused(source, f"zz.parquet is in .* twice, also as {first}")


# -- Folders that define columns


def write_partitions(folder, keys):
    """Write one file per folder, with its share of the series and without their labels."""
    batch, labels, ids = DATA
    for number, key in enumerate(keys):
        place = folder / key
        place.mkdir(parents=True, exist_ok=True)
        chosen = slice(number * len(batch) // len(keys), (number + 1) * len(batch) // len(keys))
        rows = long_table(batch[chosen], labels[chosen], ids[chosen])
        pq.write_table(rows.drop_columns(["label"]), place / "part-0.parquet", row_group_size=5)
    return folder


def columns_and_labels(source, **options):
    """Columns and labels, which are the same in the whole and in parts."""
    scan = scan_series(source, **options)
    whole, parts = scan.read(), read_parts(scan)
    for found in (whole, parts):
        assert found.series == DATA[0]
        assert found.columns == scan.columns
    assert parts.labels.tolist() == whole.labels.tolist()
    return scan.columns, whole.labels


def test_names_of_folders_are_columns(tmp_path, monkeypatch):
    monkeypatch.setattr("slts.tables.parquet_parts._PARTS", 1 << 20)
    keys = ["day=3/label=a", "day=3/label=b%2Fc", "day=12/label=%C3%A9"]
    folder = write_partitions(tmp_path / "data", keys)
    files = [folder / key / "part-0.parquet" for key in keys]
    for source in (folder, str(folder / "*" / "label=*" / "*"), files):
        columns, labels = columns_and_labels(source)
        assert columns.label == "label"
        assert labels.tolist() == np.repeat(["a", "b/c", "é"], 4).tolist()
        assert columns.channels == ("c1", "c2", "c3")
        assert columns.ignored == ("day",)
    _, labels = columns_and_labels(folder, label="day")
    assert labels.dtype.kind == "i"
    assert labels.tolist() == np.repeat([3, 3, 12], 4).tolist()
    found = scan_series(folder, channels=["c1", "day"], label="label").read()
    assert found.series.channel_names == ("c1", "day")
    assert set(found.series.values[:, 1]) == {3, 12}


def test_names_of_folders_are_not_guessed_as_times_or_channels(tmp_path):
    folder = write_partitions(tmp_path / "data", ["date=20240101/fold=1", "date=20240102/fold=2"])
    columns = scan_series(folder).columns
    assert columns.time == "t"
    assert columns.channels == ("c1", "c2", "c3")
    assert columns.ignored == ("date", "fold")
    for file in folder.rglob("*.parquet"):
        pq.write_table(pq.ParquetFile(file).read().drop_columns(["t"]), file)
    assert scan_series(folder).columns.time is None


def test_names_of_folders_are_guessed_as_identifier_or_label_only_by_name(tmp_path):
    # Both are text that changes from block to block.
    columns = scan_series(write_partitions(tmp_path / "a", ["split=train", "split=test"])).columns
    assert columns.id == "recording"
    assert columns.label is None
    assert columns.ignored == ("split",)
    columns = scan_series(write_partitions(tmp_path / "b", ["class=u", "class=v"])).columns
    assert columns.label == "class"


def test_numbers_with_leading_zeros_are_text(tmp_path):
    folder = write_partitions(tmp_path / "data", ["label=007", "label=7", "label=-1"])
    _, labels = columns_and_labels(folder)
    assert labels.tolist() == np.repeat(["007", "7", "-1"], 4).tolist()


def test_a_folder_may_be_a_series(tmp_path):
    # No column of the files is the identifier.
    for number, length in enumerate([3, 4, 2]):
        place = tmp_path / f"label={'ab'[number % 2]}" / f"recording=r{number}"
        place.mkdir(parents=True)
        table = pa.table({"x": np.arange(length) + 0.5})
        pq.write_table(table, place / "0.parquet", row_group_size=1)
    scan = scan_series(tmp_path, id="recording", label="label")
    for found in (scan.read(), read_parts(scan)):
        assert found.ids.tolist() == ["r0", "r2", "r1"]
        assert found.labels.tolist() == ["a", "a", "b"]
        assert found.series.lengths.tolist() == [3, 2, 4]


def test_list_form_with_labels_in_names_of_folders(tmp_path):
    batch, labels, ids = DATA
    for number in range(2):
        place = tmp_path / f"label={number}"
        place.mkdir()
        rows = list_table(batch[number::2], labels[number::2], ids[number::2])
        pq.write_table(rows.drop_columns(["label"]), place / "0.parquet", row_group_size=4)
    found = scan_series(tmp_path, id="id", label="label").read()
    truth = {name: number % 2 for number, name in enumerate(ids.tolist())}
    assert dict(zip(found.ids.tolist(), found.labels.tolist(), strict=True)) == truth
    # The files hold only lists.
    for file in tmp_path.rglob("*.parquet"):
        pq.write_table(pq.ParquetFile(file).read().drop_columns(["id"]), file)
    assert scan_series(tmp_path, label="label").read().labels.tolist() == [0] * 6 + [1] * 6


@pytest.mark.parametrize("value", ["__HIVE_DEFAULT_PARTITION__", ""])
def test_a_folder_without_a_value_is_a_missing_value(value, tmp_path):
    folder = write_partitions(tmp_path / "data", ["label=a", f"label={value}"])
    scan = scan_series(folder, label="label")
    message = rf"label={value}.part-0.parquet, row 0 .*'label' \(label\) is missing"
    with pytest.raises(DataError, match=message):
        scan.read()
    assert len(scan.read(labels=False)) == 12


def test_a_column_and_a_folder_of_one_name_are_an_error(tmp_path):
    folder = write_partitions(tmp_path / "data", ["label=a", "label=b"])
    file = folder / "label=b" / "part-0.parquet"
    table = pq.ParquetFile(file).read()
    pq.write_table(table.append_column("label", pa.array(["b"] * table.num_rows)), file)
    message = r"label=b.part-0.parquet has a column 'label' and lies in a folder label=\.\.\."
    with pytest.raises(DataError, match=message):
        scan_series(folder).read()
    # Names of folders above the source do not matter.
    for source in (folder / "label=b", file, [file], str(folder / "label=b" / "*")):
        assert set(read_series(source).labels) == {"b"}


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        (["label=a", "other"], "columns must be the same for all files. Give a pattern"),
        ([".", "label=a"], "columns must be the same for all files. Give a pattern"),
        (["label=a", "day=3"], "columns must be the same for all files. Give a pattern"),
        (["label=a/label=b", "label=a/label=c"], r"lies in two folders label=\.\.\.: rename one"),
    ],
)
def test_folders_that_define_other_columns_are_an_error(keys, message, tmp_path):
    refused(write_partitions(tmp_path / "data", keys), message)


# -- Patterns


@pytest.mark.parametrize("form", [long_table, list_table], ids=["long", "lists"])
@pytest.mark.parametrize("pattern", ["part-*.parquet", "part-[0-9]*.parquet", "*", "**/*.parquet"])
def test_a_pattern_reads_the_files_that_match(pattern, form, tmp_path):
    write_parts(tmp_path / "data", form=form)
    given = tmp_path / "data" / pattern
    assert assert_complete(str(given)).name == str(given)


def test_a_pattern_may_be_relative_or_a_path_object(tmp_path, monkeypatch):
    write_parts(tmp_path / "data")
    monkeypatch.chdir(tmp_path)
    for pattern in ("data/*.parquet", "./data/part-*", "dat?/*.parquet", Path("data", "p*")):
        assert_complete(pattern)


def test_a_pattern_selects_files(tmp_path):
    write_parts(tmp_path)
    write_form(".csv", tmp_path, *DATA)
    assert_complete(str(tmp_path / "part-*"))
    pq.write_table(long_table(*make_data(4, seed=1)), tmp_path / "other.parquet")
    assert len(read_series(str(tmp_path / "o*.parquet"))) == 4


def test_a_file_comes_before_a_pattern_of_its_name(tmp_path):
    pq.write_table(long_table(*DATA), tmp_path / "part-[1].parquet")
    pq.write_table(long_table(*make_data(4, seed=1)), tmp_path / "part-1.parquet")
    assert_complete(str(tmp_path / "part-[1].parquet"))
    (tmp_path / "run[1]").mkdir()
    (tmp_path / "part-[1].parquet").rename(tmp_path / "run[1]" / "part-0.parquet")
    assert_complete(tmp_path / "run[1]")


def test_a_pattern_with_an_underscore_matches_underscores(tmp_path):
    write_parts(tmp_path, name="_part-{}.parquet")
    assert_complete(str(tmp_path / "_part-*.parquet"))


def test_patterns_without_files_to_read(tmp_path):
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
    refused(str(tmp_path / "*.csv"), f"matches {path}, which is not a Parquet file")
    first = write_parts(tmp_path)[0]
    refused(str(tmp_path / "*"), f"holds files of two kinds, {first} and {path}.*end in '.parquet'")


@pytest.mark.usefixtures("one_part_per_row_group")
def test_a_relative_pattern_in_a_folder_whose_name_has_wildcards(tmp_path, monkeypatch):
    # One row per file: the last series of a part goes on in files that the part has to find.
    write_parts(tmp_path / "run[1]", 40)
    monkeypatch.chdir(tmp_path / "run[1]")
    assert_complete("*.parquet")


# -- Lists


@pytest.mark.usefixtures("one_part_per_row_group")
@pytest.mark.parametrize("form", [long_table, list_table], ids=["long", "lists"])
def test_a_list_is_read_in_its_order(form, tmp_path):
    paths = write_parts(tmp_path, 12, form=form)
    assert assert_complete(paths).name == f"{paths[0]} and 11 more files"
    assert_complete(tuple(map(str, paths)))
    # In an order that is not that of the names.
    for number, path in enumerate(paths):
        path.rename(tmp_path / f"{(7 * number + 3) % 12}.parquet")
    assert_complete([tmp_path / f"{(7 * number + 3) % 12}.parquet" for number in range(12)])


def test_a_list_of_one_file(tmp_path):
    paths = write_parts(tmp_path, 1)
    assert assert_complete(paths).name == str(paths[0])


@pytest.mark.parametrize("number", [1, 3])
def test_files_of_a_list_must_have_the_same_schema(number, tmp_path):
    paths = write_parts(tmp_path)
    pq.write_table(pq.read_table(paths[number]).drop_columns(["c2"]), paths[number])
    for source in (paths, str(tmp_path / "*.parquet")):
        message = f"{paths[number].name} has no column 'c2', but .*part-0.parquet has it"
        with pytest.raises(DataError, match=message):
            scan_series(source).parts()


def test_a_series_repeated_in_a_list_is_an_error(tmp_path):
    paths = write_parts(tmp_path)
    with pytest.raises(DataError, match="is repeated after other series"):
        list(scan_series([*paths[2:], *paths[:2]]))


def test_lists_that_are_errors(tmp_path):
    paths = write_parts(tmp_path)
    same = os.path.join(tmp_path, ".", paths[0].name)
    refused([*paths, same], "part-0.parquet is in the list of files twice")
    refused([paths[0], paths[0]], "part-0.parquet is in the list of files twice:")
    (tmp_path / "link.parquet").symlink_to(paths[1])
    refused([*paths, tmp_path / "link.parquet"], "link.parquet is in the list of files twice")
    refused([paths[0], 3], "item 1 of the list of files is of type int, expected a path")
    refused([paths[0], tmp_path / "no.parquet"], "no.parquet, in the list", FileNotFoundError)
    refused([paths[0], tmp_path], "is a folder: a list must contain only Parquet files")
    text = tmp_path / "data.csv"
    text.write_text(csv_text(long_table(*DATA)))
    refused([text], "data.csv, in the list of files, is not a Parquet file")
    refused(["-"], "there is no such file", FileNotFoundError)
    refused([paths[0], "s3://bucket/part-1.parquet"], "Only local files can be read")
    refused(["japanese_vowels"], "there is no such file", FileNotFoundError)


# -- Any source


@pytest.mark.parametrize(
    "url",
    [
        "s3://bucket/part-0.parquet", "https://example.org/a.csv", "gs://bucket/part-*.parquet",
        "file:///data/a.parquet", Path("s3://bucket/part-0.parquet"),
    ],
)  # fmt: skip
def test_urls_are_an_error(url):
    message = re.escape(f"{url} is a URL. Only local files can be read")
    refused(url, f"{message}.*dask.dataframe")


def test_a_folder_may_be_named_like_a_url(tmp_path, monkeypatch):
    write_parts(tmp_path / "run:" / "data")
    monkeypatch.chdir(tmp_path)
    assert_complete("run:/data")


def test_a_scan_does_not_depend_on_the_working_directory(tmp_path, monkeypatch):
    # Many parts list the files again, in the other directory.
    monkeypatch.setattr("slts.tables.parquet_parts._PARTS", 1 << 20)
    (tmp_path / "elsewhere").mkdir()
    names = [f"data/{path.name}" for path in write_parts(tmp_path / "data", 12)]
    pq.write_table(long_table(*DATA), tmp_path / "data.parquet", row_group_size=5)
    write_form(".csv", tmp_path, *DATA)
    monkeypatch.chdir(tmp_path)
    sources = ["data", Path("data"), "data/*.parquet", names, "data.parquet", "./data.csv"]
    scans = [scan_series(source) for source in sources]
    monkeypatch.chdir(tmp_path / "elsewhere")
    for scan in scans:
        assert scan.n_bytes
        assert scan.read().series == DATA[0]
        assert read_parts(scan).series == DATA[0]


def test_messages_name_files_as_they_were_given(tmp_path, monkeypatch):
    paths = write_parts(tmp_path / "data")
    table = pq.read_table(paths[2])
    pq.write_table(replaced(table, "label", pa.nulls(table.num_rows, "string")), paths[2])
    pq.write_table(pq.read_table(paths[2]), tmp_path / "one.parquet")
    monkeypatch.chdir(tmp_path)
    for source, file in (("data", "data/part-2.parquet"), ("one.parquet", "one.parquet")):
        scan = scan_series(source, id="recording", label="label")
        assert scan.name == source
        assert all(part.name.startswith(source) for part in scan.parts())
        with pytest.raises(DataError, match=rf"^{file}, row 0 .*'label' \(label\) is missing"):
            scan.read()


# -- Types of columns


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
        for field in table.schema:
            if field.type == pa.string():
                table = replaced(table, field.name, change(table[field.name]))
        pq.write_table(table, path, row_group_size=5)
    assert pq.read_schema(paths[0]) != pq.read_schema(paths[1])
    # One file is not enough for a guess.
    id, label = ("id", "label") if form is list_table else ("recording", "label")
    assert_complete(paths, id=id, label=label)


def test_text_and_numbers_are_different_types(tmp_path):
    paths = write_parts(tmp_path)
    table = pq.read_table(paths[3])
    pq.write_table(replaced(table, "label", pa.array(np.ones(table.num_rows, int))), paths[3])
    message = r"part-3.parquet: column 'label' has type int64, but string"
    with pytest.raises(DataError, match=message):
        read_series(paths, id="recording", label="label")
