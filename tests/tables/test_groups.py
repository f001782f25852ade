"""The column of groups: one value per series, from tables, lists and folders."""

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from slts import DataError
from slts.tables import read_series, scan_series
from tests.tables.forms import csv_text, list_table, long_table, make_data, read_parts, write_folder

SUBJECTS = np.array([f"s{i // 3}" for i in range(12)])


def with_subject(table, batch, subjects=SUBJECTS):
    rows = np.repeat(np.arange(len(batch)), batch.lengths) if "t" in table.column_names else ...
    return table.append_column("subject", pa.array(subjects[rows]))


@pytest.fixture
def data():
    return make_data()


def sources(data, folder):
    batch, labels, ids = data
    table, lists = long_table(*data), list_table(*data)
    text = folder / "data.csv"
    text.write_text(csv_text(with_subject(table, batch)))
    rows = with_subject(table, batch)
    pq.write_table(rows, folder / "data.parquet", row_group_size=7)
    pq.write_table(with_subject(lists, batch), folder / "lists.parquet")
    files = write_folder(folder / "folder", batch, labels, ids)
    lines = (files / "labels.csv").read_text().splitlines()
    more = [f"{line},{subject}" for line, subject in zip(lines[1:], SUBJECTS, strict=True)]
    (files / "labels.csv").write_text("\n".join([f"{lines[0]},subject", *more]) + "\n")
    unsorted = folder / "unsorted.csv"
    by_time = np.argsort(rows["t"].to_numpy(), kind="stable")
    unsorted.write_text(csv_text(rows.take(by_time)))
    return {
        "csv": text, "parquet": folder / "data.parquet", "lists": folder / "lists.parquet",
        "folder": files, "unsorted": unsorted, "frame": rows.to_pandas(),
    }  # fmt: skip


@pytest.mark.parametrize("form", ["csv", "parquet", "lists", "folder", "unsorted", "frame"])
def test_every_table_has_groups(form, data, tmp_path):
    source = sources(data, tmp_path)[form]
    scan = scan_series(source, groups="subject")
    found = scan.read()
    assert (found.groups.tolist(), found.labels.tolist()) == (SUBJECTS.tolist(), data[1].tolist())
    assert "groups=" in str(scan.columns)
    assert scan.columns.channels == data[0].channel_names
    assert np.array_equal(found.series.values, data[0].values)
    if form != "unsorted":
        assert read_parts(scan).groups.tolist() == SUBJECTS.tolist()
    # Groups are read with the labels.
    assert scan.read(labels=False).groups is None
    channels = list(data[0].channel_names)
    assert scan_series(source, channels=channels).read().groups is None


def test_columns_that_are_not_groups(data, tmp_path):
    batch = data[0]
    table = with_subject(long_table(*data), batch)
    path = tmp_path / "data.csv"
    varying = table["subject"].to_pylist()
    varying[int(batch.offsets[3]) + 1] = "s7"
    path.write_text(csv_text(table.set_column(6, "subject", [varying])))
    message = r"data.csv: 'subject' \(groups\) varies in series 'r003': 's1' and 's7'. It must"
    with pytest.raises(DataError, match=message):
        read_series(path, groups="subject")
    varying[int(batch.offsets[3]) + 1] = ""
    path.write_text(csv_text(table.set_column(6, "subject", [varying])))
    with pytest.raises(DataError, match=r"\(series 'r003'\): 'subject' \(groups\) is missing"):
        read_series(path, groups="subject")


def test_groups_of_series_on_a_grid_of_time(data, tmp_path):
    path = tmp_path / "data.csv"
    table = with_subject(long_table(*data), data[0])
    path.write_text(csv_text(table))
    found = read_series(path, groups="subject", every=2)
    assert found.groups.tolist() == SUBJECTS.tolist()
    assert found.series.lengths.sum() < data[0].lengths.sum()


def test_groups_of_a_folder_are_a_column_of_its_labels(data, tmp_path):
    folder = sources(data, tmp_path)["folder"]
    with pytest.raises(
        DataError, match=r"no column 'person' \(groups\). The columns are file, label"
    ):
        read_series(folder, groups="person")
    lines = (folder / "labels.csv").read_text()
    (folder / "labels.csv").write_text(lines.replace("high,s0", "high,", 1))
    with pytest.raises(DataError, match=r"labels.csv, line 2 .*: 'subject' \(groups\) is missing"):
        read_series(folder, groups="subject")
    (folder / "labels.csv").unlink()
    with pytest.raises(DataError, match=r"no labels.csv, so it has no groups"):
        read_series(folder, groups="subject")
