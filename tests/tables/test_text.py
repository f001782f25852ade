"""CSV: delimiters, decimals, headers, blocks and errors; wide files of the UCR archive."""

import numpy as np
import pyarrow as pa
import pytest

from slts import DataError
from slts.tables import iter_series, read_series, scan_series
from slts.tables.text import missing_cells
from tests.tables.forms import write_compressed


def written(path, text):
    path.write_text(text, encoding="utf-8")
    return path


def test_semicolons_decimal_commas_and_a_byte_order_mark(tmp_path):
    path = written(tmp_path / "a.csv", "\ufeffid; t ;x;y\na;0;1,5;2\na;1;-,5;3\n")
    dataset = read_series(path, channels="x,y")
    assert dataset.series.values.tolist() == [[1.5, 2.0], [-0.5, 3.0]]
    assert dataset.columns.time == "t"


@pytest.mark.parametrize("delimiter", [",", ";", "\t", "|"])
def test_delimiters(delimiter, tmp_path):
    lines = ["id,x", "a,1.5", "a,2", "b,0"]
    path = written(tmp_path / "a.csv", "\r\n".join(lines).replace(",", delimiter))
    assert read_series(path).series.values[:, 0].tolist() == [1.5, 2.0, 0.0]


def test_cells_that_are_missing_values(tmp_path):
    assert {"", "NA", "N/A", "NaN", "null"} <= {*missing_cells()}
    rows = "".join(f"a,1,{cell}\n" for cell in missing_cells())
    path = written(tmp_path / "a.csv", f"id,x,y\na,0,0.5\n{rows}a,2,7\n")
    values = read_series(path, channels="x,y").series.values[:, 1]
    assert np.isnan(values[1:-1]).all()
    assert (values[0], values[-1]) == (0.5, 7.0)


@pytest.mark.parametrize(("text", "message"), [
    ("", "a.csv is empty"), ("id,x\n", "a.csv has no rows"),
    ("id\na\nb\n", "a.csv has one column, 'id'"),
    ("id,x,x\na,1,2\n", "a.csv has two columns named 'x'"),
    ("id,x\na,1\na,1,5\n", "line 3 has 3 cells, expected 2"),
    ("id,x\na,1\na\n", "line 3 has 1 cells, expected 2"),
    ("id,x\na,1\na,?\nb,2\nb,3\n", r"line 3: 'x' holds '\?', expected a number"),
    ("id,x\na,1 m\na,2 m\n", "'x' holds text, such as '1 m'"),
    ("id,t,x\na,0,1\na,,2\na,2,1\n", r"line 3 \(series 'a'\): 't' \(time\) is missing"),
    ("id,t,x\na,0,1\na,0,2\na,1,3\n", r"time 0.* occurs twice in series 'a'"),
    ("id,t,x\na,0,1\na,inf,2\na,2,1\n", r"line 3 \(series 'a'\): 't' \(time\) holds .*inf"),
    ("1,2,3\n4,5,6\n", "begins with numbers, '1,2,3': its first line must name the columns"),
    ('id,x\na,"1,5"\na,"2,5"\n',
     r"line 2: 'x' holds numbers with separators, such as '1,5', expected a number with a"),
    ("id,x\0\na,1\n", "is not text in UTF-8"),
    ("id,x\na,1\na,2\nb,NaN\nb,\n", r"series 'b': the series has no values"),
])  # fmt: skip
def test_bad_files(text, message, tmp_path):
    with pytest.raises(DataError, match=message):
        read_series(written(tmp_path / "a.csv", text))


@pytest.fixture
def small_blocks(monkeypatch):
    """Files of a few kilobytes have many blocks."""
    monkeypatch.setattr("slts.tables.text._BLOCK", 1 << 14)


def long_rows(n):
    return "".join(f"series {i // 100},{i % 100},{i * 7919 % 97}\r\n" for i in range(n))


@pytest.mark.usefixtures("tables_in_parts", "small_blocks")
@pytest.mark.parametrize("suffix", ["", ".gz", ".bz2", ".zst"])
def test_a_large_file_is_read_in_blocks(suffix, tmp_path):
    path = tmp_path / f"data.csv{suffix}"
    write_compressed(path, f"\ufeffid,t,x\r\n{long_rows(10_000)}".encode())
    values = [i * 7919 % 97 for i in range(10_000)]
    assert read_series(path).series.values[:, 0].tolist() == values
    batches = list(iter_series(path, batch_size=7))
    assert sum(map(len, batches)) == 100
    assert suffix != "" or batches[0].share < 0.7


@pytest.mark.usefixtures("small_blocks")
@pytest.mark.parametrize(("line", "message"), [
    ("last,0,oops", r"line 10002: 'x' holds 'oops', expected a number"),
    ("last,0,-inf", r"line 10002 \(series 'last'\): 'x' is infinite"),
    ("last,soon,1", r"line 10002 \(series 'last'\): 't' \(time\) holds 'soon', expected"),
    ("last,0,1,2", r"line 10002 has 4 cells, expected 3"), ("last,0,0.25", None),
])  # fmt: skip
def test_a_line_far_from_the_beginning_is_named(line, message, tmp_path):
    path = written(tmp_path / "data.csv", f"id,t,x\n{long_rows(10_000)}{line}\n")
    if message is None:
        # An integer at first may be a fraction later.
        assert read_series(path).series.values[-1, 0] == 0.25
    else:
        with pytest.raises(DataError, match=message):
            read_series(path)


