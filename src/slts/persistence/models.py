"""Which classifiers can be saved, and what each holds.

A classifier is added by one entry of `MODELS`: its fitted attributes, and a function that compares
them with each other.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from slts.alignment import Itakura
from slts.alignment.settings import DTYPES
from slts.errors import ModelFileError
from slts.estimators import (
    BBSClassifier,
    BBSClassifierCV,
    LDMLTClassifier,
    LocalSLTSClassifier,
    OneNNClassifier,
    SimilaritySVC,
    SLTSClassifier,
    SLTSClassifierCV,
)
from slts.estimators.base import SeriesClassifier
from slts.estimators.landmark_classifier import SolveReport
from slts.estimators.local import RidgeReport
from slts.learning.local import Choice
from slts.learning.logdet import LogDetSolution
from slts.learning.regularized_metric import REGULARIZERS
from slts.models.comparisons import Comparison
from slts.models.row_map import RowMap
from slts.persistence.consistency import (
    check_every,
    check_landmarks,
    check_ldmlt,
    check_local,
    check_neighbors,
    check_slts,
    check_svm,
    check_tuned,
    check_tuned_slts,
    transformed_rows,
)
from slts.persistence.kinds import (
    FINITE,
    INTEGER,
    NOTHING,
    NUMBERS,
    POSITIVE,
    SCALAR,
    SERIES,
    SPLITS,
    SWITCH,
    TEXT,
    TEXTS,
    Kind,
    array,
    at_least,
    dict_of,
    instance,
    one_of,
    tuple_of,
)

_MOST_JOBS = 4096

_CV = INTEGER | FINITE | SPLITS
# By name, for all classifiers: a name means the same everywhere.
PARAMETERS: Mapping[str, Kind] = {
    "C": POSITIVE,
    "band": NOTHING | at_least(0) | instance(Itakura),
    "calibration_cv": NOTHING | _CV,
    "calibration_size": NOTHING | at_least(1),
    "class_weight": NOTHING | one_of("balanced") | dict_of(SCALAR, FINITE),
    "cv": _CV,
    "dtype": one_of(*DTYPES),
    "fit_intercept": SWITCH,
    "gamma": POSITIVE,
    "gammas": NUMBERS,
    "homogeneous": one_of("auto") | SWITCH,
    "lam": POSITIVE,
    "lams": NUMBERS,
    "landmarks": TEXT | NUMBERS,
    "margin": FINITE,
    "max_length": NOTHING | at_least(1),
    "metric_rank": at_least(1),
    "metrics": one_of("class", "landmark", "shared"),
    "n_components": at_least(1),
    "n_cycles": at_least(0),
    "n_jobs": NOTHING
    | Kind(
        f"an integer within {_MOST_JOBS}, not 0",
        lambda v: INTEGER.accepts(v) and 1 <= abs(v) <= _MOST_JOBS,
    ),
    "n_landmarks": NOTHING | FINITE | NUMBERS,
    "n_phases": one_of("auto") | at_least(1),
    "normalize": SWITCH,
    "objective": TEXT | TEXTS,
    "penalties": NUMBERS,
    "random_state": NOTHING | at_least(0),
    "ranking_limit": NOTHING | at_least(1),
    "regularizer": one_of(*REGULARIZERS),
    "scale": NOTHING | TEXT,
    "triplets_per_series": FINITE,
    "verbose": NOTHING | SWITCH,
    "comparisons": TEXT | TEXTS,
}

# What this machine has, which others need not: files do not hold it, and loaded models have the
# default.
OF_THE_MACHINE = frozenset({"device", "memory_limit"})

_EVERY: Mapping[str, Kind] = {
    "classes_": Kind("an array with one axis", lambda v: isinstance(v, np.ndarray) and v.ndim == 1),
    "n_features_in_": at_least(1),
    "n_channels_in_": at_least(1),
    "n_columns_in_": NOTHING | at_least(1),
    "n_series_in_": at_least(2),
    "n_steps_in_": at_least(2),
    "probability_scale_": NOTHING | POSITIVE,
}
_ROWS: Mapping[str, Kind] = {"row_map_": instance(RowMap)}
_LANDMARKS: Mapping[str, Kind] = {
    **_ROWS,
    "landmarks_": SERIES,
    "landmark_indices_": array("int64", 1),
    "coef_": array("float64", 2),
    "metrics_": array("float64", 3),
    "reports_": tuple_of(instance(SolveReport)),
}
_SLTS: Mapping[str, Kind] = _LANDMARKS
_TUNED: Mapping[str, Kind] = {
    "best_params_": dict_of(TEXT, FINITE),
    "best_score_": FINITE,
    "cv_results_": dict_of(
        TEXT,
        Kind("a column", lambda v: type(v) is list or (isinstance(v, np.ndarray) and v.ndim == 1)),
    ),
    "n_splits_": at_least(1),
}
_NEIGHBORS: Mapping[str, Kind] = {
    **_ROWS,
    "training_codes_": array("int64", 1),
    "training_rows_": SERIES,
}
_SVM: Mapping[str, Kind] = {
    **_ROWS,
    "training_rows_": SERIES,
    "coef_": array("float64", 2),
    "intercept_": array("float64", 1),
}
_LDMLT: Mapping[str, Kind] = {
    **_NEIGHBORS,
    "metric_": array("float64", 2),
    "report_": instance(LogDetSolution),
}
_LOCAL: Mapping[str, Kind] = {
    "landmarks_": SERIES,
    "landmark_indices_": array("int64", 1),
    "groups_": array("int64", 1),
    "group_names_": tuple_of(TEXT),
    "comparisons_": tuple_of(instance(Comparison)),
    "local_metrics_": tuple_of(array("float64", 5)),
    "intercept_": array("float64", 1),
    "selection_": tuple_of(instance(Choice)),
    "reports_": tuple_of(instance(RidgeReport)),
    "n_sampled_": NOTHING | at_least(2),
}
# Attributes younger than the first files, and the value that goes without saying: files do not
# hold it.
YOUNGER: Mapping[str, None] = {"n_sampled_": None}
# What scikit-learn adds: `set_output` is kept; metadata requests are objects, and are not.
OPTIONAL: Mapping[str, Kind] = {"_sklearn_output_config": dict_of(TEXT, TEXT)}
NOT_KEPT = frozenset({"_metadata_request"})


@dataclass(frozen=True)
class Model:
    """A classifier that can be saved.

    Parameters
    ----------
    type
        Its class.
    attributes
        What `fit` sets, and what each may be.
    check
        Raises `ModelFileError` unless the attributes fit together.
    derived
        What follows from the attributes, and how: files do not hold it.
    """

    type: type[SeriesClassifier]
    attributes: Mapping[str, Kind]
    check: Callable[[Any], None]
    derived: Mapping[str, Callable[[Any], Any]] = field(default_factory=dict)


def complete_model(model: SeriesClassifier) -> None:
    """Derive what files do not hold; `ModelFileError` unless all is consistent and safe to use."""
    entry = MODELS[type(model).__name__]
    for name, value in model.get_params(deep=False).items():
        if name in PARAMETERS:
            PARAMETERS[name].check(f"the parameter {name}", value)
    for name, kind in {**_EVERY, **entry.attributes}.items():
        if name not in model.__dict__:
            raise ModelFileError(f"it lacks {name}")
        kind.check(name, model.__dict__[name])
    for name in OPTIONAL.keys() & model.__dict__.keys():
        OPTIONAL[name].check(name, model.__dict__[name])
    check_every(model)
    entry.check(model)
    for name, derive in entry.derived.items():
        model.__dict__[name] = derive(model)


def attribute_names(name: str) -> frozenset[str]:
    """What a classifier holds once it is fitted."""
    return frozenset(_EVERY) | frozenset(MODELS[name].attributes)


MODELS: Mapping[str, Model] = {
    model.type.__name__: model
    for model in (
        Model(SLTSClassifier, _SLTS, check_slts),
        Model(SLTSClassifierCV, {**_SLTS, **_TUNED}, check_tuned_slts),
        Model(BBSClassifier, _LANDMARKS, check_landmarks),
        Model(BBSClassifierCV, {**_LANDMARKS, **_TUNED}, check_tuned),
        Model(OneNNClassifier, _NEIGHBORS, check_neighbors),
        Model(SimilaritySVC, _SVM, check_svm),
        Model(LDMLTClassifier, _LDMLT, check_ldmlt, derived={"_transformed": transformed_rows}),
        Model(LocalSLTSClassifier, _LOCAL, check_local),
    )
}
