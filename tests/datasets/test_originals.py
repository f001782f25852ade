"""Every published form gives the same series; wrong content raises an error."""

import numpy as np
import pytest

from slts.datasets import load
from slts.errors import DataError
from tests.datasets import miniature
from tests.datasets.miniature import to_folder, to_tar, to_zip

ARCHIVES = {
    "japanese_vowels": ("japanese_vowels.zip", "japanese+vowels.zip"),
    "arabic_digits": ("arabic_digits.zip", "spoken+arabic+digit.zip"),
    "auslan": ("auslan.zip", "australian+sign+language+signs+high+quality.zip"),
    "robot_lp2": ("robot_failures.zip", "robot+execution+failures.zip"),
}
FORMS = (
    "zip",
    "uci zip",
    "nested zip",
    "upper-case zip",
    "folder",
    "named folder",
    "nested folder",
)


@pytest.fixture
def place(monkeypatch, tmp_path):
    miniature.shrink(monkeypatch)
    monkeypatch.setenv("SLTS_DATA", str(tmp_path))
    # Japanese Vowels would otherwise be found in aeon's wheel.
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    return tmp_path


def files_of(name, rng):
    return getattr(miniature, "robot_failures" if name.startswith("robot") else name)(rng)


def store(form, name, files, folder):
    short, uci = ARCHIVES[name]
    if form == "zip":
        (folder / short).write_bytes(to_zip(files))
    elif form == "uci zip":
        (folder / uci).write_bytes(to_zip(files | {"documentation.html": "<p>", "x.jpg": "?"}))
    elif form == "nested zip":
        nested = {f"some folder/{k}": v for k, v in files.items()}
        (folder / short).write_bytes(to_zip(nested | {"__MACOSX/some folder/._x": "junk"}))
    elif form == "upper-case zip":
        keep = name == "auslan"
        (folder / short).write_bytes(
            to_zip({k if keep else k.upper(): v for k, v in files.items()})
        )
    elif form == "folder":
        to_folder(files, folder)
    elif form == "named folder":
        to_folder(files, folder / short.removesuffix(".zip"))
    elif form == "nested folder":
        to_folder(files, folder / "downloads" / "2024")


@pytest.mark.parametrize("name", ARCHIVES)
def test_every_form_gives_the_same_series(name, place, monkeypatch, rng):
    files, found = files_of(name, rng), {}
    for form in FORMS:
        folder = place / form
        folder.mkdir()
        store(form, name, files, folder)
        monkeypatch.setenv("SLTS_DATA", str(folder))
        found[form] = load(name)
    X, y = found["zip"]
    for form, (X_form, y_form) in found.items():
        assert X_form == X, form
        np.testing.assert_array_equal(y_form, y, form)


@pytest.mark.parametrize("newline", ["\n", "\r\n"])
def test_vowels_as_blocks_and_as_ts_are_the_same(newline, place, rng):
    files = miniature.japanese_vowels(rng)
    ts = miniature.vowels_as_ts(files)
    results = []
    for form in (files, ts):
        encoded = {name: text.replace("\n", newline) for name, text in form.items()}
        (place / "japanese_vowels.zip").write_bytes(to_zip(encoded))
        results.append(load("japanese_vowels"))
    (X, y), (X_ts, y_ts) = results
    assert X_ts == X
    np.testing.assert_array_equal(y, y_ts)
    assert y.dtype.kind == "U"
    assert [int((y[270:] == str(s)).sum()) for s in range(1, 10)] == list(miniature.JV_TEST)
    assert X.channel_names[0] == "cepstrum_1"


def test_a_part_of_the_wrong_size_is_refused(place, rng):
    ts = miniature.vowels_as_ts(miniature.japanese_vowels(rng))
    name = "JapaneseVowels_TRAIN.ts"
    ts[name] = ts[name].rstrip("\n").rpartition("\n")[0]
    (place / "japanese_vowels.zip").write_bytes(to_zip(ts))
    for split in (None, "train"):
        with pytest.raises(DataError, match=r"269 series in the train part, expected 270"):
            load("japanese_vowels", split)
    assert len(load("japanese_vowels", "test")[0]) == 370


