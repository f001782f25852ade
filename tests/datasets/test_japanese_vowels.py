"""`load`: the places where Japanese Vowels are found, and errors for other content."""

import importlib.util
import sys
import zipfile

import numpy as np
import pytest

from slts.datasets import load
from slts.errors import DataError

SIZES = {"train": (30,) * 9, "test": (31, 35, 88, 44, 29, 24, 40, 50, 29)}
TS = {"train": "JapaneseVowels_TRAIN.ts", "test": "JapaneseVowels_TEST.ts"}
BLOCKS = {"train": "ae.train", "test": "ae.test"}


@pytest.fixture
def folder(monkeypatch, tmp_path):
    """The folder SLTS_DATA; aeon is hidden."""
    monkeypatch.setenv("SLTS_DATA", str(tmp_path))
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    return tmp_path


@pytest.fixture(scope="module")
def series():
    """Small stand-ins for the series of both parts, (steps, channels), sorted by speaker."""
    rng = np.random.default_rng(0)
    return {p: [rng.normal(size=(1 + k % 3, 12)) for k in range(sum(s))] for p, s in SIZES.items()}


def as_ts(series, n_channels=12):
    files = {}
    for part, name in TS.items():
        labels = np.repeat(list("123456789"), SIZES[part])
        lines = ["@classLabel true 1 2 3 4 5 6 7 8 9", "@data"]
        for x, label in zip(series[part], labels, strict=True):
            channels = (",".join(map(repr, c)) for c in x.T[:n_channels].tolist())
            lines.append(":".join((*channels, label)))
        files[name] = "\n".join(lines)
    return files


def as_blocks(series):
    rows = {
        p: ["\n".join(" ".join(map(repr, r)) for r in x.tolist()) for x in series[p]] for p in TS
    }
    return {BLOCKS[part]: "\n \n".join(blocks) + "\n" for part, blocks in rows.items()}


def store(files, place):
    if place.suffix == ".zip":
        with zipfile.ZipFile(place, "w") as archive:
            for name, text in files.items():
                archive.writestr(name, text)
    else:
        place.mkdir(exist_ok=True)
        for name, text in files.items():
            (place / name).write_text(text)


@pytest.mark.parametrize("form", [as_ts, as_blocks])
@pytest.mark.parametrize(
    "place", ["", "japanese_vowels", "japanese_vowels.zip", "japanese+vowels.zip"]
)
def test_every_form_and_place_gives_the_same_series(form, place, folder, series):
    store(form(series), folder / place)
    X, y = load("japanese_vowels")
    for x, expected in zip(X, [*series["train"], *series["test"]], strict=True):
        np.testing.assert_array_equal(x.T, expected)
    assert X.channel_names[::11] == ("cepstrum_1", "cepstrum_12")
    assert [int(np.sum(y[270:] == str(s))) for s in range(1, 10)] == list(SIZES["test"])
    test, y_test = load("japanese_vowels", "test")
    assert (test, y_test.tolist()) == (X[270:], y[270:].tolist())


def test_content_that_differs_from_what_is_published_is_an_error(folder, series):
    whole = as_blocks(series)
    cases = {
        "expected 270": whole | {"ae.train": whole["ae.train"].split("\n \n", 1)[1]},
        "11 channels, expected 12": as_ts(series, 11),
        "rows of numbers: .*'x1'": whole | {"ae.train": "x" + whole["ae.train"].lstrip("-")[:9]},
        "NaN": whole | {"ae.train": "nan" + whole["ae.train"][whole["ae.train"].index(" ") :]},
    }
    cases["rows of numbers: .*'x1'"]["ae.train"] = "x1 " + whole["ae.train"]
    for message, files in cases.items():
        store(files, folder / "japanese_vowels.zip")
        with pytest.raises(DataError, match=message):
            load("japanese_vowels")


def test_a_damaged_archive_is_an_error(folder, series):
    store(as_blocks(series), folder / "japanese_vowels.zip")
    whole = (folder / "japanese_vowels.zip").read_bytes()
    (folder / "japanese_vowels.zip").write_bytes(whole[:-100])
    with pytest.raises(DataError, match=r"japanese_vowels\.zip is damaged"):
        load("japanese_vowels")


def test_missing_data_are_explained(folder, monkeypatch):
    with pytest.raises(FileNotFoundError, match=r"pip install .*slts\[demo\].* set SLTS_DATA"):
        load("japanese_vowels")
    monkeypatch.setenv("SLTS_DATA", str(folder / "absent"))
    with pytest.raises(DataError, match=r"SLTS_DATA must be a folder, got .*absent"):
        load("japanese_vowels")


def test_names_and_splits_are_checked():
    with pytest.raises(DataError, match="name must be 'japanese_vowels', got 'auslan'"):
        load("auslan")
    with pytest.raises(DataError, match="split must be 'train', 'test' or None, got 'valid'"):
        load("japanese_vowels", "valid")


def test_vowels_come_from_aeon_without_importing_it(monkeypatch):
    if importlib.util.find_spec("aeon") is None:
        pytest.skip("aeon is not installed")
    monkeypatch.delenv("SLTS_DATA", raising=False)
    loaded = "aeon" in sys.modules
    X, y = load("japanese_vowels")
    assert (len(X), len(y), X.lengths.min(), X.lengths.max()) == (640, 640, 7, 29)
    assert ("aeon" in sys.modules) == loaded
