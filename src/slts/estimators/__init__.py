"""Classifiers with the interface of scikit-learn.

local.py                `LocalSLTSClassifier`, the default choice
landmark_classifier.py  what SLTS and BBS share; slts.py has these classifiers and their CV variants
svc.py                  `SimilaritySVC`
neighbours.py           `OneNNClassifier`, `LDMLTClassifier`
linear.py, base.py      their bases: the linear model; fitting, prediction and outputs
sklearn_bases.py        bases from scikit-learn, with types
training_data.py        checks of training data
parameters.py           what each parameter may be
prediction.py           prediction of many series and of scans
adapter.py              what the adapters for aeon and sktime share
"""

from slts.estimators.local import LocalSLTSClassifier
from slts.estimators.neighbours import LDMLTClassifier, OneNNClassifier
from slts.estimators.slts import BBSClassifier, BBSClassifierCV, SLTSClassifier, SLTSClassifierCV
from slts.estimators.svc import SimilaritySVC

__all__ = [
    "BBSClassifier",
    "BBSClassifierCV",
    "LDMLTClassifier",
    "LocalSLTSClassifier",
    "OneNNClassifier",
    "SLTSClassifier",
    "SLTSClassifierCV",
    "SimilaritySVC",
]
