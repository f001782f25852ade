"""Roles of columns: named, or by a short list of names; everything else is a question."""

import datetime as dt

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import slts
from slts import DataError
from slts.tables import ExpectedColumns, read_series, scan_series
from slts.tables.roles import ID_NAMES, LABEL_NAMES, TIME_NAMES, RequestedColumns, resolve_columns
from slts.tables.rows import Named, Rows

IDS, STEPS = np.repeat(np.arange(5), 6), np.tile(np.arange(6), 5)


def noise(seed=0, n=30):
    return np.random.default_rng(seed).normal(size=n)


def long(**columns):
    """Five series of six steps; columns replace or follow the usual ones."""
    table = {"id": IDS, "t": STEPS, "label": np.array(list("abaab"))[IDS], "x": noise()}
    return {name: column for name, column in (table | columns).items() if column is not None}


def wide(n=10, **columns):
    return columns | {f"s{k}": noise(k, 6) for k in range(n)}


def roles(table, **requested):
    return resolve_columns(Rows(pa.table(table), Named("data")), RequestedColumns(**requested))


@pytest.mark.parametrize(
    ("role", "names"), [("id", ID_NAMES), ("time", TIME_NAMES), ("label", LABEL_NAMES)]
)
def test_usual_names_are_exact_but_for_case(role, names):
    usual = {"id": "id", "time": "t", "label": "label"}[role]
    table = long(y=noise(1))
    for name in (*names, names[-1].upper()):
        renamed = {name if key == usual else key: column for key, column in table.items()}
        columns = roles(renamed)
        assert (getattr(columns, role), columns.channels) == (name, ("x", "y"))
    with pytest.raises(DataError):
        roles({f"my {usual}" if key == usual else key: c for key, c in table.items()})


def test_named_columns_come_first():
    table = long(gait=np.array(list("uvuvu"))[IDS], y=noise(1))
    columns = roles(table, label="gait", channels="y,x")
    assert (columns.label, columns.channels, columns.ignored) == ("gait", ("y", "x"), ("label",))
    expected = "id=id, time=t, label=gait, channels=y,x, not used: label"
    assert (str(columns), roles(table, channels=["x"]).label) == (expected, "label")
    table = long(c1=noise(1), c2=noise(2), c3=noise(3))
    assert roles(table, channels="c1..c3").channels == ("c1", "c2", "c3")


@pytest.mark.parametrize(("change", "message"), [
    ({"id": None, "rec": IDS}, r"no column is named as the identifier.*id='rec' \(--id rec\)"),
    ({"series": IDS}, r"'id' and 'series' may be the id: use id='id' \(--id id\) or id='series'"),
    ({"step": STEPS}, r"'t' and 'step' may be the time: use time='t' \(--time t\) or time='step'"),
    ({"gait": ["u"] * 30, "label": None}, r"'gait' holds text.* label='gait' \(--label gait\)"),
    ({"note": ["u"] * 30}, r"'note' holds text.*leave it out: channels='x' \(--channels x\)|pivot"),
    ({"age": 30 + IDS}, r"'age': constant in every series\. To leave .* channels='x' \(--ch"),
    ({"age": 30 + IDS, "label": None},
     r"'age': constant.* is the label, use label='age' \(--label"),
    ({"clock": 0.1 * STEPS + IDS}, r"'clock': rising in every series.*leave out.*channels='x'"),
    ({"t": None, "n": STEPS}, r"'n': rising in every series.*time='n' \(--time n\)"),
    ({"when": [pd.Timestamp("2024-01-01")] * 30},
     r"'when' holds values of type timestamp.*no role"),
    ({"void": pa.nulls(30)}, r"'void' holds values of type null and has no role.*channels='x'"),
    ({"id": np.arange(30)}, r"'id' \(id\) differs in every row, so every series would have one"),
    ({"x": None}, "no column is left for the channels"),
    ({"x": None, "f": [[1.0, 2.0]] * 30, "y": noise(1)}, r"'f' holds lists and 'y' one number per"),
])  # fmt: skip
def test_other_tables_are_questions_that_list_the_columns(change, message):
    with pytest.raises(DataError, match=message) as caught:
        roles(long(**change))
    for name in {**long(**change)}:
        assert f"{name!r} (" in str(caught.value)


