"""scikit-learn classifiers: they validate, wire and store; the mathematics is in `learning`.

base.py                 input, labels, weights


landmark_classifier.py  what BBS and SLTS share
streams.py              series read part by part: who reads them, methods that take them
survey.py               the first pass over such series: classes, counts, a sample
landmark_stream.py      BBS and SLTS learned from them
memory_plan.py          how much memory that takes, told before it is taken
splitting.py            splits from `cv`
search.py               parameters chosen on held-out decisions, from one set of alignments
tuning.py               what the CV variants share
bbs.py, slts.py         the classifiers over landmarks, and their CV variants


local_training.py       learning for the local classifier: align once, solve, make metrics
local.py                several local metrics, through several representations
neighbors.py            1NN under K_I
svm.py                  linear SVM on similarities to the training series
ldmlt.py                nearest neighbour under a learned Mahalanobis DTW
"""

from slts.estimators.bbs import BBSClassifier, BBSClassifierCV
from slts.estimators.ldmlt import LDMLTClassifier
from slts.estimators.local import LocalSLTSClassifier
from slts.estimators.neighbors import OneNNClassifier
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
    "SimilaritySVC",
]
