"""Accuracies of the paper, by its protocol, on the published splits."""

import numpy as np
import pytest

import slts
from study import originals

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def vowels():
    loaders = pytest.importorskip("aeon.datasets")
    X, y = loaders.load_japanese_vowels("train")
    X_test, y_test = loaders.load_japanese_vowels("test")
    assert (len(X), len(X_test)) == (270, 370)
    return X, y, X_test, y_test


# The mean of some seeds. SLTS with its defaults, LDMLT and the local classifier have a floor.
PUBLISHED = [
    (slts.BBSClassifierCV, {"n_landmarks": 135}, range(3), pytest.approx(97.1, abs=0.6)),
    (slts.SLTSClassifierCV, {"n_landmarks": 135}, range(3), pytest.approx(97.1, abs=0.8)),
    (slts.SimilaritySVC, {}, range(3), pytest.approx(97.8, abs=0.6)),
    (slts.OneNNClassifier, {}, range(1), pytest.approx(100 * 347 / 370)),
    (slts.SLTSClassifier, {}, range(1), pytest.approx(97.5, abs=2.5)),
    (slts.LDMLTClassifier, {"calibration_size": None}, range(1), pytest.approx(98.0, abs=1.5)),
    (slts.LocalSLTSClassifier, {}, range(1), pytest.approx(98.0, abs=2.0)),
]


@pytest.mark.parametrize(("kind", "how", "seeds", "expected"), PUBLISHED)
def test_accuracy_on_japanese_vowels(kind, how, seeds, expected, vowels):
    X, y, X_test, y_test = vowels
    scores = [kind(random_state=s, **how).fit(X, y).score(X_test, y_test) for s in seeds]
    assert 100 * np.mean(scores) == expected


def test_slts_with_the_whole_grid_on_arabic_digits(data_folder):
    """On a quarter of the training series; `make reproduce` runs it on all."""
    X, y = originals.load("arabic_digits", "train")
    X_test, y_test = originals.load("arabic_digits", "test")
    model = slts.SLTSClassifierCV(100, random_state=0).fit(X[::4], y[::4])
    assert len(model.cv_results_["params"]) == 18
    assert model.score(X_test[::2], y_test[::2]) >= 0.967
