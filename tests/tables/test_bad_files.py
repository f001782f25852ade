import io
import re
import zipfile
from decimal import Decimal
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("pyarrow")
pytest.importorskip("pyarrow")

import pyarrow as pa
import pyarrow.parquet as pq

from slts import DataError, as_series, scan_series
from slts.tables import iter_series, read_series
from tests.tables.forms import (
    csv_text,
    list_table,
    long_table,
    make_data,
    write_compressed,
    write_folder,
    write_form,
)


def refused(path, message, **options):
    """Reading the whole and reading batches must raise an error that names the file."""
    with pytest.raises(DataError, match=message) as whole:
        read_series(path, **options)
    with pytest.raises(DataError, match=message) as batches:
        list(iter_series(path, batch_size=2, **options))
    for found in (whole, batches):
        assert path.name in str(found.value)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "is empty"),
        ("\n\n", "is empty|no line"),
        ("id,x\n", "has no rows"),
        ("id,x\ra,1\rb,2\r", "first line of .* is not CSV: lines must end with a line feed"),
        ("id,x\n0.5,1\n0.5,2\n1.5,3\n", "If it is 'id', although it holds decimal .*, use --id id"),
        ("id,x\na,1 m\na,2 m\nb,3 m\n", "Convert 'x', which holds text such as '1 m', to numbers"),
        ("1,2\n3,4\n", "begins with numbers, '1,2': its first line must name"),
        # Advice that fits: cells are too many, too few of many, or too few.
        ("id,x\na,1\na,1,5\n", "got 3: a,1,5. Put text .* in quotes, and write numbers with a dec"),
        ("id;x\na;1\na;1;5\n", "got 3: a;1;5. Put text that holds the delimiter in quotes$"),
        ("id,x\na,1\na\n", "line 3: Expected 2 columns, got 1: a. Complete the row, or drop it$"),
        ("a,1,2,3,4,5,6,7\nb,1,2,3,4,5,6,7,8\n", "Expected 8 .*, got 9.* in quotes"),
        ("a,1,2,3,9,5,6,7\nb,1,2,3,4,5,6,7,8\n", "Expected 8 .*, got 9.* same number of cells"),
        ("id x\na 1\na 2\n", "has one column, 'id x'. If .*, separate cells by comma"),
        ("a,1,2,3,4,5,6,7\nb,9,9\n", "line 2: Expected 8 .* end short ones with empty cells"),
        ("id,x\na,1\na,2\nb,NaN\nb,\n", "data.csv: series 'b': the series has no values"),
        ("id,x\na,1\na,inf\n", r"line 3 \(series 'a'\): 'x' is infinite"),
        ("id,x\na,1\na,2\n,3\n", r"line 4: 'id' \(id\) is missing"),
        ("id,label,x\na,u,1\na,,2\n", r"line 3 \(series 'a'\): 'label' \(label\) is missing"),
        ("id,label,x\na,u,1\na,v,2\n", r"'label' \(label\) varies in series 'a': 'u' and 'v'"),
        ("id,t,x\na,0,1\na,0,2\na,1,3\n", "time 0.0 occurs twice in the series with id 'a'"),
        ("id,t,x\na,0,1\na,,2\n", r"line 3 \(series 'a'\): 't' \(time\) is missing"),
    ],
)
def test_bad_csv(text, message, tmp_path):
    path = tmp_path / "data.csv"
    path.write_text(text, newline="")
    refused(path, message)


def test_a_word_among_numbers_is_found_far_from_the_start(tmp_path, monkeypatch):
    monkeypatch.setattr("slts.tables.text_files._BLOCK", 1 << 10)
    path = tmp_path / "data.csv"
    rows = "".join(f"a{i // 100},{i % 7}\n" for i in range(2_000))
    path.write_text(f"id,x\n{rows}b,oops\n")
    refused(path, r"line 2002: column 'x' holds a value that is not a number: .*'oops'")


def test_channels_must_be_numbers(tmp_path):
    path = tmp_path / "data.csv"
    path.write_text("id,x,c\na,1,red\na,2,blue\n")
    refused(path, "channel 'c' holds text such as 'red', expected numbers", channels=["x", "c"])
    assert read_series(path).columns.ignored == ("c",)


