"""What model files may contain: a new classifier or dataclass of a model is one entry here."""

from __future__ import annotations

from slts import estimators
from slts.alignment import AlignmentSettings, Itakura
from slts.estimators.base import SeriesClassifier
from slts.estimators.landmark_classifier import SolveReport
from slts.estimators.local import RidgeReport
from slts.learning.calibration import HeldOutMargins, Validation
from slts.learning.local import Choice
from slts.learning.logdet import LogDetSolution
from slts.models.comparisons import Comparison
from slts.models.origins import Origins
from slts.models.representations import Representation
from slts.models.row_map import RowMap
from slts.models.snippets import Snippets
from slts.series import SeriesBatch
from slts.series.channels import ChannelScale, Components, Levels

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
    AlignmentSettings,
    ChannelScale,
    Choice,
    Comparison,
    Components,
    HeldOutMargins,
    Itakura,
    Levels,
    LogDetSolution,
    Origins,
    Representation,
    RidgeReport,
    RowMap,
    SeriesBatch,
    Snippets,
    SolveReport,
    Validation,
)
