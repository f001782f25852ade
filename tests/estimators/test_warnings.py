"""What a fit says: warnings if it learned little, and progress if it is asked for."""

import functools

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

import slts
from slts.execution import progress
from slts.training import landmark_fit
from tests.data import scan_of
from tests.estimators.kinds import every, every_kind, quick


def test_problems_that_all_answer_no_are_reported(three):
    # Rows that all point one way: every series resembles every landmark.
    X, y = [x + 5.0 for x in three[0]], three[1]
    with pytest.warns(UserWarning, match="predicts the negative class .* lower gamma or lam"):
        slts.BBSClassifier(12, gamma=10.0, calibration_cv=None, random_state=0).fit(X, y)


@every([slts.SLTSClassifier, slts.BBSClassifier])
def test_classes_without_a_landmark_are_named(kind, three):
    X, y, _, _ = three
    labels = np.array(["a", "b", "c"])[y]
    with pytest.warns(UserWarning, match="no landmark of class 'a', 'c'"):
        kind(landmarks=np.flatnonzero(y == 1), gamma=1e-3, calibration_cv=None).fit(X, labels)


def test_a_collapsed_metric_is_named(two):
    X, y, _, _ = two
    labels = np.array(["left", "right"])[y]
    with pytest.warns(UserWarning, match="metric of class 'right' .* lower lam"):
        slts.SLTSClassifier(gamma=10.0, lam=10.0, random_state=0).fit(X, labels)


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_a_solve_that_did_not_converge_is_reported(n_jobs, three, monkeypatch):
    X, y, _, _ = three
    hasty = functools.partial(landmark_fit.solve_metric_path, max_iter=1)
    monkeypatch.setattr(landmark_fit, "solve_metric_path", hasty)
    model = slts.SLTSClassifier(12, calibration_cv=None, n_jobs=n_jobs, random_state=0)
    with pytest.warns(ConvergenceWarning, match="duality gap"):
        model.fit(X, y)
    assert not all(report.converged for report in model.reports_)


@every_kind
def test_a_good_fit_warns_of_nothing(kind, two, recwarn):
    X, y, _, _ = two
    quick(kind).fit(X, y)
    assert not recwarn.list


def test_warnings_point_at_the_line_that_called(three):
    X, y, _, _ = three
    for data in ((X, y), (scan_of((X, y)),)):
        with pytest.warns(UserWarning, match="There is no landmark of class") as caught:
            quick(slts.LocalSLTSClassifier, n_landmarks=2).fit(*data)
        assert {warning.filename for warning in caught} == {__file__}


@every_kind
@pytest.mark.parametrize("verbose", [True, False])
def test_progress_is_shown_on_standard_error_only_if_asked_for(
    kind, verbose, two, capfd, monkeypatch
):
    monkeypatch.setattr(progress, "_is_interactive", lambda: True)
    X, y, X_test, _ = two
    model = quick(kind, verbose=verbose).fit(X, y)
    of_fit = capfd.readouterr()
    # Few series are predicted at once, without progress.
    model.predict(X_test * 10)
    of_prediction = capfd.readouterr()
    assert of_fit.out == of_prediction.out == ""
    if verbose:
        assert "100%" in of_fit.err
        assert "Aligning" in of_prediction.err
    else:
        assert of_fit.err == of_prediction.err == ""
