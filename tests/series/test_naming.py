"""Batches carry what users call their series, and the times of their steps."""

import pickle

import numpy as np
import pandas as pd
import pytest

import slts
from slts.errors import DataError
from slts.quantities import class_name, time_texts
from slts.series import SeriesBatch
from slts.series.batch import names_of, plain_times


@pytest.fixture
def frame(rng):
    steps = [(17, 0.5 * t) for t in range(4)] + [(18, 0.5 * t) for t in range(6)]
    table = pd.DataFrame(steps, columns=["recording_id", "seconds"])
    return table.assign(x=rng.normal(size=10), y=rng.normal(size=10))


@pytest.mark.parametrize(("column", "expected"), [
    ("recording", "recording 17"), ("recording_id", "recording 17"),
    ("recordingID", "recording 17"), ("Subject No", "Subject 17"), ("valid", "valid 17"),
    ("id", "series 17"), (None, "series 17"),
])  # fmt: skip
def test_a_number_gets_the_noun_of_its_column(column, expected):
    assert names_of([17], column).tolist() == names_of(["17"], column).tolist() == [expected]


def test_only_whole_numbers_and_single_letters_get_a_noun():
    names = names_of(["7.0", "-2", "7.5", "left"]).tolist()
    assert names == ["series 7", "series -2", "7.5", "left"]
    shown = {"3": "class 3", "-1.5": "class -1.5", "a": "class a", "up": "up", "3rd": "3rd"}
    assert {label: class_name(label) for label in shown} == shown


def test_times_are_numbers_moments_or_seconds():
    assert plain_times(np.array([1, 2])).dtype == np.float64
    moments = plain_times(np.array(["2024-01-01"], dtype="datetime64[D]"))
    assert moments.dtype == np.dtype("datetime64[ns]")
    assert plain_times(np.array([1500], dtype="timedelta64[ms]")).tolist() == [1.5]
    assert plain_times(np.array(["noon"])) is None


def test_a_frame_gives_names_and_times(frame):
    frame["when"] = pd.Timestamp("2024-03-01") + pd.to_timedelta(frame.seconds, unit="s")
    shuffled = frame.sample(frac=1, random_state=0)
    for time in ("seconds", "when"):
        batch = slts.as_series(shuffled, id="recording_id", time=time, channels=["x", "y"])
        assert sorted(batch.series_names) == ["recording 17", "recording 18"]
        at = batch.series_names.index("recording 18")
        expected = plain_times(frame[time].to_numpy()[4:])
        np.testing.assert_array_equal(batch[at : at + 1].times, expected)


def test_selections_keep_names_and_times(frame):
    batch = slts.as_series(frame, id="recording_id", time="seconds")
    for chosen in (batch[1:], batch[[1]], batch[np.array([False, True])]):
        assert chosen.series_names == ("recording 18",)
        np.testing.assert_array_equal(chosen.times, 0.5 * np.arange(6))
    joined = SeriesBatch.concatenate([batch[1:], batch[:1]])
    assert joined.series_names == ("recording 18", "recording 17")
    assert len(joined.times) == 10
    copy = pickle.loads(pickle.dumps(batch))
    assert copy.series_names == batch.series_names
    np.testing.assert_array_equal(copy.times, batch.times)
    assert SeriesBatch.concatenate([batch, batch.anonymous()]).series_names is None


@pytest.mark.parametrize(("given", "message"), [
    ({"series_names": ["a"]}, "one name per series, 2, got 1 names"),
    ({"series_names": "ab"}, "one name per series, 2, got a text"),
    ({"times": [0.0, 1.0]}, "times must be 3 finite numbers or dates"),
    ({"times": [0.0, 1.0, np.nan]}, "times must be 3 finite numbers or dates"),
    ({"times": ["a", "b", "c"]}, "times must be 3 finite numbers or dates"),
])  # fmt: skip
def test_names_and_times_must_fit_the_series(given, message):
    with pytest.raises(DataError, match=message):
        SeriesBatch(np.zeros((3, 1)), [0, 1, 3], **given)


def test_times_are_written_as_precisely_as_steps_are_apart():
    """To a hundredth of the usual distance of two steps, which is at most one."""
    assert time_texts(np.array([0.0, 0.001, 0.0020449, 5.0])) == ["0", "0.001", "0.00204", "5"]
    assert time_texts(np.array([0.0, 1e-6, 2e-6, 1.126, 2.126])) == ["0", "0", "0", "1.13", "2.13"]
    assert time_texts(np.array([0.0, 10.127, 20.0])) == ["0", "10.13", "20"]
    assert time_texts(np.array([3.14159])) == ["3.14"]
    assert time_texts(np.array([2.5, 2.5])) == ["2.5", "2.5"]


@pytest.mark.parametrize(("gap", "text"), [
    (np.timedelta64(1, "D"), "2024-03-01"), (np.timedelta64(23, "h"), "2024-03-01T12:00:00"),
    (np.timedelta64(1, "s"), "2024-03-01T12:00:00"),
    (np.timedelta64(1, "ms"), "2024-03-01T12:00:00.000"),
    (np.timedelta64(999, "us"), "2024-03-01T12:00:00.000000"),
    (np.timedelta64(999, "ns"), "2024-03-01T12:00:00.000000000"),
])  # fmt: skip
def test_dates_are_written_in_the_unit_in_which_steps_differ(gap, text):
    first = np.datetime64("2024-03-01T12:00:00", "ns")
    assert time_texts(first + np.arange(3) * gap)[0] == text
    assert time_texts(np.array([first])) == ["2024-03-01T12:00:00.000000000"]
