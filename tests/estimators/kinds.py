"""Every classifier, and small parameters that make each quick to fit."""

import pytest

import slts

LANDMARKED = [slts.SLTSClassifier, slts.SLTSClassifierCV, slts.BBSClassifier, slts.BBSClassifierCV]
TUNED = [slts.SLTSClassifierCV, slts.BBSClassifierCV]
# Classifiers whose rows are scaled and normalised as parameters say.
ROW_MAPPED = [*LANDMARKED, slts.OneNNClassifier, slts.SimilaritySVC, slts.LDMLTClassifier]
KINDS = [*ROW_MAPPED, slts.LocalSLTSClassifier]

QUICK = {
    slts.SLTSClassifier: {"n_landmarks": 12, "calibration_cv": 2},
    slts.SLTSClassifierCV: {"n_landmarks": 12, "gammas": [1e-3, 1e-2], "lams": [0.1]},
    slts.BBSClassifier: {"n_landmarks": 12, "calibration_cv": 2},
    slts.BBSClassifierCV: {"n_landmarks": 12, "gammas": [1e-3, 1e-2]},
    slts.LDMLTClassifier: {"n_cycles": 1, "triplets_per_series": 2.0},
    slts.LocalSLTSClassifier: {"n_landmarks": 12, "n_snippets": 100},
}


def quick(kind, **parameters):
    """Return an estimator with few candidates, landmarks and steps, and a fixed seed."""
    return kind(**{"random_state": 0} | QUICK.get(kind, {}) | parameters)


def by_name(kind):
    return kind.__name__


def every(kinds):
    """Parametrize a test by the classes of estimators."""
    return pytest.mark.parametrize("kind", kinds, ids=by_name)


every_kind = every(KINDS)
