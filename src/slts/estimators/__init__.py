"""scikit-learn estimators: they check parameters, call the steps of `training`, and store.

series_estimator.py     the channels of training, checks of X; a transformer that scales channels
base.py                 labels and weights; prediction
prediction.py           apply a fitted classifier to a source, part by part
parameters.py           what each parameter may be
landmark_classifier.py  what classifiers over landmarks share
slts.py                 SLTS and BBS, and their CV variants
local.py                local metrics over several representations
adapter.py              what the adapters for aeon and sktime share
all_series.py           nearest neighbours, LDMLT and SVM: they compare with all training series
"""

from slts.estimators.all_series import LDMLTClassifier, OneNNClassifier, SimilaritySVC
from slts.estimators.local import LocalSLTSClassifier
from slts.estimators.series_estimator import SeriesScaler
from slts.estimators.slts import BBSClassifier, BBSClassifierCV, SLTSClassifier, SLTSClassifierCV

__all__ = [
    "BBSClassifier",
    "BBSClassifierCV",
    "LDMLTClassifier",
    "LocalSLTSClassifier",
    "OneNNClassifier",
    "SLTSClassifier",
    "SLTSClassifierCV",
    "SeriesScaler",
    "SimilaritySVC",
]
