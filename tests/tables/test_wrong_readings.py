"""Tables that could be read wrongly without a word are right, or an error."""

import unicodedata

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import slts
from slts import DataError
from slts.tables import ExpectedColumns, read_series, scan_series

X = [[0.5, 0.1, 0.3], [0.2, 0.4, 0.1], [0.9, 0.2, 0.4], [0.1, 0.8, 0.2]]
TIMES = [[0.0, 1.0, 2.0], [5.0, 6.0, 7.0], [0.0, 1.0, 2.0], [5.0, 6.0, 7.0]]


def lists(**columns):
    return pa.table({"id": list("abcd"), "label": list("uvuv"), "x": X} | columns)


def rows(**columns):
    table = {"id": ["a", "a", "b", "b"], "t": [0, 1, 0, 1], "x": [0.5, 0.1, 0.2, 0.4]}
    return pa.table(table | columns)


def test_a_list_of_times_is_no_channel():
    with pytest.raises(DataError, match=r"'start': rising.*time='start' \(--time start\)"):
        scan_series(lists(start=TIMES))
    dataset = scan_series(lists(start=TIMES), time="start").read()
    assert dataset.columns.channels == ("x",)
    assert dataset.series.times.tolist() == [time for times in TIMES for time in times]
    assert scan_series(lists(time=TIMES)).columns.channels == ("x",)
    with pytest.raises(DataError, match=r"row 1 \(series 'b'\): the times in 'time' do not incr"):
        scan_series(lists(time=[*TIMES[:1], [5.0, 5.0, 7.0], *TIMES[2:]])).read()
    grid = scan_series(lists(time=TIMES), every=0.5).read().series
    np.testing.assert_allclose(grid[0][0], [0.5, 0.3, 0.1, 0.2, 0.3])


def test_an_extra_list_does_not_turn_steps_into_series():
    with pytest.raises(DataError, match=r"'spectrum' holds lists and 'x' one number per row.*"):
        scan_series(rows(spectrum=[[1.0, 2.0]] * 4))
    table = scan_series(rows(spectrum=[[1.0, 2.0]] * 4), channels="x").read()
    assert table.series.lengths.tolist() == [2, 2]


@pytest.mark.parametrize("in_batches", [False, True])
def test_a_row_of_lists_has_an_identifier_of_its_own(in_batches, tmp_path):
    table = lists().set_column(0, "id", pa.array(["a", "b", "c", "a"]))
    pq.write_table(table, tmp_path / "data.parquet", row_group_size=1)
    scan = scan_series(tmp_path / "data.parquet")
    with pytest.raises(DataError, match="series 'a' is repeated, but every row is a series"):
        list(scan.batches(batch_size=1)) if in_batches else scan.read()


@pytest.mark.parametrize("first", ["less", "more"])
@pytest.mark.parametrize("form", ["parquet", "csv"])
def test_files_of_a_folder_have_the_same_columns(first, form, tmp_path):
    more = rows(y=[0.3, 0.2, 0.5, 0.9])
    less = rows(id=["c", "c", "d", "d"])
    for name, table in {"0": less, "1": more}.items():
        name = name if first == "less" else str(1 - int(name))
        if form == "parquet":
            pq.write_table(table, tmp_path / f"{name}.parquet")
        else:
            frame = table.drop_columns(["id", "t"]).to_pandas()
            frame.to_csv(tmp_path / f"{name}.csv", index=False)
    with pytest.raises(DataError, match=r"column 'y'.*use channels='x' \(--channels x\)"):
        read_series(tmp_path)
    assert read_series(tmp_path, channels="x").series.n_channels == 1


@pytest.mark.parametrize("form", ["csv", "parquet", "lists"])
def test_integers_that_float64_rounds_are_an_error(form, tmp_path):
    large = [2**53 + 1, 1, 2, 3]
    if form == "csv":
        rows(x=large).to_pandas().to_csv(tmp_path / "data.csv", index=False)
    else:
        table = rows(x=large) if form == "parquet" else lists(x=[[1, 2**53 + 1]] * 4)
        pq.write_table(table, tmp_path / "data.parquet")
    with pytest.raises(DataError, match=r"'x'.* more digits than float64 represents"):
        read_series(next(tmp_path.iterdir()))


