"""Two small problems, models of them, and a log of the alignments an estimator asks for."""

from functools import cache

import pytest

from slts.alignment.cpu import CpuBackend
from tests.data import clusters
from tests.estimators.kinds import quick


@pytest.fixture(scope="session")
def two():
    """Two classes: 30 series to learn from, 20 others."""
    X, y = clusters(50, seed=2)
    return X[:30], y[:30], X[30:], y[30:]


@pytest.fixture(scope="session")
def three():
    """Three classes, not separable: 36 series to learn from, 30 others."""
    X, y = clusters(66, n_classes=3, seed=3, noise=1.2)
    return X[:36], y[:36], X[36:], y[36:]


@pytest.fixture(scope="session")
def fitted(two, three):
    """Models for tests that only read them: `fitted(kind, "two")`, with `quick` parameters."""
    problems = {"two": two, "three": three}
    return cache(lambda kind, problem: quick(kind).fit(*problems[problem][:2]))


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
