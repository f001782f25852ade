"""Classifiers with the interface of scikit-learn.

local.py          `LocalSLTSClassifier`, the default choice
slts.py           SLTS and BBS, their CV variants, and what these four share
linear.py         the base of classifiers with a linear model; `SimilaritySVC`
neighbours.py     `OneNNClassifier`, `LDMLTClassifier`
base.py           the base of all: fitting, prediction and outputs
training_data.py  checks of training data
parameters.py     what each parameter may be
prediction.py     prediction of many series and of scans
adapter.py        what the adapters for aeon and sktime share
"""

from slts.estimators.linear import SimilaritySVC
from slts.estimators.local import LocalSLTSClassifier
from slts.estimators.neighbours import LDMLTClassifier, OneNNClassifier
from slts.estimators.slts import BBSClassifier, BBSClassifierCV, SLTSClassifier, SLTSClassifierCV

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
