"""What model files may contain: a new classifier or dataclass of a model is one entry here."""

from __future__ import annotations

from slts import estimators
from slts.alignment import AlignmentSettings, Itakura
from slts.estimators.base import SeriesClassifier
from slts.estimators.landmark_classifier import SolveReport
from slts.features.aligned_products import AlignedProducts
from slts.features.linear_model import LinearModel
from slts.features.neighbours import Neighbours
from slts.features.origins import Origins
from slts.features.row_map import ChannelScale, Components, RowMap
from slts.features.snippets import Snippets
from slts.series import SeriesBatch
from slts.solvers.calibration import HeldOutScores, Validation
from slts.solvers.logdet import LogDetSolution
from slts.solvers.ridge import RidgeReport

CLASSIFIERS: tuple[type[SeriesClassifier], ...] = (
    estimators.SLTSClassifier,
    estimators.SLTSClassifierCV,
    estimators.BBSClassifier,
    estimators.BBSClassifierCV,
    estimators.OneNNClassifier,
    estimators.SimilaritySVC,
    estimators.LDMLTClassifier,
    estimators.LocalSLTSClassifier,
)

# Dataclasses in fitted attributes and parameters. Their fields are stored by name and checked
# against their annotations; `__post_init__` checks what annotations cannot express.
DATACLASSES: tuple[type, ...] = (
    AlignedProducts,
    AlignmentSettings,
    ChannelScale,
    Components,
    HeldOutScores,
    Itakura,
    LinearModel,
    LogDetSolution,
    Neighbours,
    Origins,
    RidgeReport,
    RowMap,
    SeriesBatch,
    Snippets,
    SolveReport,
    Validation,
)