@pytest.mark.parametrize("cell", ["?", "1.2.3", "None", " "])
def test_one_bad_cell_does_not_remove_a_channel(cell, tmp_path):
    path = tmp_path / "data.csv"
    rows = "".join(f"a{i // 5},{i % 5},{cell if i == 7 else i},{i}\n" for i in range(20))
    path.write_text(f"id,t,x,y\n{rows}")
    place = rf"data.csv, line 9: (column|channel) 'x' holds {re.escape(repr(cell))}, but numbers"
    refused(path, f"{place}.*--channels")
    # Without the advice to name other channels.
    refused(path, f"{place}.*or drop the row$", channels=["x", "y"])
    assert read_series(path, channels=["y"]).columns.ignored == ("x",)
    table = pa.table({"id": ["a"] * 5, "x": ["1", cell, "2", "3", "oops"], "y": [1.0] * 5})
    pq.write_table(table, tmp_path / "data.parquet")
    refused(
        tmp_path / "data.parquet", rf"data.parquet, row 1: column 'x' holds {re.escape(repr(cell))}"
    )


def test_one_bad_time_is_named(tmp_path):
    path = tmp_path / "data.csv"
    path.write_text("id,t,x\na,0,1\na,1,2\na,late,3\nb,0,4\nb,1,5\n")
    refused(path, r"line 4: column 't' holds 'late', but numbers in 4 of the first 5 rows")
    refused(path, r"line 4: column 't' \(time\) holds 'late'", time="t")


@pytest.mark.parametrize("cell", ["inf", "nan"])
def test_times_are_finite(cell, tmp_path):
    rows = [f"{s},{cell if (s, t) == ('b', 1) else t},{t}" for s in "ab" for t in range(4)]
    path = tmp_path / "data.csv"
    path.write_text("\n".join(["id,time,x", *rows]))
    expected = "is missing" if cell == "nan" else f"holds {cell}, expected finite numbers"
    refused(path, rf"line 7 \(series 'b'\): 'time' \(time\) {expected}")
    cells = [row.split(",") for row in rows]
    texts = {"id": [c[0] for c in cells], "time": [c[1] for c in cells], "x": range(8)}
    pq.write_table(pa.table(texts), tmp_path / "data.parquet")
    expected = f"holds '{cell}', expected text such as 0.5"
    refused(tmp_path / "data.parquet", rf"row 5 \(series 'b'\): 'time' \(time\) {expected}")


@pytest.mark.usefixtures("tables_in_parts")
def test_a_repeated_series_is_an_error_in_batches_only(tmp_path):
    path = tmp_path / "data.csv"
    path.write_text("id,x\na,1\na,2\nb,3\na,4\n")
    assert read_series(path).series.lengths.tolist() == [3, 1]
    with pytest.raises(DataError, match=r"data.csv, line 5: series 'a' is repeated.*by 'id'"):
        list(iter_series(path))


@pytest.mark.parametrize("ids", [[-1, -2], [0, 2**61 - 1], [-2, -1, 1, 2]])
def test_ids_with_equal_python_hashes_are_distinguished(ids, tmp_path):
    path = tmp_path / "data.parquet"
    repeated = [id for id in ids for _ in range(2)]
    pq.write_table(pa.table({"id": repeated, "x": np.arange(len(repeated), dtype=float)}), path)
    found = list(iter_series(path, batch_size=1))
    assert [part.ids.tolist() for part in found] == [[id] for id in ids]


@pytest.mark.usefixtures("tables_in_parts")
@pytest.mark.parametrize("batch_size", [50, 10_000])
def test_a_series_that_is_repeated_much_later_is_found(tmp_path, batch_size):
    ids = np.repeat(np.random.default_rng(0).permutation(10_000), 2)
    ids = np.append(ids, ids[30])
    path = tmp_path / "data.parquet"
    pq.write_table(pa.table({"id": ids, "x": np.arange(len(ids)) % 3}), path, row_group_size=999)
    with pytest.raises(DataError, match=rf"row 20000: series {ids[30]} is repeated"):
        list(iter_series(path, batch_size=batch_size))


