"""scikit-learn estimators: they check parameters, call the steps of `training`, and store.

series_estimator.py     the channels of training, and checks of X
base.py                 labels and weights; prediction
prediction.py           apply a fitted classifier to a source, part by part
landmark_classifier.py  what BBS and SLTS share, and their CV variants
bbs.py, slts.py         the classifiers over landmarks
local.py                local metrics over several representations
all_series.py           what classifiers share that compare with all training series
neighbors.py            nearest neighbour under K_I
ldmlt.py                nearest neighbour under a learned Mahalanobis DTW
svm.py                  linear SVM on similarities to the training series
scaler.py               a transformer that scales channels
"""

from slts.estimators.bbs import BBSClassifier, BBSClassifierCV
from slts.estimators.ldmlt import LDMLTClassifier
from slts.estimators.local import LocalSLTSClassifier
from slts.estimators.neighbors import OneNNClassifier
from slts.estimators.scaler import SeriesScaler
from slts.estimators.slts import SLTSClassifier, SLTSClassifierCV
from slts.estimators.svm import SimilaritySVC

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
