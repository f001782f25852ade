"""Three classes of short series, and a model of them."""

import numpy as np
import pytest

import slts

FAST = {"calibration_cv": None, "random_state": 0}


def make_series(n, seed, n_classes=3):
    rng = np.random.default_rng(seed)
    y = np.arange(n) % n_classes
    shift = np.eye(3)[:, :n_classes] * 1.5
    return [rng.normal(size=(3, 8 + i % 5)) + shift[:, [c]] for i, c in enumerate(y)], y


@pytest.fixture(scope="session")
def training():
    return make_series(90, 0)


@pytest.fixture(scope="session")
def held_out():
    return make_series(120, 1)


@pytest.fixture(scope="session")
def model(training):
    return slts.SLTSClassifier(20, gamma=0.1, lam=1.0, **FAST).fit(*training)
