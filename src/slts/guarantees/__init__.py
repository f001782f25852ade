"""What is guaranteed about a trained classifier, and how good a similarity is.

certify.py       `certify`: bounds from held-out series, or from the training sample
split.py         `fit_certified`: divide the series so that every bound applies
certificate.py   `Certificate` and `Bound`: what is said, and how it looks
goodness.py      (epsilon, gamma, tau)-goodness of a similarity, landmarks needed
bounds.py        the formulas, as functions of numbers
inversions.py    upper ends of confidence intervals, by bisection
compression.py   weights rebuilt from the examples that determine them
evidence.py      what the formulas need to know of a classifier and a sample
known_series.py  series a model keeps from training, which a held-out sample must not have
statements.py    the formulas applied, and put in words
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
from slts.guarantees.split import fit_certified

__all__ = [
    "Bound",
    "Certificate",
    "Goodness",
    "GoodnessProfile",
    "LandmarksNeeded",
    "certify",
    "chosen_landmarks_bound",
    "fit_certified",
    "goodness",
    "goodness_bound",
    "goodness_profile",
    "landmarks_needed",
    "population_goodness",
]