def test_parts_join_to_the_whole(place, rng):
    (place / "arabic_digits.zip").write_bytes(to_zip(miniature.arabic_digits(rng)))
    X, y = load("arabic_digits")
    X_train, y_train = load("arabic_digits", "train")
    X_test, y_test = load("arabic_digits", "test")
    assert (len(X_train), len(X_test)) == (20, 10)
    assert type(X).concatenate([X_train, X_test]) == X
    np.testing.assert_array_equal(np.concatenate([y_train, y_test]), y)
    assert y_train.tolist() == np.repeat(np.arange(10), 2).tolist()
    assert y.dtype.kind == "i"


def test_block_values_arrive_step_by_step(place, rng):
    files = miniature.arabic_digits(rng)
    (place / "arabic_digits.zip").write_bytes(to_zip(files))
    X, _ = load("arabic_digits", "test")
    blocks = files["Test_Arabic_Digit.txt"].split("            \n")[1:]
    for x, block in zip(X, blocks, strict=True):
        expected = [[float(v) for v in line.split()] for line in block.strip().split("\n")]
        np.testing.assert_array_equal(x.T, expected)


@pytest.mark.parametrize("mode", ["w:gz", "w:bz2", "w"])
@pytest.mark.parametrize("inside", ["zip", "folder", "alone"])
def test_auslan_in_a_tar_archive(mode, inside, place, rng):
    files = miniature.auslan(rng)
    tar = to_tar({f"./{name}": text for name, text in files.items()}, mode)
    suffix = {"w:gz": ".tar.gz", "w:bz2": ".tar.bz2", "w": ".tar"}[mode]
    if inside == "zip":
        (place / "auslan.zip").write_bytes(to_zip({f"tctodd{suffix}": tar, "README": "hello"}))
    else:
        name = "tctodd" if inside == "folder" else "auslan"
        (place / f"{name}{suffix}").write_bytes(tar)
    X, y = load("auslan")
    assert len(X) == 18
    assert list(dict.fromkeys(y.tolist())) == ["alive", "flash-light"]


def test_auslan_signs_are_ordered_and_one_is_renamed(place, rng):
    files = miniature.auslan(rng)
    to_folder(files, place)
    X, y = load("auslan", n_classes=3)
    assert y.tolist() == np.repeat(miniature.SIGNS, 9).tolist()
    first = np.array([line.split() for line in files["tctodd1/her-1.tsd"].splitlines()], float)
    np.testing.assert_array_equal(X[18].T, first)
    assert X.channel_names[11] == "right_x"


def test_two_copies_of_auslan_are_not_mixed(place, rng):
    to_folder(miniature.auslan(rng), place / "a")
    to_folder(miniature.auslan(rng), place / "b")
    X, _ = load("auslan")
    to_folder(miniature.auslan(rng), place / "b")
    assert load("auslan")[0] == X


def test_a_dead_link_in_the_place_of_the_tar_archive_is_named(place):
    (place / "auslan.zip").write_bytes(to_zip({"tctodd.tar.gz": "../auslan2/tctodd.tar.gz"}))
    with pytest.raises(DataError, match=r"auslan\.zip: tctodd\.tar\.gz is neither a zip nor a tar"):
        load("auslan")


def test_robot_labels_head_their_series(place, rng):
    (place / "robot_failures.zip").write_bytes(to_zip(miniature.robot_failures(rng)))
    X, y = load("robot_lp3")
    assert y.tolist() == [f"class_{i % 4}" for i in range(47)]
    assert X.lengths.tolist() == [15] * 47
    assert X.channel_names == ("Fx", "Fy", "Fz", "Tx", "Ty", "Tz")


