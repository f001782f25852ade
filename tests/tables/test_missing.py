"""Missing values in files: kept as NaN; series that cannot be used can be left out."""

import re
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("pyarrow")
pytest.importorskip("pyarrow")

import pyarrow as pa
import pyarrow.parquet as pq

from slts import DataError, SeriesBatch, as_series
from slts.columns.facts import MISSING
from slts.tables import iter_series, read_series
from tests.tables.forms import make_data, write_form

FORMS = (".ts", ".csv", ".csv.gz", ".parquet", ".npz", "folder", "lists")


def with_gaps():
    batch, labels, ids = make_data()
    values = batch.values.copy()
    values[np.random.default_rng(0).random(values.shape) < 0.3] = np.nan
    values[batch.offsets[1:] - 1, 0] = 1.0
    return SeriesBatch(values, batch.offsets, batch.channel_names), labels, ids


@pytest.mark.parametrize("form", FORMS)
def test_every_form_keeps_missing_values(form, tmp_path):
    batch, labels, ids = with_gaps()
    found = read_series(write_form(form, tmp_path, batch, labels, ids))
    assert as_series(list(found.series)) == as_series(list(batch))
    assert found.labels.tolist() == labels.tolist()


@pytest.mark.parametrize("form", [".csv", ".parquet", "lists"])
def test_steps_at_the_end_without_a_value_are_removed(form, tmp_path):
    batch, labels, ids = make_data()
    values = batch.values.copy()
    values[batch.offsets[4] - 1] = np.nan
    changed = SeriesBatch(values, batch.offsets, batch.channel_names)
    path = write_form(form, tmp_path, changed, labels, ids)
    lengths = batch.lengths.copy()
    lengths[3] -= 1
    assert read_series(path).series.lengths.tolist() == lengths.tolist()


def wide(tmp_path, cells, *, header):
    """Write a file with six series of eight steps, and replace cells of the third one."""
    values = np.random.default_rng(1).normal(size=(6, 8)).round(3)
    lines = [["uvuvuv"[k], *map(str, row)] for k, row in enumerate(values.tolist())]
    for step, cell in cells.items():
        lines[2][1 + step] = cell
    first = [["label", *(f"x{k}" for k in range(8))]] if header else []
    path = tmp_path / "data.csv"
    path.write_text("".join(",".join(line) + "\n" for line in [*first, *lines]))
    return path, values


@pytest.mark.parametrize("label", [0, 12])
def test_the_first_row_of_a_wide_file_may_be_short(label, tmp_path):
    values, lengths = np.random.default_rng(0).normal(size=(20, 12)).round(3), [9, 12, 8, 11] * 5
    lines = []
    for row, n, name in zip(values, lengths, ["up", "down"] * 10, strict=True):
        cells = [*map(str, row[:n]), *[""] * (12 - n)]
        lines.append(",".join([*cells[:label], name, *cells[label:]]))
    path = tmp_path / "short.csv"
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    found = read_series(path)
    assert found.labels.tolist() == ["up", "down"] * 10
    assert found.series.lengths.tolist() == lengths
    np.testing.assert_array_equal(found.series[0][0], values[0, :9])


@pytest.mark.parametrize("header", [False, True])
def test_wide_rows_have_gaps_inside_and_padding_at_the_end(header, tmp_path):
    path, values = wide(tmp_path, {2: "NaN", 6: "", 7: ""}, header=header)
    found = read_series(path)
    expected = np.where(np.arange(8) == 2, np.nan, values[2])[:6]
    np.testing.assert_array_equal(found.series[2][0], expected)
    assert found.series.lengths.tolist() == [8, 8, 6, 8, 8, 8]
    assert found.labels.tolist() == list("uvuvuv")


@pytest.mark.parametrize("form", ["frame", "csv"])
def test_times_are_cut_with_the_steps_at_the_end(form, tmp_path):
    frame = pa.table(
        {"id": list("aaabb"), "t": [0.0, 1.0, 2.0, 5.0, 6.0], "x": [1.0, 2.0, None, None, 4.0]}
    )
    if form == "frame":
        found = as_series(frame, id="id", time="t", channels="x")
    else:
        rows = [",".join("" if v is None else str(v) for v in row.values())
                for row in frame.to_pylist()]  # fmt: skip
        (tmp_path / "data.csv").write_text("\n".join(["id,t,x", *rows]))
        found = read_series(tmp_path / "data.csv").series
    assert found.times.tolist() == [0.0, 1.0, 5.0, 6.0]
    assert found.lengths.tolist() == [2, 2]
    assert found.series_names == ("a", "b")


def test_cells_that_the_documentation_lists_are_missing_values(tmp_path):
    page = Path(__file__).parents[2] / "docs" / "how-to" / "own-data.md"
    (row,) = re.findall(r"empty cells and (.*) \|", page.read_text(encoding="utf-8"))
    cells = ["", *re.findall("`(.+?)`", row)]
    assert sorted(cells) == sorted(MISSING)
    path = tmp_path / "data.csv"
    path.write_text("id,x,y\na,1,2\n" + "".join(f"b,{cell},3\n" for cell in cells))
    assert read_series(path, channels="x,y").series.n_missing.tolist() == [len(cells), 0]
    path.write_text("id,x,y\na,1,2\na,?,3\na,4,5\n")
    with pytest.raises(DataError, match=r"'x' holds '\?', .* empty the cell if it is missing"):
        read_series(path)


