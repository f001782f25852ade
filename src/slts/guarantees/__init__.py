"""Guarantees: bounds on the risk of a trained classifier, and the goodness of a similarity.

certify.py         `certify`: bounds from held-out series, or from the training sample
held_out.py        outputs and labels of held-out series from one pass, and bounds from them
overlap.py         copies among held-out series: of training series, and of each other
split.py           `fit_certified`: split the series so that every bound applies; compression
certificate.py     `Certificate` and `Bound`: the results, as text, HTML and plain data
prediction_sets.py `prediction_sets`: sets of classes with guaranteed coverage
goodness.py        (epsilon, gamma, tau)-goodness of a similarity, landmarks needed
statements.py      what the formulas need of a classifier and a sample; the results in words
bounds.py          the formulas, as functions of numbers, and upper confidence limits by bisection
"""

from slts.guarantees.certificate import Bound, Certificate
from slts.guarantees.certify import certify
from slts.guarantees.goodness import (
    Goodness,
    GoodnessProfile,
    LandmarksNeeded,
    chosen_landmarks_bound,
    goodness,
    goodness_bound,
    goodness_profile,
    landmarks_needed,
    population_goodness,
)
from slts.guarantees.prediction_sets import LabelSets, PredictionSets, prediction_sets
from slts.guarantees.split import fit_certified

__all__ = [
    "Bound",
    "Certificate",
    "Goodness",
    "GoodnessProfile",
    "LabelSets",
    "LandmarksNeeded",
    "PredictionSets",
    "certify",
    "chosen_landmarks_bound",
    "fit_certified",
    "goodness",
    "goodness_bound",
    "goodness_profile",
    "landmarks_needed",
    "population_goodness",
    "prediction_sets",
]
