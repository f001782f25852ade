"""Guesses that need values: times, constant columns, tables with one series per row."""

import itertools
import re

import numpy as np
import pytest

pytest.importorskip("pyarrow")
pytest.importorskip("pandas")
pytest.importorskip("polars")

import pandas as pd
import polars
import pyarrow as pa

from slts import DataError
from slts.columns import ExpectedColumns, RequestedColumns, resolve_columns
from slts.columns.rows import Chunk
from tests.tables.guessing import guess

N_SERIES, LENGTH = 12, 8
RNG = np.random.default_rng(0)


def long(**columns):
    """Twelve series of eight steps; a column is a function of the number of the series."""
    made = {
        "recording": lambda i: np.full(LENGTH, f"r{i}"),
        **columns,
        "x": lambda i: RNG.normal(size=LENGTH),
        "z": lambda i: RNG.normal(size=LENGTH),
    }
    return {name: np.concatenate([f(i) for i in range(N_SERIES)]) for name, f in made.items()}


def rising(i):
    return RNG.uniform(size=LENGTH).cumsum()


def constant(values):
    return lambda i: np.full(LENGTH, values[i % len(values)])


# -- Channels in rows


def tidy(sort, **renamed):
    """A table with one row per series, time and sensor, sorted by some columns."""
    made = itertools.product(range(6), range(9), ["acc", "gyro", "heart"])
    rows = [(i, t, "ab"[i % 2], sensor, RNG.normal()) for i, t, sensor in made]
    frame = pd.DataFrame(rows, columns=["id", "time", "label", "sensor", "value"])
    return frame.sort_values(sort).rename(columns=renamed)


def advice(frame, **wanted):
    with pytest.raises(DataError, match="every step has one row for each") as error:
        guess(frame, **wanted)
    return re.search(r"In (pandas|polars): (table.*?\))\. If", str(error.value))[2], str(
        error.value
    )


@pytest.mark.parametrize(
    "sort", [["id", "time"], ["id", "sensor", "time"], ["sensor", "id"], ["sensor", "time", "id"]]
)
@pytest.mark.parametrize("names", [{}, {"sensor": "name"}, {"id": "recording", "sensor": "signal"}])
def test_rows_of_single_channels_get_advice_that_works(sort, names):
    table = tidy(sort, **names)
    series, sensor = names.get("id", "id"), names.get("sensor", "sensor")
    pivot, message = advice(table)
    assert f"--id {series} --id {sensor} (id=['{series}', '{sensor}'])" in message
    found = guess(eval(pivot, {"table": table}))
    assert (found.id, found.time, found.label) == (series, "time", "label")
    assert found.channels == ("acc", "gyro", "heart")