def test_nanoseconds_are_times_of_their_own(tmp_path):
    start = 1_709_251_200_000_000_000
    text = "".join(f"a,{start + k},{(7 * k) % 5}\n" for k in range(6))
    (tmp_path / "data.csv").write_text(f"id,t,x\n{text}")
    assert read_series(tmp_path / "data.csv").series.n_steps == 6


def test_nullable_integers_stay_integers():
    ids = ["a", "a", "b", "b"]
    labels = pd.array([2**53, 2**53, 2**53 + 1, 2**53 + 1], dtype="Int64")
    frame = pd.DataFrame({"id": ids, "label": labels, "x": [0.5, 0.1, 0.2, 0.4]})
    assert scan_series(frame).read().labels.tolist() == [2**53, 2**53 + 1]
    missing = frame.assign(label=pd.array([1, 1, None, None], dtype="Int64"))
    with pytest.raises(DataError, match=r"row 2 \(series 'b'\): 'label' \(label\) is missing"):
        scan_series(missing).read()
    assert scan_series(missing.iloc[:2]).read().labels.dtype == np.int64


FORMS = [
    [unicodedata.normalize(form, "Caf\u00e9") for form in ("NFC", "NFD")],
    ["left hand", "left\u00a0hand "], ["1", "1.0"],
]  # fmt: skip


@pytest.mark.parametrize("pair", FORMS)
def test_text_that_differs_in_form_only_is_equal(pair, tmp_path):
    one, other = pair
    assert len(set(scan_series(rows(label=[one, one, other, other])).read().labels.tolist())) == 1
    assert scan_series(rows(label=[one, other] * 2)).read().labels.tolist() == [one, one]
    ids = rows(id=[one, other, "b", "b"])
    assert scan_series(ids).read().ids.tolist() == [one, "b"]
    joined = ids.append_column("day", pa.array([one, other, "b", "b"]))
    assert len(scan_series(joined, id=["id", "day"]).read()) == 2
    pq.write_table(ids, tmp_path / "data.parquet", row_group_size=1)
    assert [len(part) for part in scan_series(tmp_path / "data.parquet").batches()] == [2]


def test_text_that_differs_is_kept(tmp_path):
    kept = rows(label=["007", "007", "7.5", "7.5"], id=["07", "07", "7", "7"])
    dataset = scan_series(kept).read()
    assert (dataset.labels.tolist(), dataset.ids.tolist()) == (["007", "7.5"], ["07", "7"])
    (tmp_path / "a.csv").write_text("id,label,x\n007,01,1\n007,01,2\n")
    dataset = read_series(tmp_path / "a.csv")
    assert (dataset.ids[0], dataset.labels[0]) == ("007", "01")


def test_channels_of_a_model_may_have_another_form():
    nfc, nfd = FORMS[0]
    table = rows().rename_columns(["id", "t", nfd])
    for requested in ({"channels": nfc}, {"expect": [nfc]}):
        assert scan_series(table, **requested).read().series.channel_names == (nfc,)
    with pytest.raises(DataError, match=r"no column 'X'.*channels='x' \(--channels x\)"):
        scan_series(rows(), expect=["X"])


@pytest.mark.parametrize("name", ["", "Unnamed: 3"])
def test_a_column_without_a_name_is_a_question(name):
    table = rows(**{name: [3.5, 1.5, 2.5, 0.5]})
    with pytest.raises(DataError, match=rf"column '{name}' .*no role.*use channels='x'"):
        scan_series(table)
    assert scan_series(table, channels=["x", name]).read().series.n_channels == 2
    with pytest.raises(DataError, match=rf"column '{name}' .*time='{name}'"):
        scan_series(rows(**{name: [5, 3, 5, 3]}).drop_columns("t"))
    for numbers in ([0, 1, 2, 3], [0, 1, 0, 1], [None] * 4):
        columns = scan_series(rows(**{name: numbers})).columns
        assert (columns.channels, columns.ignored) == (("x",), (name,))
        assert f"not used: {name or '(no name)'}" in str(columns)


def test_numbered_columns_with_a_repeated_identifier_are_a_question():
    steps = {f"x{k}": [0.1 * k, 0.3, 0.2, 0.9 * k] for k in range(7)}
    table = pa.table({"id": ["a", "a", "b", "c"], "day": ["u", "v", "u", "u"]} | steps)
    with pytest.raises(DataError, match=r"'id' .* is repeated.*table\.drop\(columns=\['id'\]\)"):
        scan_series(table)
    assert scan_series(table, channels="x0..x6").read().series.lengths.tolist() == [2, 1, 1]
    assert scan_series(table, id=["id", "day"]).read().series.lengths.tolist() == [7] * 4
    assert len(scan_series(table.drop_columns(["id", "day"])).read()) == 4