def test_mixed_rows_without_a_time_get_a_note(tmp_path):
    path = tmp_path / "data.csv"
    path.write_text("id,x\na,1\nb,2\na,3\nb,1\n")
    (note,) = read_series(path).notes
    assert "the steps of a series are in the order of its rows" in note
    path.write_text("id,x\na,1\na,3\nb,2\nb,1\n")
    assert read_series(path).notes == ()


def test_steps_out_of_order_are_sorted_with_a_note(tmp_path):
    path = tmp_path / "data.csv"
    path.write_text("id,t,x\na,1,10\na,0,20\nb,0,30\n")
    for found in (read_series(path), *iter_series(path)):
        assert found.series.values[:, 0].tolist() == [20, 10, 30]
        assert found.notes == ("steps were sorted by 't': the rows are not in order of time",)
    path.write_text("id,t,x\na,5,10\na,6,20\nb,0,30\n")
    assert read_series(path).notes == ()


@pytest.mark.parametrize("suffix", [".gz", ".bz2", ".xz", ".zst"])
@pytest.mark.parametrize("base", [".csv", ".ts"])
def test_damaged_compression(suffix, base, tmp_path):
    whole = write_form(base + suffix, tmp_path, *make_data(200))
    content = whole.read_bytes()
    path = tmp_path / f"cut{base}{suffix}"
    path.write_bytes(content[: len(content) // 2])
    refused(path, "damaged|cut off|truncated")
    path.write_bytes(b"not compressed at all, only named so")
    refused(path, "damaged")


def test_other_encodings(tmp_path):
    path = tmp_path / "data.csv"
    for encoding in ("utf-16", "utf-16-le", "utf-16-be"):
        path.write_bytes("id,t,x\na,0,1\n".encode(encoding))
        refused(path, "data.csv is UTF-16 text: save it in UTF-8")
    path.write_bytes("id,größe\na,1\n".encode("latin-1"))
    refused(path, "data.csv, line 1: the text is not UTF-8. It may be Windows-1252 or Latin-1")
    path.write_bytes("id,name,x\na,größe,1\nb,b,2\n".encode("latin-1"))
    refused(path, "data.csv: column 'name' holds text that is not UTF-8. It may", label="name")


def test_values_in_the_first_line_are_no_names(tmp_path):
    path = tmp_path / "data.csv"
    path.write_text("a,0,u,1.5\na,1,u,2.5\nb,0,v,3.5\nb,1,v,0.5\n")
    refused(path, "the first line must name the columns, .* 'a' is also in the same column")
    path.write_text("My table\nid,x\na,1\n")
    refused(path, "The first line, 'My table', must name the columns")
    path.write_text("x\n1\n2\n")
    (tmp_path / "labels.csv").write_text("data.csv,u\nother.csv,v\n")
    refused(tmp_path, "labels.csv: the first line must name the columns, file and label")
    # Steps may be named by numbers.
    steps = "0,1,2,3,4,5,6,7"
    path.write_text("\n".join([f"label,{steps}", *(f"{c},{steps}" for c in "uvuvuvuv")]))
    assert read_series(path).columns.wide


def test_decimal_commas_need_another_delimiter(tmp_path):
    path = tmp_path / "data.csv"
    path.write_text('id,x\na,"1,5"\na,"2,5"\nb,"3,5"\nb,"0,5"\n')
    refused(path, "column 'x' holds numbers as text such as '1,5': convert .* decimal points")


def test_other_files_that_are_named_csv_are_not_text(tmp_path):
    path = tmp_path / "data.csv"
    pq.write_table(pa.table({"id": [1, 1], "x": [1.0, 2.0]}), path)
    refused(path, "data.csv is not text: save the table as CSV")


def test_a_damaged_row_group_is_named(tmp_path):
    path = tmp_path / "data.parquet"
    table = long_table(*make_data(400))
    pq.write_table(table, path, row_group_size=500, compression="zstd")
    group = pq.ParquetFile(path).metadata.row_group(2).column(3)
    content = bytearray(path.read_bytes())
    start = group.dictionary_page_offset or group.data_page_offset
    content[start : start + group.total_compressed_size] = b"\x00" * group.total_compressed_size
    path.write_bytes(content)
    refused(path, "row group 2 cannot be read")
    path.write_bytes(b"PAR1 nonsense")
    refused(path, "may be damaged")


def test_a_footer_that_contradicts_itself_is_damaged(tmp_path):
    path = tmp_path / "data.parquet"
    pq.write_table(pa.table({"id": [1, 1], "value": [1.0, 2.0]}), path)
    schema, column, *rest = path.read_bytes().split(b"value")
    path.write_bytes(b"value".join([schema + b"value" + column + b"valu_" + rest[0], *rest[1:]]))
    refused(path, "the file may be damaged: its row groups have no column 'value'")


def test_repeated_names_beside_lists_are_an_error(tmp_path):
    path = tmp_path / "data.parquet"
    columns = [pa.array([1]), pa.array([[1.0, 2.0]]), pa.array([2])]
    pq.write_table(pa.Table.from_arrays(columns, names=["id", "x", "id"]), path)
    refused(path, "two columns named 'id'")


def test_a_folder_of_parquet_has_one_schema(tmp_path):
    batch, labels, ids = make_data()
    folder = write_form("parquet folder", tmp_path, batch, labels, ids)
    table = long_table(batch, labels, ids)
    other = folder / "part-3.parquet"
    pq.write_table(table.drop_columns(["c2"]), other)
    refused_in(folder, "part-3.parquet has no column 'c2', but .*part-0.parquet has it")
    position = table.schema.get_field_index("recording")
    pq.write_table(table.set_column(position, "recording", pa.array(range(table.num_rows))), other)
    refused_in(folder, "column 'recording' has type int64, but string in .*part-0.parquet")


def refused_in(folder, message):
    with pytest.raises(DataError, match=message):
        read_series(folder)
    with pytest.raises(DataError, match=message):
        list(iter_series(folder))


def test_numbers_of_another_width_are_one_schema(tmp_path):
    batch, labels, ids = make_data()
    folder = tmp_path / "parts"
    folder.mkdir()
    table = long_table(batch, labels, ids)
    cut = int(batch.offsets[6])
    pq.write_table(table.slice(0, cut), folder / "a.parquet")
    position = table.schema.get_field_index("c1")
    narrow = table.slice(cut).set_column(position, "c1", table["c1"][cut:].cast("float"))
    pq.write_table(narrow, folder / "b.parquet")
    assert np.allclose(read_series(folder).series.values, batch.values, atol=1e-6)


def test_labels_that_are_missing_in_places(tmp_path):
    batch, labels, ids = make_data()
    table = long_table(batch, labels, ids)
    position = table.schema.get_field_index("label")
    gaps = table["label"].to_pylist()
    gaps[5] = None
    path = tmp_path / "data.parquet"
    pq.write_table(table.set_column(position, "label", pa.array(gaps)), path)
    refused(path, r"row 5 \(series '.*'\): 'label' \(label\) is missing", label="label")
    assert len(read_series(path, labels=False, label="label")) == len(batch)


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ({"c1": None}, "row 12: 'c1' is missing"),
        ({"c2": []}, "row 12: 'c2' has no steps"),
        ({"c2": [1.0]}, "row 12: 'c2' has 1 steps and 'c1' has 2"),
        ({f"c{k}": [None, None] for k in (1, 2, 3)}, "row 12: the series has no values"),
        ({"c3": [1.0, float("inf")]}, "row 12: step 1 of 'c3' is infinite"),
        ({"label": None}, r"row 12 \(series 'z'\): 'label' \(label\) is missing"),
    ],
)
def test_bad_lists(row, message, tmp_path):
    table = list_table(*make_data())
    good = {"id": "z", "label": "low", "c1": [1.0, 2.0], "c2": [1.0, 2.0], "c3": [1.0, 2.0]}
    extra = pa.Table.from_pylist([good | row], schema=table.schema)
    path = tmp_path / "data.parquet"
    pq.write_table(pa.concat_tables([table, extra]), path, row_group_size=5)
    refused(path, message)


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ({"Z": np.ones(3)}, "holds Z: expected X"),
        ({"X": np.ones((2, 3)), "y": np.ones(3)}, r"y has shape \(3,\), expected \(2,\)"),
        ({"X": np.array([np.ones(2), np.ones(3)], dtype=object)}, "could run code"),
        ({"X": np.full((2, 1, 3), np.nan)}, "series 0: the series has no values"),
        ({"X": np.ones((2, 1, 3)), "lengths": [1, 4]}, "2 integers from 1 to 3"),
        ({"values": np.ones((4, 1)), "offsets": [0, 9]}, "offsets must run"),
    ],
)
def test_bad_npz(arrays, message, tmp_path):
    path = tmp_path / "data.npz"
    np.savez(path, **arrays)
    refused(path, message)