@pytest.mark.usefixtures("small_blocks")
def test_a_number_among_booleans_is_named(tmp_path):
    rows = "".join(f"a,{str(k % 3 == 0).lower()}\n" for k in range(10_000))
    path = written(tmp_path / "a.csv", f"id,x\n{rows}a,0.5\n")
    with pytest.raises(DataError, match=r"line 10002: 'x' holds '0.5', expected true or false"):
        read_series(path)


def ucr(path, labels, last=False, n_steps=12, delimiter=","):
    """A file without header, label first; short series end with empty cells."""
    rng = np.random.default_rng(0)
    rows = []
    for k, label in enumerate(labels):
        cells = [f"{value:.4f}" for value in rng.normal(size=n_steps - k % 3)] + [""] * (k % 3)
        rows.append(delimiter.join([*cells, label] if last else [label, *cells]))
    return written(path, "\n".join(rows))


@pytest.mark.parametrize("suffix", [".csv", ".tsv"])
@pytest.mark.parametrize("labels", [["1", "2", "-1"] * 3, ["1.0", "2.0", "1.0"] * 3, list("uvw")])
def test_files_of_the_ucr_archive(suffix, labels, tmp_path):
    delimiter = "\t" if suffix == ".tsv" else ","
    path = ucr(tmp_path / f"Coffee{suffix}", labels, delimiter=delimiter)
    scan = scan_series(path)
    assert str(scan.columns) == "label=0, one series per row, steps=1..12"
    dataset = scan.read()
    assert dataset.labels.tolist() == [label.removesuffix(".0") for label in labels]
    assert dataset.series.lengths.tolist() == [12 - k % 3 for k in range(len(labels))]
    assert dataset.series.channel_names is None


def test_another_place_of_the_label_must_be_named(tmp_path):
    path = ucr(tmp_path / "a.csv", list("uvuv"), last=True)
    with pytest.raises(DataError, match=r"no header.*label='12' \(--label 12\).*channels='0..12'"):
        read_series(path)
    assert read_series(path, label="12").labels.tolist() == list("uvuv")
    path = ucr(tmp_path / "b.csv", ["0.5", "0.25"])
    with pytest.raises(DataError, match="first column is not a label"):
        read_series(path)
    assert read_series(path, channels="0..12").series.lengths.tolist() == [13, 12]


def test_a_wide_file_with_names(tmp_path):
    steps = [str(k * 0.5) for k in range(9)]
    lines = [",".join(["id", "label", *steps]), "a,u," + "1,2,3,4,5,6,7,8,9", "b,v,1,2,,4,,,,,"]
    dataset = read_series(written(tmp_path / "a.csv", "\n".join(lines)))
    assert (dataset.columns.channels, dataset.series.lengths.tolist()) == (tuple(steps), [9, 4])
    assert np.isnan(dataset.series[1][0, 2])
    for cell, message in (("inf", r"line 3 \(series 'b'\): '0.5' is inf"), ("x", "line 3: '0.5'")):
        lines[2] = f"b,v,1,{cell},,4,,,,,"
        more = "\n".join([*lines, "c,u,1,2,3,,,,,,", "d,u,1,2,3,,,,,,"])
        with pytest.raises(DataError, match=message):
            read_series(written(tmp_path / "a.csv", more))


@pytest.mark.parametrize(("times", "seconds"), [
    (["2024-03-01 00:00:02", "2024-03-01 00:00:00.5"], [0.0, 1.5]),
    (["2024-03-01T00:00:02Z", "2024-03-01T00:00:00Z"], [0.0, 2.0]),
    (["2024-03-01T01:00:00+01:00", "2024-03-01T00:30:00+02:00"], [0.0, 5400.0]),
    (["01.03.2024 12:00", "29.02.2024 12:00"], [0.0, 86400.0]),
    (["2024/03/01 00:00:10", "2024/03/01 00:00:00"], [0.0, 10.0]), (["12:00:05", "12:00:00"], None),
    (["3/1/2024", "3/2/2024"], None), (["10", "9.5"], [0.0, 0.5]),
])  # fmt: skip
def test_times_as_text_order_the_steps(times, seconds, tmp_path):
    text = "".join(f"a,{time},{k}\n" for k, time in enumerate(times))
    path = written(tmp_path / "a.csv", f"id,t,x\n{text}")
    table = pa.table({"id": ["a", "a"], "t": times, "x": [0.0, 1.0]})
    for source in (path, table):
        if seconds is None:
            with pytest.raises(DataError, match=r"'t' \(time\) holds"):
                scan_series(source)
            continue
        series = scan_series(source).read().series
        assert series.values[:, 0].tolist() == [1.0, 0.0]
        passed = series.times - series.times[0]
        unit = np.timedelta64(1, "s") if series.times.dtype.kind == "M" else 1.0
        assert (passed / unit).tolist() == seconds