def test_rows_of_single_channels_may_be_incomplete_numbered_or_have_several_values():
    table = tidy(["id", "time"])
    advice(table.sample(frac=0.8, random_state=0))
    advice(table.assign(sensor=table["sensor"].map(len)))
    parts = table.rename(columns={"id": "subject"}).assign(trial=table["id"] // 2)
    _, message = advice(parts, id=["subject", "trial"])
    assert "index=['subject', 'trial', 'time', 'label']" in message
    table["peak"] = table["value"] + 1.0
    pivot, _ = advice(table)
    found = guess(eval(pivot, {"table": polars.from_pandas(table)}).to_arrow())
    assert found.channels[:4] == ("value_acc", "value_gyro", "value_heart", "peak_acc")


def test_trials_and_constant_columns_are_not_channels_in_rows():
    trials = tidy(["id", "sensor", "time"], id="subject", sensor="trial")
    with pytest.raises(DataError, match="'trial' varies within 'subject'"):
        guess(trials)
    found = guess(tidy(["id", "sensor", "time"]).assign(rate=50), id=["id", "sensor"])
    assert (found.time, found.channels) == ("time", ("value",))
    # Each sensor has a label of its own: its rows are a series.
    table = tidy(["id", "sensor", "time"])
    table["label"] = table["sensor"].str[0]
    assert guess(table, id="id", time="time", label="label").channels == ("value",)


# -- Time


@pytest.mark.parametrize(
    "name",
    ["time_s", "time_ms", "elapsed", "elapsed_s", "ts", "t_sec", "Time (s)", "unix_time", "sample",
     "frame", "seconds", "Timestamp", "sample_no", "timeStamp", "frame number"],
)  # fmt: skip
def test_columns_named_like_a_time_are_the_time(name):
    found = guess(long(**{name: rising}))
    assert (found.time, found.channels) == (name, ("x", "z"))
    assert not found.rising


@pytest.mark.parametrize("name", ["time_s", "elapsed", "Time (s)"])
def test_a_time_by_name_need_not_rise(name):
    found = guess(long(**{name: lambda i: RNG.permutation(LENGTH)}))
    assert (found.time, found.channels) == (name, ("x", "z"))


@pytest.mark.parametrize("name", ["t_min", "start_time", "t1", "sample", "s"])
def test_other_names_are_channels_unless_they_rise(name):
    assert guess(long(**{name: lambda i: RNG.normal(size=LENGTH)})).channels == (name, "x", "z")


def test_numbers_that_grow_by_the_same_amount_at_every_step_are_the_time():
    table = long(load=lambda i: i + 0.02 * np.arange(LENGTH))
    found = guess(table)
    assert (found.time, found.channels, found.rising) == ("load", ("x", "z"), True)
    assert "time" in found.guessed
    # Also if rows of different series are mixed.
    mixed = np.argsort(np.tile(np.arange(LENGTH), N_SERIES), kind="stable")
    table = {name: column[mixed] for name, column in table.items()}
    assert guess(table, id="recording").time == "load"
    # Named as a channel, it is one.
    found = guess(table, channels=["load", "x"])
    assert (found.time, found.channels) == (None, ("load", "x"))


def test_a_column_that_only_rises_in_every_series_is_a_question():
    table = long(load=rising)
    with pytest.raises(
        DataError, match=r"'load' increases .* may be the time.*--time load.*--chan"
    ):
        guess(table)
    assert guess(table, time="load").channels == ("x", "z")
    assert guess(table, channels=["load", "x", "z"]).time is None


def test_few_rising_values_are_no_evidence():
    table = {"id": ["a"] * 3 + ["b"] * 3, "x": [1.0, 2.0, 3.0] * 2, "z": [3.0, 1.0, 2.0] * 2}
    assert guess(table).channels == ("x", "z")


def test_several_columns_that_rise_are_a_question():
    table = long(load=rising, odometer=rising)
    with pytest.raises(
        DataError, match=r"'load' or 'odometer' increases .*--time load .*--channels"
    ):
        guess(table)
    found = guess(table, time="odometer")
    assert (found.time, found.channels) == ("odometer", ("load", "x", "z"))
    with pytest.raises(DataError, match=r"'t' or 'load' may be the time"):
        guess(long(load=rising, t=rising))


def test_a_column_that_rises_in_most_series_is_a_question():
    table = long(load=lambda i: rising(i) * (-1 if i == 3 else 1))
    with pytest.raises(DataError, match=r"'load' increases in nearly every series and may be"):
        guess(table)


def test_the_time_in_another_unit_is_not_a_channel():
    table = long(t_ms=lambda i: 20 * RNG.integers(1, 9, size=LENGTH).cumsum())
    start = np.repeat(1_700_000_000_000 + 10**6 * np.arange(N_SERIES), LENGTH)
    timestamps = pa.array(start + table["t_ms"], pa.timestamp("ms"))
    table |= {"epoch": (start + table["t_ms"]) / 1000.0, "left": 900.0 - table["t_ms"] / 1000.0}
    for time in (None, "t_ms", "epoch", "left"):
        found = guess(table, time=time)
        assert (found.time, found.channels) == (time or "t_ms", ("x", "z"))
    found = guess({"recording": table["recording"], "at": timestamps, **table})
    assert found.channels == ("x", "z")
    del table["t_ms"], table["left"]
    with pytest.raises(DataError, match="column 'epoch' increases"):
        guess(table | {"uptime": table["epoch"] - 1.7e9})
    # Speed differs from series to series: it is not the time.
    table["distance"] = table["epoch"] % 1000 * np.repeat(1.0 + np.arange(N_SERIES), LENGTH)
    assert "distance" in guess(table, time="epoch").channels


def test_counters_and_further_times_are_not_channels():
    table = long(t=rising, elapsed_ms=rising, nr=lambda i: np.arange(LENGTH) + i)
    for options in ({}, {"time": "t"}):
        found = guess(table, **options)
        assert (found.time, found.channels) == ("t", ("x", "z"))
        assert found.ignored == ("elapsed_ms", "nr")


def test_a_time_that_is_repeated_within_a_series_does_not_order_it():
    found = guess(long(seconds=lambda i: np.arange(LENGTH) // 4, ms=lambda i: np.arange(LENGTH)))
    assert found.time == "ms"
    assert guess(long(date=constant([3]), ms=rising)).time == "ms"


def texts(form):
    def column(i):
        timestamps = np.datetime64("2024-03-01T00:00:03.084531") + np.arange(LENGTH) * 1_500_000
        return np.array([form(str(timestamp)) for timestamp in timestamps])

    return column


@pytest.mark.parametrize(
    ("form", "kind"),
    [
        (lambda text: text.replace("T", " "), "timestamp"),
        (lambda text: text, "timestamp"),
        (lambda text: text[:19], "timestamp"),
        (lambda text: f"{text}Z", "zoned"),
        (lambda text: f"{text}+02:00", "zoned"),
        (lambda text: text[11:], "clock"),
    ],
)
@pytest.mark.parametrize("name", ["when", "t"])
def test_text_moments_are_the_time(name, form, kind):
    found = guess(long(**{name: texts(form)}))
    assert (found.time, found.time_form, found.channels) == (name, kind, ("x", "z"))


def test_numbers_as_text_are_a_time_by_name_only():
    column = lambda i: np.arange(LENGTH).astype(str)  # noqa: E731
    assert guess(long(t=column)).time_form == "number"
    with pytest.raises(DataError, match="column 'code' holds numbers as text such as '0'"):
        guess(long(t=rising, code=column))
    # Constant codes are no measurements.
    assert guess(long(t=rising, code=constant(["007", "008"]))).label == "code"


@pytest.mark.parametrize(
    ("name", "form"),
    [
        ("when", lambda text: f"{text[5:7]}/{text[8:10]}/{text[:4]} {text[11:19]}"),
        ("timestamp", lambda text: f"at {text}"),
        ("when", lambda text: f"3{text[13:19]} am"),
    ],
)
def test_a_time_that_cannot_be_read_is_an_error(name, form):
    table = long(**{name: texts(form)})
    message = rf"column '{name}' holds text such as .* It may be the time, but .* --time"
    with pytest.raises(DataError, match=message):
        guess(table)
    with pytest.raises(DataError, match=rf"column '{name}' \(time\) holds text"):
        guess(table, time=name)
    # Another column is the time, or the text is the same in a whole series.
    assert guess(long(t=rising, **{name: texts(form)})).time == "t"
    day = constant(["01.03.2024", "02.03.2024"])
    assert guess(long(**{name: day})).time is None


def test_one_bad_moment_is_named():
    table = long(when=texts(lambda text: text))
    table["when"][5] = "soon"
    with pytest.raises(DataError, match=r"row 5: column 'when' holds 'soon', but times in 95 of"):
        guess(table)


def test_two_moments_are_a_question():
    table = long(sent=texts(lambda text: text), received=texts(lambda text: text))
    with pytest.raises(DataError, match="'sent' or 'received' may be the time"):
        guess(table)
    assert guess(table, time="received").time == "received"
    # One that is constant in a series does not order its steps.
    day = constant(["2024-03-01", "2024-03-02"])
    assert guess(long(begin=day, received=texts(lambda text: text))).time == "received"


def test_moments_come_before_row_numbers():
    table = long(index=lambda i: np.arange(LENGTH), received=texts(lambda text: text))
    found = guess(table)
    assert (found.time, found.channels) == ("received", ("x", "z"))


# -- Constant columns


def test_numbers_that_are_constant_in_every_series_are_not_channels():
    table = long(
        subject=constant([1, 2, 3, 4]),
        operator_age=constant([31.5, 40.0]),
        code=constant([0, 1]),
        left=constant([True, False]),
        gait=constant(["walk", "run"]),
    )
    found = guess(table)
    assert (found.id, found.label, found.channels) == ("recording", "gait", ("x", "z"))
    assert found.constant == ("subject", "operator_age", "code", "left")
    assert str(found) == (
        "id=recording, time=none (steps are in the order of the rows), label=gait, channels=x,z, "
        "not used, constant in every series: "
        "subject,operator_age,code,left"
    )
    assert guess(table, channels=["x", "code"]).channels == ("x", "code")
    assert guess(table, channels=["x", "code"]).constant == ()


def test_constant_integers_may_be_the_label():
    found = guess(long(code=constant([0, 1]), age=constant([31.5, 40.0]), rate=constant([100])))
    assert (found.label, found.label_candidates) == (None, ("code",))
    assert guess(long(code=constant([0.0, 1.0]))).label_candidates == ("code",)


def test_people_are_the_label_only_if_nothing_else_may_be():
    """Subjects are often groups, beside a label that is a number."""
    subject = constant(["ann", "bob", "eve"])
    assert guess(long(subject=subject)).label == "subject"
    found = guess(long(subject=subject, activity=constant([0, 1])))
    assert (found.label, found.label_candidates) == (None, ("subject", "activity"))
    # A name that says nothing, beside numbers such as ages.
    assert guess(long(gait=subject, age=constant([31, 40]))).label == "gait"


def test_steps_without_numbers_in_their_names_must_be_named():
    months = ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug"]
    table = dict.fromkeys(months, np.linspace(0.0, 1.0, 6)) | {"label": list("aabbab")}
    with pytest.raises(DataError, match=r"If a row is a series, .*: --channels jan\.\.aug"):
        guess(table)
    assert guess(table, channels="jan..aug").wide
    table["id"] = range(6)
    with pytest.raises(DataError, match=r"'id' differs in every row.*: --channels jan\.\.aug"):
        guess(table)
    assert guess(table, channels="jan..aug").id == "id"
    # A range would hold the label as well.
    between = {"id": range(6), "a": table["jan"], "label": table["label"]}
    between |= {"b": table["feb"], "c": table["mar"]}
    with pytest.raises(DataError, match=r"would have one step\. If .* --channels a,b,c"):
        guess(between)
    assert guess(between, channels="a,b,c").wide
    # Rows with times are steps, whose number is no identifier of series.
    with pytest.raises(
        DataError, match=r"have one step\. Name the column that identifies"
    ) as raised:
        guess({"time": [0, 1, 2, 0, 1, 2], **between})
    assert "--channels" not in str(raised.value)


def test_a_range_of_few_steps_is_enough_unless_a_column_may_identify_longer_series():
    months = {name: np.linspace(0.0, 1.0, 6) for name in ("jan", "feb", "mar", "apr")}
    table = {"plant": list("pqrstu"), "label": list("aabbab"), **months}
    found = guess(table, channels="jan..apr")
    assert (found.wide, found.label, found.channels) == (True, "label", tuple(months))
    with pytest.raises(DataError, match="not clear whether a row is one step"):
        guess(table | {"label": list("aaabbb")}, channels="jan..apr")
    found = guess(table | {"plant": list("ppqqrr"), "label": list("aabbaa")}, channels="jan..apr")
    assert (found.wide, found.id) == (False, "plant")


@pytest.mark.parametrize("wanted", [{}, {"id": "id"}])
def test_a_repeated_identifier_of_a_row_is_a_question(wanted):
    table = {"id": list("abcdefgb"), "label": list("uvuvuvuv")}
    table |= {f"t{k}": RNG.normal(size=8) for k in range(9)}
    with pytest.raises(DataError, match="csv, row 7: 'id' differs in most rows, but 'b' is repea"):
        guess(table, **wanted)
    assert guess(table | {"id": list("abcdefgh")}, **wanted).wide
    time = [0, 0, 0, 0, 0, 0, 0, 1]
    assert not guess({"when": time, **table}, time="when", **wanted).wide
    assert not guess({"time": time, **table}, **wanted).wide
    # Short series, whose channels are few or named.
    assert not guess(table, channels=",".join(f"t{k}" for k in range(9)), **wanted).wide
    few = {name: table[name] for name in ("id", "t0", "t1", "t2")}
    assert not guess(few, **wanted).wide


def test_people_who_are_repeated_beside_a_unique_identifier_need_no_names_of_their_own():
    table = {"id": range(8), "subject": list("aabcdefg"), "label": list("uvuvuvuv")}
    table |= {f"t{k}": RNG.normal(size=8) for k in range(9)}
    with pytest.raises(DataError, match=r"If a row is a series, use --id id \(id=\)"):
        guess(table)
    assert guess(table, id="id").wide


def test_times_grow_evenly_at_the_rate_of_their_series():
    ids = list(30 * "a" + 30 * "b")
    channel = RNG.normal(size=60)
    rates = np.r_[np.arange(30) * 10, np.arange(30) * 20]
    assert guess({"id": ids, "clock": rates, "x": channel}).time == "clock"
    nanoseconds = 1_700_000_000_000_000_000 + 1000 * np.arange(60)
    assert guess({"id": ids, "clock": nanoseconds, "x": channel}).time == "clock"
    meter = np.cumsum(RNG.uniform(1.0, 2.0, size=60))
    with pytest.raises(DataError, match="clock"):
        guess({"id": ids, "clock": meter, "x": channel})


def test_an_example_of_text_is_not_a_number():
    with pytest.raises(DataError, match="channel 'x' holds text such as 'oops'"):
        guess({"id": ["a", "a"], "x": ["1", "oops"]}, channels="x")


def test_channels_that_an_error_lists_can_be_requested():
    """An error about many columns is short, and a name may hold a comma."""
    names = [name for k in range(100) for name in (f"c{k}", f"note{k}")]
    many = {name: range(6) if name[0] == "c" else list("uvwxyz") for name in names}
    with pytest.raises(DataError, match=r"--channels c0,c1,.*,c7,\.\.\. \(channels=\)") as raised:
        guess({"id": range(6), **many})
    assert len(str(raised.value)) < 400
    odd = {"id": range(6), "a,b": range(6), "note": list("uvwxyz"), "c": range(6), "d": range(6)}
    with pytest.raises(DataError, match=r"steps: channels=\['a,b','c','d'\]\. Otherwise"):
        guess(odd)
    assert guess(odd, channels=["a,b", "c", "d"]).wide


def test_series_of_one_step_are_an_error():
    table = {"uuid": list("abcdef"), "time": range(6), "label": list("uvuvuv"), "x": range(6)}
    for columns in (("uuid", "time", "label", "x"), ("uuid", "label", "x")):
        some = {name: table[name] for name in columns}
        with pytest.raises(DataError, match=r"'uuid' differs in every row, .*one step\. Name the"):
            guess(some)
        # A model has seen such series, or one row is one series.
        assert guess(some, expect=("x",)).id == "uuid"
        assert guess({name: values[:1] for name, values in some.items()}).id == "uuid"


@pytest.mark.parametrize(
    ("texts", "hint"),
    [
        (
            {"note": lambda i: np.array(list("abcdefgh")), "u": lambda i: np.array(["-2 V"] * 8)},
            r"\. If 'note' holds measurements, convert them",
        ),
        (
            {"note": lambda i: np.array(list("abcdefgh")), "u": lambda i: np.array(
                [f"{k} V" for k in range(8)])},
            r"\. Convert 'u', which holds text such as '0 V', to numbers",
        ),
    ],
)  # fmt: skip
def test_text_that_begins_like_a_number_may_be_a_channel(texts, hint):
    table = long(**texts)
    del table["x"], table["z"]
    with pytest.raises(DataError, match="no numeric column left.*" + hint):
        guess(table)


def test_a_label_that_varies_within_series_matters_only_if_labels_are_needed():
    gait = lambda i: np.array(["walk", "run"] * 4)  # noqa: E731
    assert guess(long(gait=gait), model_label="gait").label == "gait"
    assert guess(long(gait=gait), model_label="gait", labelled=False).label is None
    constant_gait = constant(["walk", "run"])
    assert guess(long(gait=constant_gait), model_label="gait", labelled=False).label == "gait"


def test_missing_values_do_not_make_a_column_vary():
    ages = lambda i: np.where(np.arange(LENGTH) == 3, np.nan, 30.0 + i)  # noqa: E731
    assert guess(long(age=ages)).constant == ("age",)


def test_series_of_one_step_tell_nothing_about_constant_columns():
    table = {"id": ["a", "b", "c"], "x": [1.0, 2.0, 1.5]}
    assert guess(table, id="id").channels == ("x",)


def test_only_constant_columns_are_an_error_that_names_them():
    table = long(age=constant([30, 31]))
    table = {name: table[name] for name in ("recording", "age")}
    with pytest.raises(DataError, match=r"no numeric column left .*--channels age \(channels=\)"):
        guess(table)


# -- Booleans


def test_booleans_are_channels():
    table = long(on=lambda i: RNG.random(LENGTH) > 0.5)
    assert guess(table).channels == ("on", "x", "z")


# -- People and their recordings


def test_people_do_not_identify_series_if_a_finer_column_does():
    table = long(subject=lambda i: np.full(LENGTH, i // 3))
    table["take"] = table.pop("recording")
    assert guess(table).id == "take"


# -- Text that is not UTF-8


def test_text_that_is_not_utf_8_is_the_cause():
    table = long(gait=constant([b"gehen", "wei\xdf".encode("latin-1")]))
    table["gait"] = pa.array(table["gait"].tolist(), pa.binary())
    text = Chunk(pa.table(table), "data.csv", unit="line")
    with pytest.raises(DataError, match=r"column 'gait' holds text that is not UTF-8. It may"):
        resolve_columns(text, RequestedColumns())
    # Parquet files may hold bytes.
    assert guess(table).ignored == ("gait",)
    # It is not needed for predictions.
    predicts = RequestedColumns(expected=ExpectedColumns(("x", "z")))
    assert resolve_columns(text, predicts).label is None
    del table["recording"]
    with pytest.raises(DataError, match=r"which column identifies.*'gait' holds text that is not"):
        guess(table)


# -- Wide form

STEPS = {f"s{k}": RNG.normal(size=20) for k in range(1, 31)}
LABELS = np.array(["a", "b"])[RNG.integers(2, size=20)]


@pytest.mark.parametrize(
    ("others", "id", "label"),
    [
        ({"id": np.arange(20), "label": LABELS}, "id", "label"),
        ({"label": LABELS}, None, "label"),
        ({"y": np.arange(20) % 3}, None, "y"),
        ({"subject": np.repeat(np.arange(4), 5), "class": LABELS}, None, "class"),
        ({}, None, None),
        # A different identifier in every row is enough, even if a column may be a time.
        ({"id": np.arange(20), "date": np.arange(20) // 3, "label": LABELS}, "id", "label"),
    ],
)
def test_one_series_per_row(others, id, label):
    found = guess(others | STEPS)
    assert (found.wide, found.id, found.label) == (True, id, label)
    assert found.channels == tuple(STEPS)
    assert found.channel_names is None
    assert guess(STEPS | others).channels == tuple(STEPS)
    assert "one series per row, steps=s1..s30" in str(found)


def test_two_channels_in_one_row_are_a_question():
    table = {"id": np.arange(20), **STEPS, **{f"u{k}": STEPS[f"s{k}"] for k in range(1, 31)}}
    with pytest.raises(DataError, match=r"s1\.\.s30 and u1\.\.u30 may be two channels"):
        guess(table)
    assert guess(table, channels="u1..u30").channels == tuple(table)[31:]


def test_a_requested_identifier_decides_between_rows_and_steps():
    table = {"who": [f"n{k}" for k in range(20)], "where": ["p", "q"] * 10, **STEPS}
    assert guess(table, id="who").wide
    found = guess(table, id="where")
    assert (found.wide, found.channels) == (False, tuple(STEPS))


@pytest.mark.parametrize(
    "others",
    [
        # One recording whose label changes rarely, or classes one after the other.
        {"label": ["a"] * 10 + ["b"] * 10},
        # Steps of a subject, or several series of it.
        {"subject": np.repeat(np.arange(4), 5)},
    ],
)
def test_rows_that_may_be_steps_are_a_question(others):
    with pytest.raises(DataError, match=r"whether a row is one step .* s1\.\.s30\. .*--id \(id=\)"):
        guess(others | STEPS)


def test_classes_one_after_the_other_are_rows_if_the_columns_are_named_like_times():
    steps = {f"time_{k}": values for k, values in enumerate(STEPS.values())}
    classes = {"gait": ["a"] * 10 + ["b"] * 10}
    found = guess(classes | steps, label="gait")
    assert (found.wide, found.label, found.channels) == (True, "gait", tuple(steps))
    # Other columns may identify the series.
    assert not guess(classes | {"take": np.repeat(np.arange(4), 5)} | steps, label="gait").wide
    with pytest.raises(DataError, match="rename the steps to time_0"):
        guess(classes | STEPS, label="gait")
    # Or if a model has one channel, unless another column may identify the series.
    assert guess(classes | STEPS, n_channels=1, model_label="gait").wide
    takes = {"take": np.repeat(np.arange(4), 5)}
    found = guess(takes | classes | STEPS, n_channels=1, model_label="gait")
    assert (found.wide, found.id) == (False, "take")
    # Temperatures, perhaps.
    with pytest.raises(DataError, match="whether a row is one step"):
        guess(classes | {f"t{k}": v for k, v in enumerate(STEPS.values())}, label="gait")
    mixed = {"gait": ["a", "b"] * 10} | STEPS
    with pytest.raises(DataError, match="or name the label with --label"):
        guess(mixed)
    assert guess(mixed, label="gait").wide


@pytest.mark.parametrize(
    "others",
    [
        {"recording": np.repeat(np.arange(4), 5)},
        {"recording": np.repeat(np.arange(4), 5), "t": np.arange(20) % 5},
        {"recording": np.repeat(np.arange(4), 5), "key": np.arange(20)},
        {"recording": np.repeat(np.arange(4), 5), "label": np.repeat(["a", "b", "a", "b"], 5)},
    ],
)
def test_numbered_channels_in_long_form_stay_channels(others):
    found = guess(others | STEPS)
    assert (found.wide, found.id, found.channels) == (False, "recording", tuple(STEPS))
    assert not guess(others | STEPS, expect=tuple(STEPS)).wide
    assert not guess(others | STEPS, n_channels=1).wide


def test_columns_that_replace_channels_of_a_model_get_their_names():
    found = guess(long(), channels=["z", "x"], expect=("p", "q"))
    assert (found.channels, found.channel_names) == (("z", "x"), ("p", "q"))
