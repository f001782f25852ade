"""Warnings of a fit that succeeded but learned little."""

import functools
import re

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

import slts
from slts.training import alignments
from tests.estimators.kinds import every, quick


def test_problems_that_all_answer_no_are_reported(three):
    # Rows that all point one way: every series resembles every landmark.
    X, y = [x + 5.0 for x in three[0]], three[1]
    expected = "Every one-vs-rest problem predicts the negative class for all training series"
    with pytest.warns(UserWarning, match=f"{expected}: lower gamma or lam"):
        slts.BBSClassifier(12, gamma=10.0, calibration_cv=None, random_state=0).fit(X, y)


@every([slts.SLTSClassifier, slts.BBSClassifier])
def test_classes_without_a_landmark_are_named(kind, three):
    X, y, _, _ = three
    labels = np.array(["a", "b", "c"])[y]
    only_b = np.flatnonzero(y == 1)
    with pytest.warns(
        UserWarning, match=re.escape("There is no landmark of class 'a', 'c': raise")
    ):
        kind(landmarks=only_b, gamma=1e-3, calibration_cv=None).fit(X, labels)


def test_a_collapsed_metric_is_named(two):
    X, y, _, _ = two
    labels = np.array(["left", "right"])[y]
    message = r"The metric of class 'right' collapsed .* \(training hinge 0\.99.*\): lower lam"
    with pytest.warns(UserWarning, match=message):
        slts.SLTSClassifier(gamma=10.0, lam=10.0, random_state=0).fit(X, labels)


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_a_solve_that_did_not_converge_is_reported(n_jobs, three, monkeypatch):
    X, y, _, _ = three
    hasty = functools.partial(alignments.solve_metric_path, max_iter=1)
    monkeypatch.setattr(alignments, "solve_metric_path", hasty)
    model = slts.SLTSClassifier(12, calibration_cv=None, n_jobs=n_jobs, random_state=0)
    with pytest.warns(ConvergenceWarning, match="duality gap"):
        model.fit(X, y)
    assert not all(report.converged for report in model.reports_)


@every([slts.SLTSClassifier, slts.BBSClassifier, slts.SLTSClassifierCV])
def test_a_good_fit_warns_of_nothing(kind, two, recwarn):
    X, y, _, _ = two
    quick(kind).fit(X, y)
    assert not recwarn.list


def test_warnings_point_at_the_line_that_called(three, tmp_path):
    files = pytest.importorskip("tests.estimators.scan_data")
    X, y, _, _ = three
    only_b = np.flatnonzero(y == 1)
    path = files.write_long(tmp_path / "data.parquet", X, np.array(["a", "b", "c"])[y])
    scan = slts.scan_series(path, label="label")
    model = slts.BBSClassifier(landmarks=only_b, gamma=1e-3, calibration_cv=None)
    for data in ((X, y), (scan,)):
        with pytest.warns(UserWarning, match="There is no landmark of class") as caught:
            model.fit(*data)
        assert {warning.filename for warning in caught} == {__file__}
