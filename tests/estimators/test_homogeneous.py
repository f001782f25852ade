"""The homogeneous channel: with one channel, unit rows keep nothing but the sign."""

import numpy as np
import pytest

import slts
from tests.estimators.kinds import ROW_MAPPED, every, quick


@pytest.fixture(scope="module")
def amplitudes():
    """Positive univariate series that differ in height alone."""
    rng = np.random.default_rng(0)
    y = np.arange(120) % 2
    X = [np.where(c, 3.0, 1.0) + 0.3 * rng.random((1, rng.integers(5, 10))) for c in y]
    return X[:60], y[:60], X[60:], y[60:]


@every(ROW_MAPPED)
@pytest.mark.parametrize("homogeneous", ["auto", True])
def test_amplitude_is_learned_with_the_constant_channel(kind, homogeneous, amplitudes):
    X, y, X_test, y_test = amplitudes
    model = quick(kind, homogeneous=homogeneous).fit(X, y)
    assert model.score(X_test, y_test) >= 0.95


@every(ROW_MAPPED)
@pytest.mark.filterwarnings("ignore:The metric of class:UserWarning")
def test_without_it_amplitude_is_lost(kind, amplitudes):
    X, y, X_test, y_test = amplitudes
    model = quick(kind, homogeneous=False).fit(X, y)
    assert model.score(X_test, y_test) == 0.5


@every([slts.SLTSClassifier, slts.BBSClassifier])
@pytest.mark.parametrize(
    ("channels", "homogeneous", "size"),
    [(1, "auto", 2), (1, False, 1), (2, "auto", 2), (2, True, 3), (2, False, 2)],
)
@pytest.mark.filterwarnings("ignore:The metric of class:UserWarning")
def test_metrics_have_the_size_of_the_rows_that_are_aligned(kind, channels, homogeneous, size):
    rng = np.random.default_rng(0)
    y = np.arange(24) % 2
    X = rng.normal(size=(24, channels, 5)) + y[:, None, None]
    model = quick(kind, homogeneous=homogeneous, calibration_cv=None).fit(X, y)
    assert model.metrics_.shape == (1, size, size)
    assert model.landmarks_.n_channels == channels


def test_the_constant_is_the_root_mean_square_of_the_training_rows(amplitudes):
    X, y, X_test, _ = amplitudes
    model = slts.SLTSClassifier(10, random_state=0).fit(X, y)
    constant = np.sqrt(np.mean(np.concatenate([x.ravel() for x in X]) ** 2))

    def extended(series):
        return [np.vstack([x, np.full_like(x, constant)]) for x in series]

    T = slts.aligned_products(extended(X_test), extended(list(model.landmarks_)))
    expected = np.einsum("ijde,de,j->i", T, model.metrics_[0], model.coef_[0])
    scale = np.abs(expected).max()
    np.testing.assert_allclose(model.decision_function(X_test), expected, rtol=0, atol=1e-9 * scale)
