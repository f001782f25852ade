"""Parquet files read as one table: folders, patterns and lists, and what is refused."""

import os
import pickle
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("pyarrow")
pytest.importorskip("narwhals")

import pyarrow.parquet as pq

from slts import DataError
from slts.files import iter_series, read_series, scan_series
from slts.files.dataset import join
from slts.files.sources import absolute
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


def assert_is_the_whole(source):
    """Every way of reading gives all series in order."""
    scan = scan_series(source)
    parts = [pickle.loads(pickle.dumps(part)) for part in scan.parts()]
    in_parts = join(piece for part in parts for piece in part.batches(labels=True, batch_size=3))
    for found in (
        read_series(source),
        join(iter_series(source, batch_size=4)),
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


def test_a_folder_of_partitions_is_read(tmp_path):
    paths = write_parts(tmp_path / "data", 3)
    for day, path in enumerate(paths):
        place = tmp_path / "data" / f"_day={day}" / path.name
        place.parent.mkdir()
        path.rename(place)
    assert_is_the_whole(tmp_path / "data")


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
        str(tmp_path / "part-*.parquet"), r"part-\*.parquet: no Parquet file", FileNotFoundError
    )
    (tmp_path / "notes.txt").write_text("")
    refused(str(tmp_path / "n*"), "no Parquet file matches this pattern", FileNotFoundError)
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


def test_paths_that_mean_the_same_in_other_folders(tmp_path, monkeypatch):
    (tmp_path / "elsewhere").mkdir()
    write_parts(tmp_path / "data", 3)
    monkeypatch.chdir(tmp_path)
    names = [f"data/part-{number}.parquet" for number in range(3)]
    sources = [absolute(source) for source in ("data", Path("data"), "data/*.parquet", names)]
    monkeypatch.chdir(tmp_path / "elsewhere")
    for source in sources:
        assert_is_the_whole(source)
    assert absolute("japanese_vowels:train") == "japanese_vowels:train"


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