def test_the_answers_of_questions_help():
    table = long(age=30 + IDS, clock=0.1 * STEPS, note=["u"] * 30)
    assert roles(table, channels=["x", "age", "clock"]).channels == ("x", "age", "clock")
    assert roles(table, channels=["x"]).ignored == ("age", "clock", "note")
    assert roles(long(id=np.arange(30)), channels=["x"], time="t").form == "long"


def test_shuffled_rows_do_not_hide_a_time_and_few_steps_do_not_show_it(rng):
    with pytest.raises(DataError, match="'clock': rising"):
        roles(pa.table(long(clock=0.1 * STEPS)).take(rng.permutation(30)))
    assert roles({"id": [0, 0, 1, 1], "x": [1.0, 2.0, 0.5, 4.0]}).channels == ("x",)


@pytest.mark.parametrize(("requested", "message"), [
    ({"id": "idd"}, r"no column 'idd' \(id\)"),
    ({"label": "x", "channels": ["x"]}, r"'x' cannot have two roles"),
    ({"channels": ["x", "x"]}, "one or more distinct columns"),
    ({"channels": ["label"], "label": "t"}, r"channel 'label' holds text, such as 'a'"),
    ({"time": "label"}, r"'label' \(time\) holds text, such as 'a', expected a number"),
    ({"groups": "label", "label": "label"}, r"'label' cannot have two roles \(groups\)"),
])  # fmt: skip
def test_columns_that_cannot_be_used(requested, message):
    with pytest.raises(DataError, match=message):
        roles(long(), **requested)


def test_two_columns_of_one_name():
    table = pa.table([IDS, noise(), noise(1)], names=["id", "x", "x"])
    with pytest.raises(DataError, match="two columns named 'x'"):
        scan_series(table)


def test_one_series_per_row():
    for table in (wide(), wide(id=list("abcdef")), wide(label=list("ababab"))):
        columns = roles(table)
        assert (columns.form, columns.channels) == ("wide", tuple(f"s{k}" for k in range(10)))
    names = ["jan", "feb", "mar", "apr", "may", "jun", "jul"]
    months = {name: noise(k, 6) for k, name in enumerate(names)}
    with pytest.raises(DataError, match=r"name its steps: channels='jan..jul' \(--channels jan.."):
        roles(months)
    assert roles(months, channels="jan..jul").form == "wide"
    with pytest.raises(DataError, match=r"name its steps: channels='jan..jul'"):
        roles({"id": list("abcdef")} | months)
    with pytest.raises(DataError, match="no column is named as the identifier"):
        roles({"u": noise(0, 6), "v": noise(1, 6)}, channels=["u", "v"])
    with pytest.raises(DataError, match="no column is named as the identifier"):
        roles(wide(t=np.arange(6)))


def test_repeated_identifiers_are_series_of_several_rows():
    table = wide(id=list("aabbcc"))
    with pytest.raises(DataError, match=r"'id' \(id\) is repeated.*use channels='s0..s9' \(--chan"):
        roles(table)
    assert roles(table, channels="s0..s9").form == "long"
    assert roles(wide(n=6, id=list("aabbcc"))).form == "long"
    frame = pa.table({"id": ["a", "b", "a"], "x": [[1.0, 2.0], [2.0, 1.0], [0.0, 3.0]]})
    with pytest.raises(DataError, match="series 'a' is repeated"):
        scan_series(frame).read()


