import numpy as np
import pytest

import slts
from slts.series import SeriesBatch

matplotlib = pytest.importorskip("matplotlib")
matplotlib.use("agg")


@pytest.fixture(scope="session")
def fitted():
    """A model with three classes, its series and labels."""
    rng = np.random.default_rng(0)
    y = np.array(["a", "b", "c"])[np.arange(45) % 3]
    X = [rng.normal(size=(4, 9)) + 2 * np.eye(4)[:, ["abc".index(c)]] for c in y]
    return slts.SLTSClassifier(random_state=0, calibration_cv=None).fit(X, y), X, y


@pytest.fixture(scope="session")
def local(fitted):
    """The default classifier, with named series and channels, and times in halves of a second."""
    _, X, y = fitted
    batch = slts.as_series(X)
    named = SeriesBatch(
        batch.values, batch.offsets, ["u", "v", "w", "x"], times=np.tile(np.arange(9) / 2, 45),
        series_names=[f"recording {k}" for k in range(45)],
    )  # fmt: skip
    return (
        slts.LocalSLTSClassifier(n_snippets=20, n_phases=2, random_state=0).fit(named, y),
        named,
        y,
    )


@pytest.fixture(autouse=True)
def closed_figures():
    from matplotlib import pyplot

    yield
    pyplot.close("all")
