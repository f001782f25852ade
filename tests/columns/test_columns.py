import numpy as np
import pytest

pytest.importorskip("pyarrow")

import pyarrow as pa

from slts import DataError
from slts.tables import Columns
from tests.tables.guessing import guess


def frame(**columns):
    return pa.table(columns)


IDS = ["a"] * 3 + ["b"] * 3 + ["c"] * 3
STEPS = [0, 1, 2] * 3
VALUES = np.arange(9.0)


def test_common_names_are_recognised():
    table = frame(series_id=IDS, time=STEPS, x=VALUES, y=VALUES, Class=["u"] * 6 + ["v"] * 3)
    found = guess(table)
    assert found == Columns(
        "series_id",
        "time",
        "Class",
        ("x", "y"),
        frozenset({"id", "time", "label", "channels"}),
    )


def test_requested_columns_are_not_guessed():
    table = frame(id=IDS, rec=IDS, t=STEPS, x=VALUES, z=VALUES, y=[1] * 6 + [2] * 3)
    found = guess(table, id="rec", channels=["z", "x"])
    assert (found.id, found.channels) == ("rec", ("z", "x"))
    assert found.guessed == {"time"}
    # x, y, z are coordinates, not data and label.
    assert found.label is None
    assert found.ignored == ("id", "y")


def test_y_is_a_label_beside_other_names():
    assert guess(frame(id=IDS, a=VALUES, y=[1] * 6 + [2] * 3)).label == "y"


def test_a_different_number_in_every_row_does_not_identify_series():
    table = frame(id=np.arange(9), recording=IDS, x=VALUES)
    assert guess(table).id == "recording"


def test_blocks_of_equal_values_are_series():
    table = frame(who=IDS, x=VALUES)
    assert guess(table).id == "who"


def test_the_finer_of_two_is_the_series():
    speaker = ["u"] * 6 + ["v"] * 3
    found = guess(frame(speaker=speaker, take=[1] * 3 + [2] * 3 + [3] * 3, x=VALUES))
    assert (found.id, found.label) == ("take", "speaker")
    found = guess(frame(session=speaker, trial=[1] * 3 + [2] * 3 + [3] * 3, x=VALUES))
    assert found.id == "trial"


def test_a_step_counter_does_not_identify_series():
    found = guess(frame(sample=STEPS, who=IDS, x=VALUES))
    assert (found.id, found.time, found.channels) == ("who", "sample", ("x",))
    assert guess(frame(sample=STEPS, subject=[7] * 3 + [8] * 6, x=VALUES)).id == "subject"
    # Rows by time, as loggers write them.
    assert guess(frame(t=np.repeat([0, 1, 2], 3), machine_id=[1, 2, 3] * 3, x=VALUES)).id == (
        "machine_id"
    )


def test_the_only_text_that_is_constant_within_series_is_the_label():
    table = frame(
        id=IDS, speaker=["u"] * 6 + ["v"] * 3, remark=[f"row {i}" for i in range(9)], x=VALUES
    )
    found = guess(table)
    assert found.label == "speaker"
    assert found.ignored == ("remark",)
    assert guess(frame(id=IDS, file=IDS, x=VALUES)).label is None


@pytest.mark.parametrize("name", ["Unnamed: 0", "__index_level_0__", "__null_dask_index__"])
def test_row_numbers_of_frames_are_no_channels(name):
    table = pa.table({name: np.arange(9), "id": IDS, "x": VALUES})
    assert guess(table).channels == ("x",)


def test_moments_are_times():
    when = np.datetime64("2024-01-01") + np.arange(9)
    assert guess(frame(id=IDS, measured=when, x=VALUES)).time == "measured"


def test_a_span_of_channels():
    table = frame(id=IDS, a1=VALUES, a2=VALUES, a3=VALUES, b=VALUES)
    assert guess(table, channels=["a1..a3"]).channels == ("a1", "a2", "a3")


def test_channels_of_a_model_have_its_order():
    table = frame(id=IDS, b=VALUES, extra=VALUES, a=VALUES)
    assert guess(table, expect=("a", "b")).channels == ("a", "b")
    # In another order they are the same channels; other columns replace them one by one.
    assert guess(table, expect=("a", "b"), channels=["b", "a"]).channels == ("a", "b")
    assert guess(table, expect=("a", "b"), channels=["extra", "a"]).channels == ("extra", "a")
    with pytest.raises(DataError, match="no column 'c', a channel of the model"):
        guess(table, expect=("a", "c"))


ABC = np.repeat(["a", "b", "c"], 3)
ONE_TWO_THREE = np.repeat([1, 2, 3], 3)
TWO = np.repeat([1, 1, 2], 3)


