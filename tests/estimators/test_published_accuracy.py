"""Accuracies of the paper, by its protocol, on the given splits."""

import numpy as np
import pytest

import slts
from slts import datasets

pytestmark = pytest.mark.slow

SEEDS = range(3)


@pytest.fixture(scope="module")
def vowels():
    loaders = pytest.importorskip("aeon.datasets")
    X, y = loaders.load_japanese_vowels("train")
    X_test, y_test = loaders.load_japanese_vowels("test")
    assert (len(X), len(X_test)) == (270, 370)
    return X, y, X_test, y_test


def mean_accuracy(make, seeds, vowels):
    X, y, X_test, y_test = vowels
    return 100 * np.mean([make(seed).fit(X, y).score(X_test, y_test) for seed in seeds])


def test_one_nearest_neighbour_on_japanese_vowels(vowels):
    X, y, X_test, y_test = vowels
    assert np.sum(slts.OneNNClassifier().fit(X, y).predict(X_test) == y_test) == 347


def test_bbs_on_japanese_vowels(vowels):
    accuracy = mean_accuracy(lambda s: slts.BBSClassifierCV(135, random_state=s), SEEDS, vowels)
    assert accuracy == pytest.approx(97.1, abs=0.6)


@pytest.mark.slow
def test_slts_on_japanese_vowels(vowels):
    accuracy = mean_accuracy(lambda s: slts.SLTSClassifierCV(135, random_state=s), SEEDS, vowels)
    assert accuracy == pytest.approx(97.1, abs=0.8)


def test_svm_on_japanese_vowels(vowels):
    accuracy = mean_accuracy(lambda s: slts.SimilaritySVC(random_state=s), SEEDS, vowels)
    assert accuracy == pytest.approx(97.8, abs=0.6)


def test_ldmlt_on_japanese_vowels(vowels):
    def make(seed):
        return slts.LDMLTClassifier(calibration_size=None, random_state=seed)

    assert mean_accuracy(make, [0], vowels) >= 96.5


def test_slts_with_its_defaults_on_japanese_vowels(vowels):
    accuracy = mean_accuracy(lambda s: slts.SLTSClassifier(random_state=s), [0], vowels)
    assert accuracy > 95


@pytest.mark.slow
def test_slts_with_the_whole_grid_on_arabic_digits(data_folder):
    """On a quarter of the training series; `make reproduce` runs it on all."""
    X, y = datasets.load("arabic_digits", "train")
    X_test, y_test = datasets.load("arabic_digits", "test")
    model = slts.SLTSClassifierCV(100, random_state=0).fit(X[::4], y[::4])
    assert len(model.cv_results_["params"]) == 18
    assert model.score(X_test[::2], y_test[::2]) >= 0.967
