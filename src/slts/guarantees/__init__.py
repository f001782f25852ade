"""Guarantees: bounds on the risk of a trained classifier, and the goodness of a similarity.

certify.py         `certify`: bounds from held-out series, or by the paper's theorem
held_out.py        held-out series: outputs and labels from one pass, copies, bounds on the error
prediction_sets.py `prediction_sets`: sets of classes with guaranteed coverage
goodness.py        (epsilon, gamma, tau)-goodness of a similarity, landmarks needed
bounds.py          the formulas of the bounds; `Bound` and `Certificate`, the results
"""

from slts.guarantees.bounds import Bound, Certificate
from slts.guarantees.certify import certify
from slts.guarantees.goodness import (
    Goodness,
    LandmarksNeeded,
    goodness,
    landmarks_needed,
)
from slts.guarantees.prediction_sets import LabelSets, PredictionSets, prediction_sets

__all__ = [
    "Bound",
    "Certificate",
    "Goodness",
    "LabelSets",
    "LandmarksNeeded",
    "PredictionSets",
    "certify",
    "goodness",
    "landmarks_needed",
    "prediction_sets",
]
