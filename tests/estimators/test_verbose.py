"""A bar on standard error when asked for, and silence otherwise."""

import pytest

import slts
from slts.execution import progress

ESTIMATORS = [
    slts.SLTSClassifier(10, random_state=0),
    slts.SLTSClassifierCV(10, random_state=0),
    slts.BBSClassifier(10, random_state=0),
    slts.BBSClassifierCV(10, random_state=0),
    slts.LocalSLTSClassifier(10, random_state=0),
    slts.OneNNClassifier(),
    slts.SimilaritySVC(),
    slts.LDMLTClassifier(n_cycles=1, triplets_per_series=1.0, random_state=0),
]


@pytest.mark.parametrize("estimator", ESTIMATORS, ids=lambda estimator: type(estimator).__name__)
@pytest.mark.parametrize("verbose", [True, False])
def test_progress_is_shown_on_standard_error_only_when_asked_for(
    estimator, verbose, two, capfd, monkeypatch
):
    monkeypatch.setattr(progress, "_somebody_watches", lambda: True)
    X, y, X_test, _ = two
    estimator.set_params(verbose=verbose).fit(X, y)
    shown = capfd.readouterr()
    estimator.predict(X_test)
    shown_in_prediction = capfd.readouterr()
    assert shown.out == shown_in_prediction.out == ""
    if verbose:
        assert "100%" in shown.err
        assert "Aligning" in shown_in_prediction.err
    else:
        assert shown.err == shown_in_prediction.err == ""
