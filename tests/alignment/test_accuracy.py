"""Nearest neighbours by K_I classify the paper's data sets as in the paper."""

import numpy as np
import pytest

from slts import similarity


def correct(train, train_labels, test, test_labels, **options):
    nearest = similarity(test, train, **options).argmax(axis=1)
    return int((np.asarray(train_labels)[nearest] == np.asarray(test_labels)).sum())


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_japanese_vowels(dtype):
    datasets = pytest.importorskip("aeon.datasets")
    train, train_labels = datasets.load_japanese_vowels(split="train")
    test, test_labels = datasets.load_japanese_vowels(split="test")
    assert (len(train), len(test)) == (270, 370)
    assert correct(train, train_labels, test, test_labels, dtype=dtype) == 347


@pytest.mark.slow
def test_arabic_digits(arabic_digits):
    train, train_labels, test, test_labels = arabic_digits
    # Every fourth test series; 2083 of all 2200 are correct.
    assert correct(train, train_labels, test[::4], test_labels[::4], n_jobs=-1) == 521