@pytest.mark.parametrize("mark", [",", "."])
def test_marks_that_may_separate_thousands_are_a_question(mark, tmp_path):
    path = tmp_path / "data.csv"
    cells = ["-132", "10,783", "3,795", "11,046"]
    text = "".join(f"{i};{c}\n" for i, c in zip("aabb", cells, strict=True))
    path.write_text("id;x\n" + text.replace(",", mark))
    with pytest.raises(DataError, match=r"does '[.,]' separate thousands") as caught:
        scan_series(path)
    call = str(caught.value).split("in pandas: ")[1].split(".to_csv")[0]
    for form, values in {"thousands": [-132, 10783], "decimal": [-132, 10.783]}.items():
        line = call.replace("thousands", form)
        frame = eval(line, {"read_csv": pd.read_csv})
        assert frame["x"].tolist()[:2] == values
    for clear in ("-132,500", "0,132", "132,5"):
        path.write_text("id;x\n" + text.replace("-132", clear).replace(",", mark))
        assert read_series(path).series.values[1, 0] == 10.783


@pytest.mark.parametrize("cell", ["3.795,07", "-1 234,5", "3,795"])
def test_numbers_with_separators_are_named(cell, tmp_path):
    (tmp_path / "data.csv").write_text(f'id,x\na,1\na,"{cell}"\nb,2\nb,3\n')
    with pytest.raises(DataError, match=f"line 3: 'x' .* with separators, such as '{cell}'"):
        scan_series(tmp_path / "data.csv")


def test_lists_without_an_identifier_of_a_usual_name():
    table = lists().rename_columns(["uid", "label", "x"])
    with pytest.raises(DataError, match=r"'uid' holds text.*use id='uid' \(--id uid\)"):
        scan_series(table)


def test_a_model_of_files_does_not_read_a_table_as_one_series(tmp_path):
    model = ExpectedColumns(["x"], "(folder)", ids=("(file)",))
    rows().to_pandas().to_csv(tmp_path / "data.csv", index=False)
    with pytest.raises(DataError, match=r"'id' has several values.*id='id' \(--id id\)"):
        scan_series(tmp_path / "data.csv", expect=model)
    assert len(read_series(tmp_path / "data.csv", expect=model, id="id")) == 2
    twice = rows(t=[0, 1, 1, 0]).to_pandas().drop(columns="id")
    twice.to_csv(tmp_path / "data.csv", index=False)
    with pytest.raises(DataError, match="occurs twice") as caught:
        read_series(tmp_path / "data.csv", expect=model)
    assert "--id" not in str(caught.value)


def test_nullable_labels_in_memory_keep_their_type():
    X = [np.full((1, 5), k % 2) + np.arange(5.0) for k in range(8)]
    y = pd.Series([0, 1] * 4, dtype="Int64")
    model = slts.OneNNClassifier().fit(X, y)
    assert model.classes_.dtype == np.int64
    y[3] = pd.NA
    with pytest.raises(DataError, match=r"the label of series 3 of X, is missing"):
        slts.OneNNClassifier().fit(X, y)


LINES = 'id,t,note,x\n\na,0,"one\ntwo",1\n\n\na,1,"three, four",{}\nb,0,,2\n'


@pytest.mark.parametrize(("cell", "message"), [
    ("oops", r"line 7: 'x' holds 'oops'"), ("inf", r"line 7 \(series 'a'\): 'x' is infinite"),
    ("1,2", "line 7 has 5 cells, expected 4"), ("\udce9", "line 7: the text is not UTF-8"),
])  # fmt: skip
def test_blank_lines_and_line_breaks_in_cells_are_counted(cell, message, tmp_path):
    path = tmp_path / "data.csv"
    path.write_bytes(LINES.format(cell).encode("utf-8", "surrogateescape"))
    with pytest.raises(DataError, match=rf"data.csv, {message}"):
        read_series(path, channels="x")
    path.write_text(LINES.format("3"))
    assert read_series(path, channels="x").series.values[:, 0].tolist() == [1, 3, 2]
