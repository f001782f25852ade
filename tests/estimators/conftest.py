"""Small ragged problems, models of them, and a log of the alignments an estimator asks for."""

from functools import cache

import numpy as np
import pytest

from slts.alignment.cpu import CpuBackend
from tests.estimators.kinds import quick


def make_ragged(n_classes, per_class, *, seed, noise=0.6, channels=3):
    """Series of 5 to 12 steps whose rows scatter about a direction of their class."""
    rng = np.random.default_rng(seed)
    angles = 2 * np.pi * np.arange(n_classes) / n_classes
    centers = np.column_stack([np.cos(angles), np.sin(angles), np.zeros((n_classes, channels - 2))])
    codes = np.tile(np.arange(n_classes), per_class)
    series = [
        centers[c][:, None] + noise * rng.normal(size=(channels, rng.integers(5, 13)))
        for c in codes
    ]
    return series, codes


@pytest.fixture(scope="session")
def two():
    """Two classes: 30 series to learn from, 20 others."""
    X, y = make_ragged(2, 25, seed=2)
    return X[:30], y[:30], X[30:], y[30:]


@pytest.fixture(scope="session")
def three():
    """Three classes, not separable: 36 series to learn from, 30 others."""
    X, y = make_ragged(3, 22, seed=3, noise=1.2)
    return X[:36], y[:36], X[36:], y[36:]


@pytest.fixture(scope="session")
def fitted(two, three):
    """Models for tests that only read them: `fitted(kind, "two")`, with `quick` parameters."""
    problems = {"two": two, "three": three}

    @cache
    def fit(kind, problem):
        X, y, _, _ = problems[problem]
        return quick(kind).fit(X, y)

    return fit


@pytest.fixture
def alignments(monkeypatch):
    """Sizes (series, landmarks) of every block of alignments computed from here on."""
    log = []
    run = CpuBackend.run

    def logged(self, *args, **kwargs):
        log.append((len(self.series), len(self.landmarks)))
        return run(self, *args, **kwargs)

    monkeypatch.setattr(CpuBackend, "run", logged)
    return log
