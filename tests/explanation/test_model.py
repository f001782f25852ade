import numpy as np
import pytest

import slts
from slts.explanation import summarize


@pytest.fixture(scope="module")
def fitted():
    rng = np.random.default_rng(0)
    y = np.arange(60) % 3
    # Only channel 1 tells the classes apart.
    shift = np.array([[0.0, 0.0, 0.0], [-3.0, 0.0, 3.0], [0.0, 0.0, 0.0]])
    X = [rng.normal(size=(3, 10)) + shift[:, [c]] for c in y]
    return slts.SLTSClassifier(random_state=0, calibration_cv=None).fit(X, y), X


def test_the_channel_that_decides_is_the_most_important(fitted):
    model, X = fitted
    found = summarize(model, X)
    assert (found.channel_importance[[0, 2]].argmax(axis=1) == 1).all()
    assert found.pair_importance.shape == (3, 3, 3)


def test_pairs_bound_channels(fitted):
    found = summarize(*fitted)
    assert (found.channel_importance <= found.pair_importance.sum(axis=2) + 1e-12).all()


def test_spectra_and_sizes_are_those_of_the_model(fitted):
    model, _ = fitted
    found = summarize(model)
    for metric, values in zip(model.metrics_, found.singular_values, strict=True):
        np.testing.assert_allclose(np.sum(values**2), np.sum(metric**2))
    np.testing.assert_array_equal(found.n_landmarks_used, np.count_nonzero(model.coef_, axis=1))
    used = model.coef_.any(axis=0)
    steps = model.landmarks_.lengths[used].sum()
    assert found.n_numbers == 27 + np.count_nonzero(model.coef_) + 3 * steps