def test_a_melted_frame_gets_the_line_that_pivots_it(tmp_path):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {"id": IDS, "t": STEPS, "label": np.array(list("ababa"))[IDS]}
        | {name: rng.normal(size=30) for name in "xyz"}
    )
    melted = frame.melt(id_vars=["id", "t", "label"])
    melted.to_csv(tmp_path / "melted.csv", index=False)
    with pytest.raises(DataError, match=r"'variable'.*table\.pivot") as caught:
        read_series(tmp_path / "melted.csv")
    line = str(caught.value).split("in pandas: ")[1].split(". The columns")[0]
    table = eval(line, {"table": melted})
    assert scan_series(table).read().series == slts.as_series(frame, label="label")[0]
    numbered = melted.assign(variable=melted["variable"].map({"x": 1, "y": 2, "z": 3}))
    with pytest.raises(DataError, match=r"occurs twice in series.*as after melt"):
        scan_series(numbered)


def test_a_melted_frame_of_other_names_gets_the_line_at_once():
    frame = pd.DataFrame({"id": IDS, "t": STEPS, "x": noise(1), "y": noise(2)})
    own = frame.rename(columns={"id": "who", "t": "when"})
    melted = own.melt(id_vars=["who", "when"], var_name="sensor", value_name="reading")
    for requested in ({}, {"id": "who"}):
        with pytest.raises(DataError, match=r"'sensor' names channels, as after melt") as caught:
            scan_series(melted, **requested)
        line = str(caught.value).split("in pandas: ")[1].split(". The columns")[0]
        assert eval(line, {"table": melted}).equals(own.rename_axis(columns="sensor"))
    with pytest.raises(DataError) as caught:
        scan_series(own.assign(gait=["u", "v"] * 15)[["who", "when", "gait", "x"]])
    assert "melt" not in str(caught.value)


def test_a_time_of_day_gets_the_line_that_adds_a_date(tmp_path):
    frame = pd.DataFrame(long()).assign(t=[f"12:00:0{step}" for step in STEPS])
    frame.to_csv(tmp_path / "text.csv", index=False)
    times = frame.assign(t=[dt.time.fromisoformat(text) for text in frame["t"]])
    for source in (tmp_path / "text.csv", frame, times):
        with pytest.raises(DataError, match=r"'t'.*time of day needs a date") as caught:
            scan_series(source)
    line = str(caught.value).split("in pandas: ")[1].split(". To leave")[0]
    exec(line, {"table": times})
    assert scan_series(times).read().series.times[1] == np.datetime64("2024-01-31T12:00:01")


def test_channels_of_a_model_are_read_by_name():
    table = long(y=noise(1), note=["u"] * 30, age=IDS)
    columns = resolve_columns(Rows(pa.table(table), Named("data")), known(["y", "x"]))
    assert columns.channels == ("y", "x")
    with pytest.raises(DataError, match=r"no column 'z', a channel of the model.*channels=\["):
        resolve_columns(Rows(pa.table(table), Named("data")), known(["x", "z"]))


def known(channels, label=None):
    return RequestedColumns(expected=ExpectedColumns(channels, label))


def test_the_label_column_of_a_model_is_the_label():
    table = pa.table(long(gait=["u"] * 30, label=None))
    assert resolve_columns(Rows(table, Named("data")), known(["x"], "gait")).label == "gait"
    assert resolve_columns(Rows(table, Named("data")), known(["x"], "walk")).label is None


def test_columns_of_a_model_have_their_roles_again():
    rows = np.arange(30)
    table = pa.table(long(label=None, id=None, t=None, rec=rows // 5, at=rows % 5.0))
    model = ExpectedColumns(["x"], time="at", ids=("rec",))
    columns = resolve_columns(Rows(table, Named("data")), RequestedColumns(expected=model))
    assert (columns.id, columns.time, columns.channels) == ("rec", "at", ("x",))
    # What the caller says counts more.
    other = RequestedColumns(id="at", expected=model)
    columns = resolve_columns(Rows(table, Named("data")), other)
    assert (columns.id, columns.time) == ("at", None)


def test_row_numbers_of_pandas_are_no_columns():
    for name in ("", "Unnamed: 0", "__index_level_0__"):
        assert roles({name: np.arange(30)} | long()).channels == ("x",)