@pytest.mark.parametrize("value", ["", None])
def test_empty_text_is_a_missing_label(value, tmp_path):
    batch, labels, ids = make_data()
    labels = labels.astype(object)
    labels[3] = value
    (tmp_path / "lists").mkdir()
    for table, name in ((long_table, "data.parquet"), (list_table, "lists/data.parquet")):
        path = tmp_path / name
        pq.write_table(table(batch, labels, ids), path)
        refused(path, r"data.parquet, row \d+.*\(label\) is missing")
        assert len(read_series(path, labels=False)) == len(batch)
    path = tmp_path / "data.npz"
    arrays = {"X": np.ones((4, 1, 5)), "y": np.array(["a", "b", "a", ""])}
    if value is None:
        arrays["y"] = np.array([1.0, 2.0, 1.0, np.nan])
    np.savez(path, **arrays)
    refused(path, r"y\[3\] is missing: fill it in")
    assert len(read_series(path, labels=False)) == 4


@pytest.mark.parametrize("form", [long_table, list_table], ids=["long", "lists"])
@pytest.mark.parametrize(
    ("dtype", "kind"),
    [(pa.float16(), "f"), (pa.decimal128(10, 2), "f"), (pa.decimal128(5, 0), "i")],
    ids=str,
)
def test_labels_stored_as_other_numbers(dtype, kind, form, tmp_path):
    batch, _, ids = make_data()
    numbers = np.arange(len(batch)) % 3
    table = form(batch, numbers, ids)
    name = "label" if form is list_table else "label"
    column = table[name].cast(pa.float32()).cast(dtype)
    path = tmp_path / "data.parquet"
    pq.write_table(table.set_column(table.column_names.index(name), name, column), path)
    for found in (read_series(path, label=name), next(iter_series(path, label=name))):
        assert found.labels.dtype.kind == kind
        assert found.labels.tolist() == numbers.tolist()


