import numpy as np
import pytest

import slts

matplotlib = pytest.importorskip("matplotlib")
matplotlib.use("agg")


@pytest.fixture(scope="session")
def fitted():
    """A model with three classes, its series and labels."""
    rng = np.random.default_rng(0)
    y = np.array(["a", "b", "c"])[np.arange(45) % 3]
    X = [rng.normal(size=(4, 9)) + 2 * np.eye(4)[:, ["abc".index(c)]] for c in y]
    return slts.SLTSClassifier(random_state=0, calibration_cv=None).fit(X, y), X, y


@pytest.fixture(autouse=True)
def closed_figures():
    from matplotlib import pyplot

    yield
    pyplot.close("all")
