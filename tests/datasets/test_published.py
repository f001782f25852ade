"""The published data sets: their counts, and facts that the documentation states."""

import functools

import numpy as np
import pytest

from slts.datasets import info, list_datasets, load

pytestmark = pytest.mark.slow
load_once = functools.lru_cache(load)


@pytest.fixture(autouse=True)
def originals(data_folder, monkeypatch):
    monkeypatch.setenv("SLTS_DATA", str(data_folder))


@pytest.mark.parametrize("name", list_datasets())
def test_counts_are_those_published(name):
    entry = info(name)
    X, y = load_once(name)
    assert (len(X), X.n_channels, len(np.unique(y))) == (
        entry.n_series,
        entry.n_channels,
        entry.n_classes,
    )
    assert (X.lengths.min(), X.lengths.max()) == entry.lengths
    assert X.channel_names == entry.channel_names


def test_parts_have_the_published_sizes():
    entry = info("japanese_vowels")
    assert len(load("japanese_vowels", "train")[0]) == entry.n_train
    assert len(load("japanese_vowels", "test")[0]) == entry.n_test


def test_arabic_digits_agree_with_a_plain_reading(arabic_digits):
    train, y_train, test, y_test = arabic_digits
    X, y = load_once("arabic_digits")
    np.testing.assert_array_equal(y, np.concatenate([y_train, y_test]))
    np.testing.assert_array_equal(X.values, np.concatenate([x.T for x in (*train, *test)]))


def test_82_training_series_of_the_digits_are_repetitions():
    X = load_once("arabic_digits")[0][: info("arabic_digits").n_train]
    assert len(X) - len({x.tobytes() for x in X.to_list("time_first")}) == 82


def test_auslan_has_95_signs_of_27_series():
    X, y = load("auslan", n_classes=95)
    signs, counts = np.unique(y, return_counts=True)
    assert len(signs) == 95
    assert set(counts.tolist()) == {27}
    assert "her" not in signs
    assert {"his_hers", "flash-light", "not-my-problem"} <= set(signs.tolist())
    X_25, y_25 = load_once("auslan")
    assert X[:675] == X_25
    assert list(dict.fromkeys(y_25.tolist()))[:1] + y_25[-1:].tolist() == ["alive", "go"]


def test_lp2_and_lp3_have_the_same_series():
    (X2, _), (X3, _) = load_once("robot_lp2"), load_once("robot_lp3")
    assert {x.tobytes() for x in X2} == {x.tobytes() for x in X3}
    assert load_once("robot_lp5")[1][0] == "normal"