def test_a_channel_of_a_model_may_be_empty(tmp_path):
    path = tmp_path / "data.csv"
    path.write_text("id,x,y\na,1,\na,2,\n")
    assert read_series(path, expect=["x", "y"]).series.n_missing.tolist() == [0, 2]


# -- series that cannot be used


@pytest.mark.parametrize("batch_size", [1, 2, 100])
@pytest.mark.parametrize("in_parts", [False, True])
@pytest.mark.parametrize("cell", ["inf", "oops"])
def test_one_bad_cell_leaves_one_series_out(cell, in_parts, batch_size, tmp_path, request):
    if in_parts:
        request.getfixturevalue("tables_in_parts")
    path = tmp_path / "data.csv"
    path.write_text(f"id,x\na,1\na,2\nb,3\nb,{cell}\nc,\nc,\nd,5\nd,6\n")
    with pytest.raises(DataError, match=r"line 5"):
        list(iter_series(path, expect=["x"], batch_size=batch_size))
    batches = list(iter_series(path, expect=["x"], batch_size=batch_size, on_error="skip"))
    assert [id for batch in batches for id in batch.ids.tolist()] == ["a", "d"]
    first, found = 0, []
    for batch in batches:
        found += [(first + one.position, one.id, one.reason) for one in batch.unusable]
        first += len(batch) + len(batch.unusable)
    assert [(position, id) for position, id, _ in found] == [(1, "b"), (2, "c")]
    assert found[0][2] == "step 1 of 'x' is infinite or not a number"
    assert found[1][2] == "the series has no values"
    assert np.isfinite(np.concatenate([batch.series.values for batch in batches])).all()


def test_bad_lists_can_be_left_out(tmp_path):
    path = tmp_path / "data.parquet"
    lists = [[1.0, 2.0], [np.inf, 1.0], [None, 3.0], [None, None]]
    pq.write_table(pa.table({"id": ["a", "b", "c", "d"], "x": lists}), path)
    (batch,) = iter_series(path, on_error="skip", labels=False)
    assert batch.ids.tolist() == ["a", "c"]
    assert [(one.position, one.id) for one in batch.unusable] == [(1, "b"), (3, "d")]


def test_missing_and_empty_lists_can_be_left_out(tmp_path):
    path, numbers = tmp_path / "data.parquet", pa.list_(pa.float64())
    x = pa.array([[1.0, 2.0], None, [], [5.0, 6.0], None], numbers)
    y = pa.array([[1.0, 2.0], None, [3.0], [], [7.0, 8.0]], numbers)
    pq.write_table(pa.table({"id": list("abcde"), "x": x, "y": y}), path)
    (batch,) = iter_series(path, on_error="skip", labels=False)
    # Of the others, one channel is not observed.
    assert batch.ids.tolist() == ["a", "c", "d", "e"]
    assert batch.unusable == ((1, "b", "the series has no values"),)
    nan = np.nan
    expected = [[1, 1], [2, 2], [nan, 3], [5, nan], [6, nan], [nan, 7], [nan, 8]]
    np.testing.assert_array_equal(batch.series.values, expected)
    with pytest.raises(DataError, match="row 1: 'x' is missing: drop the row"):
        list(iter_series(path, labels=False))


@pytest.mark.parametrize("header", [False, True])
@pytest.mark.parametrize(
    ("cells", "reason"),
    [
        ({3: "inf"}, "step 3 ({!r}) is infinite or not a number"),
        ({3: "oops"}, "step 3 ({!r}) is infinite or not a number"),
        ({7: "oops"}, "step 7 ({!r}) is infinite or not a number"),
        (dict.fromkeys(range(8), ""), "the series has no values"),
    ],
)
def test_bad_rows_of_wide_files_can_be_left_out(cells, reason, header, tmp_path):
    path, values = wide(tmp_path, cells, header=header)
    (batch,) = iter_series(path, on_error="skip")
    assert batch.series.lengths.tolist() == [8] * 5
    assert [x[0].tolist() for x in batch.series] == np.delete(values, 2, axis=0).tolist()
    assert batch.labels.tolist() == list("uvvuv")
    name = f"x{min(cells)}" if header else str(1 + min(cells))
    assert [tuple(one) for one in batch.unusable] == [(2, None, reason.format(name))]


def test_a_bad_cell_leaves_other_cells_of_its_line_as_they_are(tmp_path):
    path = tmp_path / "data.csv"
    path.write_text('id,x,on\na,1,true\na,NA,false\nb,oops,true\nb,"1,5",true\n')
    (batch,) = iter_series(path, expect=["x", "on"], on_error="skip")
    np.testing.assert_array_equal(batch.series.values, [[1.0, 1.0], [np.nan, 0.0]])
    assert [one.id for one in batch.unusable] == ["b"]
