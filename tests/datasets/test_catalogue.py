"""Facts about the data sets, and errors for wrong names and numbers."""

import dataclasses

import pytest

import slts.datasets
from slts.datasets import info, list_datasets
from slts.errors import DataError


def test_list_names_every_set():
    assert list_datasets() == (
        "japanese_vowels",
        "arabic_digits",
        "auslan",
        *(f"robot_lp{i}" for i in range(1, 6)),
    )
    assert slts.datasets.list() == list_datasets()


def test_a_star_import_leaves_the_builtin_list_alone():
    namespace = {}
    exec("from slts.datasets import *", namespace)
    assert "list" not in namespace
    assert set(slts.datasets.__all__) <= namespace.keys()


@pytest.mark.parametrize("name", list_datasets())
def test_facts_are_complete_and_consistent(name):
    entry = info(name)
    assert entry.name == name
    assert entry.licence == "CC BY 4.0"
    assert len(entry.channel_names) == entry.n_channels == len(set(entry.channel_names))
    assert entry.lengths[0] <= entry.lengths[1]
    assert entry.page.startswith("https://archive.ics.uci.edu/dataset/")
    assert all(address.startswith("https://") for address in entry.addresses)
    if entry.n_train is not None:
        assert entry.n_train + entry.n_test == entry.n_series
    with pytest.raises(dataclasses.FrozenInstanceError):
        entry.n_series = 1


def test_info_of_auslan_follows_the_number_of_signs():
    assert (info("auslan").n_series, info("auslan").lengths) == (675, (47, 95))
    whole = info("auslan", n_classes=95)
    assert (whole.n_series, whole.n_classes, whole.lengths) == (2565, 95, (45, 136))
    assert whole.exact_lengths
    assert not info("auslan", n_classes=10).exact_lengths


@pytest.mark.parametrize("n_classes", [1, 96, 0, -3, 2.5, True, "95"])
def test_impossible_numbers_of_signs_are_refused(n_classes):
    with pytest.raises(DataError, match=r"integer from 2 to 95"):
        info("auslan", n_classes=n_classes)


def test_n_classes_is_for_auslan():
    with pytest.raises(DataError, match=r"'robot_lp1' always has 4 classes"):
        info("robot_lp1", n_classes=3)


def test_an_unknown_name_is_answered_with_the_known_ones():
    with pytest.raises(
        DataError, match=r"no data set 'iris': choose one of japanese_vowels, arabic"
    ):
        info("iris")