def test_identifiers_of_many_digits_are_distinguished(tmp_path):
    # float64 does not distinguish them.
    ids = [Decimal(12345678901234567890 + k) for k in range(3)]
    column = pa.array(np.repeat(ids, 2).tolist(), pa.decimal128(38, 0))
    pq.write_table(pa.table({"id": column, "x": [0.0, 1.0] * 3}), tmp_path / "data.parquet")
    found = read_series(tmp_path / "data.parquet", id="id")
    assert found.ids.tolist() == ids


def test_files_that_are_not_npz(tmp_path):
    path = tmp_path / "data.npz"
    path.write_bytes(b"no zip")
    refused(path, "not an .npz file, or is damaged$")
    np.save(tmp_path / "single.npy", np.ones(3))
    (tmp_path / "single.npy").rename(path)
    refused(path, "single array")
    np.savez(path, X=np.ones((2, 1, 5)))
    content = path.read_bytes()
    # The list of the archive's files is not at the end of the file, or its entry is somewhere else,
    # or its name is not UTF-8.
    entry = content.rindex(b"PK\x01\x02")
    for damaged in (
        content.replace(b"PK\x01\x02", b"PK\x01\x03"),
        content[40:],
        content[: entry + 42] + b"\xff" * 4 + content[entry + 46 :],
        content[: entry + 8] + b"\x00\x08" + content[entry + 10 :].replace(b"X.npy", b"\xff.npy"),
    ):
        path.write_bytes(damaged)
        refused(path, "not an .npz file, or is damaged")
        assert scan_series(path).n_bytes


def test_an_npz_file_beyond_memory_is_not_called_damaged(tmp_path):
    path, header = tmp_path / "data.npz", io.BytesIO()
    shape = {"descr": "<f8", "fortran_order": False, "shape": (2**44, 1, 1)}
    np.lib.format.write_array_header_1_0(header, shape)
    with zipfile.ZipFile(path, "w") as file:
        file.writestr("X.npy", header.getvalue())
    refused(path, r"does not fit into memory, or .*: Unable to allocate 128. TiB")