def break_vowels(files):
    yield (
        r"ae\.train has 269 series, expected 270",
        files | {"ae.train": files["ae.train"].split("\n\n", 1)[1]},
    )
    yield r"has no JapaneseVowels_TEST\.ts or ae\.test", {"ae.train": files["ae.train"]}
    narrow = {
        name: "\n".join(line.rpartition(" ")[0] for line in text.split("\n"))
        for name, text in files.items()
    }
    yield r"11 channels, expected 12", narrow
    yield r"rows of numbers: .*'x1'", files | {"ae.test": "x1 " + files["ae.test"]}
    yield r"ae\.test is empty", files | {"ae.test": " \n"}
    yield r"is not text", files | {"ae.test": b"\xff\xfe\x00"}
    joined = files["ae.test"].replace("\n\n", "\n", 1)
    yield r"ae\.test has 369 series, expected 370", files | {"ae.test": joined}
    yield (
        r"does not consist of rows",
        files | {"ae.test": files["ae.test"].rstrip().rpartition(" ")[0]},
    )
    yield r"NaN", files | {"ae.test": "nan" + files["ae.test"][files["ae.test"].index(" ") :]}


def test_vowels_that_contradict_the_published_counts_are_refused(place, rng):
    for message, files in break_vowels(miniature.japanese_vowels(rng)):
        (place / "japanese_vowels.zip").write_bytes(to_zip(files))
        with pytest.raises(DataError, match=message):
            load("japanese_vowels")


def test_unpublished_lengths_raise_an_error(place, rng):
    files = miniature.japanese_vowels(rng)
    first, rest = files["ae.train"].split("\n\n", 1)
    files["ae.train"] = "\n".join([first] * 6) + "\n\n" + rest
    (place / "japanese_vowels.zip").write_bytes(to_zip(files))
    with pytest.raises(DataError, match=r"7 to 42 steps, expected 7 to 29"):
        load("japanese_vowels")


def test_missing_classes_are_refused(place, rng):
    files = miniature.robot_failures(rng)
    files["lp1.data"] = files["lp1.data"].replace("class_3", "class_2")
    (place / "robot_failures.zip").write_bytes(to_zip(files))
    with pytest.raises(DataError, match=r"it has 3 classes, expected 4"):
        load("robot_lp1")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda t: t.split("\n\n\n", 1)[1], r"87 series, expected 88"),
        (lambda t: t[t.index("\n") + 1 :], r"does not begin with a label"),
        (lambda t: "class_9\n" + t, r"no rows under label 1, 'class_9'"),
        (lambda t: "", r"does not begin with a label"),
    ],
)
def test_broken_robot_files_are_refused(change, message, place, rng):
    files = miniature.robot_failures(rng)
    files["lp1.data"] = change(files["lp1.data"])
    (place / "robot_failures.zip").write_bytes(to_zip(files))
    with pytest.raises(DataError, match=message):
        load("robot_lp1")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda f: f.pop("tctodd4/alive-1.tsd"), r"26 series of 3 signs, 8 series of 'alive'"),
        (
            lambda f: [f.pop(n) for n in list(f) if "flash" in n],
            r"18 series of 2 signs; expected 27, 9 of each of 3 signs",
        ),
        (lambda f: f.update({"tctodd1/alive-1.tsd": "1 2\n"}), r"alive-1\.tsd has 2 channels"),
        (
            lambda f: f.update({"tctodd1/alive-1.tsd": "one\n"}),
            r"alive-1\.tsd does not consist of rows",
        ),
        (lambda f: f.clear() or f.update(x="1"), r"neither tctodd1/"),
    ],
)
def test_broken_auslan_archives_are_refused(change, message, place, rng):
    files = miniature.auslan(rng)
    change(files)
    (place / "auslan.zip").write_bytes(to_zip(files))
    with pytest.raises(DataError, match=message):
        load("auslan")


def test_splits_are_checked(place, rng):
    with pytest.raises(DataError, match=r"'auslan' has no published training and test sets"):
        load("auslan", "train")
    with pytest.raises(DataError, match=r"split must be 'train', 'test' or None, got 'valid'"):
        load("japanese_vowels", "valid")