@pytest.mark.parametrize(
    ("columns", "classes", "label"),
    [
        ({"speaker": ONE_TWO_THREE}, [1, 2, 3], "speaker"),
        # Text files give text where others give numbers.
        ({"speaker": ONE_TWO_THREE}, ["01", "02", "03"], "speaker"),
        ({"speaker": ONE_TWO_THREE.astype(float)}, [1, 2, 3], "speaker"),
        ({"speaker": ONE_TWO_THREE.astype(str)}, [3, 2, 1], "speaker"),
        ({"ok": ONE_TWO_THREE > 1}, ["true", "false"], "ok"),
        # Other columns hold other values, only some of the classes, or change within series.
        ({"speaker": ABC, "mood": np.repeat(["u", "v", "v"], 3)}, ["a", "b", "c", "d"], "speaker"),
        ({"fold": TWO, "speaker": ONE_TWO_THREE}, [1, 2, 3], "speaker"),
        ({"heard": STEPS, "speaker": np.repeat([0, 1, 2], 3)}, [0, 1, 2], "speaker"),
        ({"class": np.repeat(["u", "v", "v"], 3), "speaker": ABC}, ["a", "b", "c"], "speaker"),
        # A column named label stays the label, although another column holds more classes.
        ({"label": TWO, "heard": ONE_TWO_THREE}, [1, 2, 3], "label"),
        ({"label": ABC, "heard": ABC}, ["a", "b", "c"], "label"),
        # Not enough to tell.
        ({"fold": TWO}, [1, 2, 3], None),
        ({"speaker": ONE_TWO_THREE, "heard": ONE_TWO_THREE}, [1, 2, 3], None),
        # Reading raises an error about the values later.
        ({"class": ABC}, ["u", "v"], "class"),
    ],
)
def test_the_label_of_a_model_is_recognised_by_its_classes(columns, classes, label):
    table = frame(id=IDS, x=VALUES, **columns)
    assert guess(table, expect=("x",), classes=classes).label == label
    assert guess(table, channels=["x"], classes=classes).label == label


def test_classes_do_not_turn_a_possible_channel_into_a_label():
    table = frame(id=IDS, x=VALUES, z=STEPS)
    found = guess(table, classes=[0, 1, 2])
    assert (found.label, found.channels) == (None, ("x", "z"))


def test_the_label_in_list_form_is_recognised_by_the_classes_of_a_model():
    table = frame(name=["a", "b"], speaker=[1, 2], x=[[1.0, 2.0], [3.0]])
    assert guess(table, expect=["x"]).label is None
    assert guess(table, expect=["x"], classes=[2, 1]).label == "speaker"


def test_channels_are_a_list_or_separated_by_commas():
    table = frame(id=IDS, x=VALUES, y=VALUES, z=VALUES)
    for channels in (["z", "x"], "z,x", " z , x", ("z", "x")):
        assert guess(table, channels=channels).channels == ("z", "x")
    assert guess(table, channels="x..y, z").channels == ("x", "y", "z")
    odd = table.rename_columns(["id", "x,y", "y", "z"])
    assert guess(odd, channels="x,y").channels == ("x,y",)


def test_a_column_named_label_may_hold_other_classes():
    label, smoker = ["yes", "no", "maybe"], ["yes", "no", "yes"]
    table = frame(name=["a", "b", "c"], label=label, smoker=smoker, x=[[1.0], [3.0], [2.0]])
    assert guess(table, expect=["x"], classes=["no", "yes"]).label == "label"
    # Nothing in common: it is not the label.
    table = frame(name=["a", "b", "c"], label=["u", "v", "w"], smoker=smoker, x=[[1.0]] * 3)
    assert guess(table, expect=["x"], classes=["no", "yes"]).label == "smoker"


def test_a_list_is_a_whole_series():
    table = frame(name=["a", "b"], label=["u", "v"], x=[[1.0, 2.0], [3.0]], y=[[1, 2], [3]])
    found = guess(table)
    assert (found.id, found.label, found.channels) == ("name", "label", ("x", "y"))
    with pytest.raises(DataError, match="order of the lists, so a time column"):
        guess(table, time="name")
    with pytest.raises(DataError, match="expected lists of numbers"):
        guess(frame(x=[["a"], ["b"]]))


@pytest.mark.parametrize(
    ("table", "wanted", "message"),
    [
        (frame(x=VALUES, z=VALUES), {}, r"--id \(id=\); the columns are 'x', 'z'"),
        (
            frame(id=IDS, x=VALUES),
            {"id": "rec"},
            r"no column 'rec' \(id\). Its columns are 'id', 'x'",
        ),
        (frame(id=IDS, x=VALUES), {"channels": ["q"]}, r"no column 'q' \(channels\)"),
        (
            frame(id=IDS, day=IDS, x=VALUES),
            {"id": ["id", "day"], "time": "t"},
            r"no column 't' \(time\). Its columns are 'id', 'day', 'x'$",
        ),
        (frame(id=IDS, x=VALUES), {"channels": []}, "one or more distinct"),
        (frame(id=IDS, x=VALUES), {"channels": ["x", "x"]}, "one or more distinct"),
        (frame(id=IDS, x=VALUES), {"time": "id"}, r"'id' \(time\) holds text such as 'a'"),
        (frame(id=IDS, x=VALUES), {"id": "x", "channels": ["x"]}, "cannot have two roles"),
        (frame(id=IDS), {}, "no numeric column left"),
        (frame(id=IDS, x=IDS), {"channels": ["x"]}, "'x' holds text such as 'a', expected numb"),
        (pa.table([IDS, VALUES, VALUES], names=["id", "x", "x"]), {}, "two columns named 'x'"),
        (frame(id=[{"a": 1}] * 9, x=VALUES), {"id": "id"}, "expected text or numbers"),
    ],
)
def test_columns_that_cannot_be_used(table, wanted, message):
    with pytest.raises(DataError, match=message):
        guess(table, **wanted)


def test_columns_are_printed_briefly():
    assert str(Columns("id", None, None, tuple(f"c{i}" for i in range(1, 13)))) == (
        "id=id, time=none (steps are in the order of the rows), channels=c1..c12"
    )
    many = tuple("abcdefghij")
    assert str(Columns(None, None, "y", many, ignored=("z",))) == (
        "time=none (steps are in the order of the rows), label=y, channels=a,b,c,d,e,f and 4 more, "
        "not used: z"
    )