@pytest.mark.parametrize("name", ["data.parquet.gz", "data.npz.gz", "data.feather.zst"])
def test_only_text_files_may_be_compressed_as_a_whole(name, tmp_path):
    path = tmp_path / name
    path.write_bytes(b"anything")
    refused(path, r"compressed .* files cannot be read. Decompress it first")


def test_bad_folders(tmp_path):
    batch, labels, ids = make_data(3)
    folder = write_folder(tmp_path / "folder", batch, labels, ids)
    listed = folder / "labels.csv"
    good = listed.read_text()
    for text, message in (
        (good + "r9.csv,low\n", "names 'r9.csv', which is not in the folder"),
        (good.replace("r001.csv,low\n", ""), "'r001.csv' has no label"),
        (good + "r001.csv,low\n", "line 5: 'r001.csv' is listed twice"),
        (good + "r001.csv\n", "line 5: Expected 2 columns, got 1"),
        (good + "r001.csv,\n", r"line 5 \(series 'r001.csv'\): 'label' \(label\) is missing"),
        ("file\nr001.csv\n", "two columns"),
    ):
        listed.write_text(text)
        refused_in(folder, message)
    listed.write_text(good)
    (folder / "r002.csv").write_text("c1,c2\n1,2\n")
    refused_in(folder, "r002.csv has no column 'c3'")
    (folder / "r002.csv").write_text("c1,c2,c3\n")
    refused_in(folder, "r002.csv has no rows")
    (folder / "r002.csv").write_text("c1,c2,c3\n1,2,x\n")
    refused_in(folder, "r002.csv: channel 'c3' holds text")


def test_unknown_paths_and_suffixes(tmp_path):
    with pytest.raises(FileNotFoundError, match="no such file, folder or data set"):
        read_series(tmp_path / "absent.csv")
    (tmp_path / "data.xlsx").write_bytes(b"")
    refused(tmp_path / "data.xlsx", r"unknown suffix; expected \.ts.* save other tables as CSV")
    with pytest.raises(DataError, match="neither Parquet"):
        read_series(tmp_path)
    with pytest.raises(DataError, match="expected train or test after the colon, got 'dev'"):
        read_series("japanese_vowels:dev")


@pytest.mark.parametrize(
    ("wrong", "near"),
    [("trian.csv", "train.csv"), ("trian.parquet", "train.parquet"), ("tests", "test"),
     ("trial.xls", "train.csv"), ("model.slst", None)],
)  # fmt: skip
def test_similar_names_of_data_are_suggested(wrong, near, tmp_path):
    for name in ("train.html", "train.slts", "train.parquet", "train.csv", "model.slts"):
        (tmp_path / name).write_bytes(b"")
    (tmp_path / "test").mkdir()
    hint = r"data sets\)$" if near is None else rf"Did you mean {near}\?$"
    with pytest.raises(FileNotFoundError, match=hint):
        read_series(tmp_path / wrong)


@pytest.mark.parametrize("form", [".ts", ".npz"])
def test_files_without_named_columns(form, tmp_path):
    path = write_form(form, tmp_path, *make_data())
    refused(path, r"has no named columns, so --id \(id=\) cannot be used", id="recording")


def test_bad_ts_names_the_line(tmp_path):
    path = tmp_path / "data.ts"
    path.write_text("@classLabel true a\n@data\n1,2:a\n1,x:a\n")
    refused(path, "line 4")
    write_compressed(path, b"\xff\xfe\x00")
    refused(path, "UTF-8")


@pytest.mark.parametrize("kind", [str, Path])
def test_a_path_instead_of_series_is_explained(kind, tmp_path):
    path = write_form(".parquet", tmp_path, *make_data())
    message = (
        r"X is of type .*Read a file with slts.tables.read_series, or scan it with slts.scan_series"
    )
    with pytest.raises(DataError, match=message):
        as_series(kind(path))


def test_missing_extra_is_named(tmp_path, monkeypatch):
    path = tmp_path / "data.csv"
    path.write_text(csv_text(long_table(*make_data())))

    def absent(name):
        raise ModuleNotFoundError(f"No module named {name!r}", name=name)

    monkeypatch.setattr("slts.extras.importlib.import_module", absent)
    with pytest.raises(ImportError, match=r"slts\[io\]"):
        read_series(path)
