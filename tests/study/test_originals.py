"""The paper's data sets: their published counts, and facts that the documentation states."""

import functools
import io
import tarfile
import zipfile

import numpy as np
import pytest

from slts.errors import DataError
from study import originals
from study.paper import TABLE_1

load_once = functools.lru_cache(originals.load)


@pytest.mark.slow
@pytest.mark.parametrize("name", TABLE_1)
def test_counts_are_those_published(name, data_folder):
    X, y = load_once(name)
    found = (len(X), X.lengths.min(), X.lengths.max(), X.n_channels, len(np.unique(y)))
    assert (found, len(X.channel_names)) == (TABLE_1[name], X.n_channels)


@pytest.mark.slow
@pytest.mark.parametrize("name", originals.N_TRAIN)
def test_parts_have_the_published_sizes(name, data_folder):
    (train, y_train), (X, y) = originals.load(name, "train"), load_once(name)
    assert (len(train), X[: len(train)]) == (originals.N_TRAIN[name], train)
    np.testing.assert_array_equal(y[: len(train)], y_train)
    assert X[len(train) :] == originals.load(name, "test")[0]


@pytest.mark.slow
def test_arabic_digits_agree_with_a_plain_reading(arabic_digits):
    train, y_train, test, y_test = arabic_digits
    X, y = load_once("arabic_digits")
    np.testing.assert_array_equal(y, np.concatenate([y_train, y_test]))
    np.testing.assert_array_equal(X.values, np.concatenate([x.T for x in (*train, *test)]))
    # 82 series of the training part are copies.
    assert 6600 - len({x.tobytes() for x in X[:6600].to_list("time_first")}) == 82


@pytest.mark.slow
def test_auslan_has_95_signs_of_27_series(data_folder):
    X, y = originals.load("auslan", n_signs=95)
    signs, counts = np.unique(y, return_counts=True)
    assert (len(signs), set(counts.tolist())) == (95, {27})
    assert "her" not in signs
    assert {"his_hers", "flash-light", "not-my-problem"} <= set(signs.tolist())
    X_25, y_25 = load_once("auslan")
    assert (X[:675], [y_25[0], y_25[-1]]) == (X_25, ["alive", "go"])


@pytest.mark.slow
def test_lp2_and_lp3_have_the_same_series(data_folder):
    (X2, _), (X3, _) = load_once("robot_lp2"), load_once("robot_lp3")
    assert {x.tobytes() for x in X2} == {x.tobytes() for x in X3}
    assert load_once("robot_lp5")[1][0] == "normal"


def to_zip(path, files):
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in files.items():
            archive.writestr(name, content)


def to_tar(files):
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as archive:
        for name, text in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(text)
            archive.addfile(member, io.BytesIO(text.encode()))
    return buffer.getvalue()


@pytest.fixture
def folder(monkeypatch, tmp_path):
    monkeypatch.setenv("SLTS_DATA", str(tmp_path))
    return tmp_path


def signs():
    row = "\t".join(map(str, range(22))) + "\n"
    names = [f"sign{k:02}" for k in range(94)]
    files = {f"tctodd{1 + j % 9}/{n}-{j // 9}.tsd": row * 2 for n in names for j in range(27)}
    her = ("her" if j % 9 == 0 else "his_hers" for j in range(27))
    return files | {f"tctodd{1 + j % 9}/{n}-{j // 9}.tsd": row for j, n in enumerate(her)}


def test_auslan_may_be_packed_in_a_tar_archive(folder):
    files = signs()
    to_zip(folder / "auslan.zip", files)
    X, y = originals.load("auslan", n_signs=2)
    assert list(dict.fromkeys(y.tolist())) == ["his_hers", "sign00"]
    assert X.lengths.tolist() == [1] * 27 + [2] * 27
    to_zip(folder / "auslan.zip", {"tctodd.tar.gz": to_tar(files)})
    assert originals.load("auslan", n_signs=2)[0] == X
    files.pop("tctodd1/sign05-0.tsd")
    to_zip(folder / "auslan.zip", files)
    with pytest.raises(DataError, match=r"auslan\.zip has 2564 series of 95 signs"):
        originals.load("auslan")


def test_robot_labels_head_their_series(folder):
    rows = "\t" + "\t".join("123456") + "\n"
    text = "".join(f"class_{k % 4}\n{rows * 15}\n\n" for k in range(88))
    to_zip(folder / "robot_failures.zip", {"lp1.data": text})
    X, y = originals.load("robot_lp1")
    assert (X.lengths == 15).all()
    assert y.tolist() == [f"class_{k % 4}" for k in range(88)]
    to_zip(folder / "robot_failures.zip", {"lp1.data": text.replace("class_3", "class_2")})
    with pytest.raises(DataError, match="88 series of 3 classes, expected 88 of 4"):
        originals.load("robot_lp1")


def test_missing_archives_and_other_names_are_errors(folder, monkeypatch):
    with pytest.raises(FileNotFoundError, match=r"arabic_digits\.zip .*SLTS_DATA"):
        originals.load("arabic_digits")
    monkeypatch.delenv("SLTS_DATA")
    with pytest.raises(FileNotFoundError, match=r"robot_failures\.zip"):
        originals.load("robot_lp1")
    with pytest.raises(DataError, match="'auslan' with a part 'train'"):
        originals.load("auslan", "train")
