"""scikit-learn's own checks, on every estimator."""

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

import slts
from tests.estimators.kinds import KINDS

# Landmarks, grids, folds and steps of learning do not matter to the checks: few make them quick.
SHORTENED = {
    slts.SLTSClassifier: {"n_landmarks": 0.25, "calibration_cv": 0.3},
    slts.BBSClassifier: {"n_landmarks": 0.25, "calibration_cv": 0.3},
    slts.SLTSClassifierCV: {"n_landmarks": 0.25, "gammas": [1e-3, 1e-2], "lams": [0.1], "cv": 2},
    slts.BBSClassifierCV: {"n_landmarks": 0.25, "gammas": [1e-3, 1e-2], "cv": 2},
    slts.SimilaritySVC: {"C": 1.0, "calibration_cv": 0.3},
    slts.LDMLTClassifier: {"n_cycles": 1, "triplets_per_series": 2.0},
    slts.LocalSLTSClassifier: {"n_landmarks": 0.25, "n_snippets": 100},
}
NO_INTERCEPT = (
    "without an intercept, the drawn landmarks decide how often the heavy class is predicted: "
    "some seeds pass"
)


def expected_failures(estimator):
    if isinstance(estimator, slts.BBSClassifier | slts.BBSClassifierCV):
        return {"check_class_weight_classifiers": NO_INTERCEPT}
    return {}


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:There is no landmark of class:UserWarning")
@pytest.mark.filterwarnings("ignore:The metric of class:UserWarning")
@pytest.mark.filterwarnings("ignore:Every one-vs-rest problem predicts:UserWarning")
@parametrize_with_checks(
    [kind(random_state=0, **SHORTENED.get(kind, {})) for kind in KINDS],
    expected_failed_checks=expected_failures,
)
def test_scikit_learn_check(estimator, check):
    check(estimator)
