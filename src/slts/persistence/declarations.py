"""What model files store: one declaration for each dataclass and classifier.

A new fitted attribute is one line in the structure of its classifier. A new classifier is one entry
of `CLASSIFIERS`. Parameters are declared in `slts.estimators.parameters`.
Kernels trust their arguments, so a model that passes these checks must be safe to use.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from slts import estimators
from slts.alignment import AlignmentSettings, Itakura
from slts.alignment.settings import DTYPES, OBJECTIVES
from slts.estimators.base import SeriesClassifier
from slts.estimators.landmark_classifier import (
    LandmarkClassifier,
    SolveReport,
    TunedLandmarkClassifier,
)
from slts.estimators.local import RidgeReport
from slts.estimators.parameters import (
    BOOL,
    FINITE,
    LABEL,
    NOTHING,
    NUMBER,
    PARAMETERS,
    POSITIVE,
    SWITCH,
    TEXT,
    Kind,
    at_least,
    between,
    dict_of,
    one_of,
)
from slts.learning.calibration import HeldOutMargins, Validation
from slts.learning.local import Choice
from slts.learning.logdet import LogDetSolution
from slts.learning.metric import REGULARIZERS
from slts.models.comparisons import Comparison
from slts.models.origins import Origins
from slts.models.representations import REPRESENTATIONS, Representation
from slts.models.row_map import RowMap
from slts.models.snippets import Snippets
from slts.persistence.schema import (
    Sizes,
    Structure,
    array,
    codes,
    require,
    require_kind,
    series,
    tuple_of,
    where,
)
from slts.series.channels import ChannelScale, Components, Levels, transform_rows

# Rounding can make the norm of a unit row slightly larger than 1.
_UNIT = 1.0 + 1e-6
_MOST_STEPS, _SHORTEST_SNIPPET, _LONGEST_SNIPPET = 10**7, 3, 999

# ---- dataclasses that files can store, by name

RECORDS: dict[str, tuple[type, Structure]] = {}


def _record(type_: type, /, **declared: Any) -> Kind:
    """Declare a dataclass by the kinds of its fields; `sizes` and `rule` as for `Structure`."""
    structure = Structure(**declared)
    RECORDS[type_.__name__] = type_, structure
    return Kind(f"of type {type_.__name__}", lambda v: type(v) is type_, structure.check)


def _positive(axis: str) -> Kind:
    return where(array("float64", axis), "positive", lambda v: (v > 0).all())


def _not_negative(dtype: str, axis: str) -> Kind:
    return where(array(dtype, axis), "not negative", lambda v: v.min() >= 0)


def _indices(axis: str) -> Kind:
    return where(
        array("int64", axis),
        "distinct and not negative",
        lambda v: len(np.unique(v)) == len(v) and v.min() >= 0,
    )


_record(Itakura, max_slope=FINITE)
_SETTINGS = _record(
    AlignmentSettings,
    objective=one_of(*OBJECTIVES),
    band=PARAMETERS["band"],
    normalize=SWITCH,
    dtype=one_of(*DTYPES),
)
_SCALE = _record(
    ChannelScale,
    centre=array("float64", "channels"),
    spread=_positive("channels"),
    squash=BOOL,
)
_ROW_MAP = _record(
    RowMap,
    constant=NOTHING | POSITIVE,
    settings=_SETTINGS,
    scale=NOTHING | _SCALE,
    sizes={"rows": lambda r, n: n["channels"] + (r.constant is not None)},
)
_LEVELS = _record(
    Levels,
    knots=array("float64", "channels", "knots[i]"),
    ranks=array("float64", "channels", "knots[i]"),
    n_levels=between(1, 1000),
)
_COMPONENTS = _record(
    Components,
    centre=array("float64", "features[i]"),
    basis=array("float64", "features[i]", "components[i]"),
)
_REPRESENTATION = _record(
    Representation,
    name=one_of(*REPRESENTATIONS),
    max_length=NOTHING | between(1, 10**9),
    scale=NOTHING | _SCALE,
    levels=NOTHING | _LEVELS,
    change_spread=NOTHING | _positive("values[i]"),
    components=NOTHING | _COMPONENTS,
    constant=POSITIVE,
    # Each channel gives one value or several levels; then changes, components, the constant.
    sizes={
        "values[i]": lambda r, n: n["channels"] * (1 if r.levels is None else r.levels.n_levels),
        "features[i]": lambda r, n: n["values[i]"] * (1 if r.change_spread is None else 2),
        "width[i]": lambda r, n: (
            1 + (n["features[i]"] if r.components is None else r.components.basis.shape[1])
        ),
    },
    rule=lambda r: require(
        (r.scale is None) != (r.levels is None),
        "a representation must have either a scale or levels",
    ),
)
_COMPARISON = _record(
    Comparison,
    representation=_REPRESENTATION,
    settings=_SETTINGS,
    basis=array("float64", "width[i]", "rank[i]"),
)


# Kernels read a series at any channel and dilation that a snippet names.
def _check_snippets(snippets: Snippets) -> None:
    first, dilations = snippets.first, snippets.dilations
    require(
        first[0] == 0 and first[-1] == len(snippets.values) and (np.diff(first) > 0).all(),
        "the snippets must divide their rows among them",
    )
    require(
        dilations[0] >= 1 and dilations[-1] <= _MOST_STEPS and (np.diff(dilations) >= 0).all(),
        f"dilations of snippets must be from 1 to {_MOST_STEPS}, in ascending order",
    )
    require(
        snippets.n_steps % 2 == 1 and _SHORTEST_SNIPPET <= snippets.n_steps <= _LONGEST_SNIPPET,
        f"snippets must have an odd number of steps, {_SHORTEST_SNIPPET} to {_LONGEST_SNIPPET}",
    )
    require((np.diff(snippets.thresholds) >= 0).all(), "thresholds of snippets must ascend")
    require(
        not (snippets.shape_only & snippets.by_strength).any(),
        "snippets must be compared by their shape only or by strength, not by both",
    )
    require(not snippets.scale.squash, "the scale of snippets must be linear")


_SNIPPETS = _record(
    Snippets,
    values=array("float64", "snippet channels", "snippet steps"),
    first=array("int64", "snippets + 1"),
    channels=codes("snippet channels", of="channels"),
    dilations=array("int64", "snippets"),
    shape_only=array("bool", "snippets"),
    by_strength=array("bool", "snippets"),
    thresholds=array("float64", "snippets", "thresholds"),
    shares=array("float64", "snippets", "thresholds"),
    series=_not_negative("int64", "snippets"),
    starts=array("int64", "snippets"),
    scale=_SCALE,
    longest=NOTHING | between(1, _MOST_STEPS),
    sizes={"kinds": lambda s, n: s.n_kinds, "snippets + 1": lambda s, n: len(s) + 1},
    rule=_check_snippets,
)
_ORIGINS = _record(
    Origins,
    indices=_indices("kept"),
    codes=codes("kept", of="classes"),
    names=NOTHING | tuple_of(TEXT, "kept"),
)
_CHOICE = _record(
    Choice,
    n_phases=at_least(1),
    penalty=POSITIVE,
    error=NUMBER,
    accuracy=NUMBER,
    chosen=BOOL,
    reason=TEXT,
)
_RIDGE_REPORT = _record(
    RidgeReport,
    stage=one_of("ridge"),
    objective=NUMBER,
    gap=NUMBER,
    converged=BOOL,
)
_SOLVE_REPORT = _record(
    SolveReport,
    positive=LABEL,
    stage=one_of("metric", "separator"),
    gamma=POSITIVE,
    objective=NUMBER,
    gap=NUMBER,
    n_iter=at_least(0),
    converged=BOOL,
)
_LOGDET = _record(
    LogDetSolution,
    metric=array("float64", "rows", "rows"),
    disorder=tuple_of(FINITE),
    n_updates=at_least(0),
    n_cycles=at_least(0),
    converged=BOOL,
)
_VALIDATION = _record(
    Validation,
    kind=one_of("leave-one-out", "held-out"),
    n_series=at_least(1),
    accuracy=FINITE,
    n_groups=NOTHING | at_least(1),
    group_accuracy=NOTHING | FINITE,
)

_MARGINS = _record(
    HeldOutMargins,
    margins=array("float64", "held out"),
    codes=codes("held out", of="classes"),
    weights=_not_negative("float64", "held out"),
    independent=BOOL,
)

# Parameters that depend on the machine. Files do not store them, and loaded models have defaults.
MACHINE_PARAMETERS = frozenset({"device", "memory_limit"})

# ---- fitted attributes


def _check_counts(model: SeriesClassifier) -> None:
    require(
        model.n_features_in_ == (model.n_columns_in_ or model.n_channels_in_),
        "n_features_in_ must be the number of channels, or of the columns of a table",
    )
    require(
        model.n_steps_in_ >= model.n_series_in_ >= len(model.classes_),
        "there must be a training series for each class, and a step for each series",
    )


_EVERY = Structure(
    classes_=where(
        array(None, "classes"),
        "two labels or more, sorted and distinct",
        lambda v: len(v) > 1 and np.array_equal(np.unique(v), v),
    ),
    n_channels_in_=at_least(1),
    channel_names_in_=NOTHING | tuple_of(TEXT, "channels"),
    n_columns_in_=NOTHING | at_least(1),
    n_features_in_=at_least(1),
    n_series_in_=at_least(2),
    n_steps_in_=at_least(2),
    origins_=NOTHING | _ORIGINS,
    every_=NOTHING | TEXT,
    label_column_=NOTHING | TEXT,
    validation_=NOTHING | _VALIDATION,
    training_digests_=NOTHING
    | where(array("uint64", "digests"), "sorted", lambda v: (v[1:] >= v[:-1]).all()),
    # Files written before there was a scale for each class have one number.
    probability_scale_=NOTHING | POSITIVE | _positive("classes"),
    held_out_margins_=NOTHING | _MARGINS,
    sizes={
        "channels": lambda m, n: m.n_channels_in_,
        "problems": lambda m, n: len(m.positive_classes_),
    },
    rule=_check_counts,
)


def _check_settings(model: SeriesClassifier) -> None:
    """Compare how rows are aligned with the parameters; LDMLT always takes distances."""
    given = model.get_params(deep=False)
    stated = {n: given[n] for n in ("objective", "band", "normalize", "dtype") if n in given}
    require(
        model.row_map_.settings == AlignmentSettings(**{"objective": "distance", **stated}),
        "its parameters dtype, objective, band or normalize have changed since fit",
    )


_ALIGNED = Structure(row_map_=_ROW_MAP, rule=_check_settings)


def _check_rows(model: Any) -> None:
    settings, rows = model.row_map_.settings, model.training_rows_
    require(len(rows) <= model.n_series_in_, "there are more training_rows_ than training series")
    if settings.normalize:
        norms = np.linalg.norm(rows.values, axis=1)
        require(norms.max() <= _UNIT, "training_rows_ must have rows of unit norm")
    settings.check_rows(rows)


_TRAINING_ROWS = Structure(
    training_rows_=series("distinct", "rows"),
    training_indices_=_indices("distinct"),
    rule=_check_rows,
)
_NEIGHBORS = Structure(training_codes_=codes("distinct", of="classes", each=True))


def _check_metric(model: estimators.LDMLTClassifier) -> None:
    same = np.array_equal(model.metric_, model.report_.metric)
    require(same, "report_ must have the same metric as metric_")
    # Raises an error unless the metric is positive definite.
    transformed = transform_rows(model.training_rows_, model.metric_)
    model.row_map_.settings.check_rows(transformed)


_LDMLT = Structure(
    metric_=array("float64", "rows", "rows"),
    report_=_LOGDET,
    rule=_check_metric,
)


_SVM = Structure(
    coef_=array("float64", "problems", "distinct"),
    intercept_=array("float64", "problems"),
    C_=POSITIVE,
    rule=lambda m: require(m.C in ("auto", m.C_), "its parameter C has changed since fit"),
)
_LANDMARKS = Structure(
    landmarks_=series("landmarks", "channels"),
    # There is no upper bound: a certified fit counts all series that it was given.
    landmark_indices_=_indices("landmarks"),
)


def _check_solutions(model: LandmarkClassifier) -> None:
    stages = ("metric", "separator") if model.learns_metric else ("separator",)
    expected = [(positive, stage) for positive in model.positive_classes_ for stage in stages]
    require(
        [(report.positive, report.stage) for report in model.reports_] == expected,
        "reports_ must have each solved problem once, in order",
    )
    _check_fit_params(model)
    identity = np.eye(model.metrics_.shape[-1])
    if not model.learns_metric:
        require((model.metrics_ == identity).all(), "metrics_ must be identities")


def _fit_params(model: LandmarkClassifier) -> dict[str, Any]:
    """What older files do not state: their parameters are taken as those of the fit."""
    given = {**model.get_params(deep=False), **getattr(model, "best_params_", {})}
    return {
        "landmarks": given["landmarks"] if isinstance(given["landmarks"], str) else "indices",
        "class_weight": "equal" if given["class_weight"] is None else "by class",
        "regularizer": given.get("regularizer", "frobenius"),
        "normalize": given["normalize"],
        **{name: float(given[name]) for name in ("gamma", "lam") if name in given},
    }


def _check_fit_params(model: LandmarkClassifier) -> None:
    given = model.fit_params_
    chosen = ["gamma", *(["lam"] if model.learns_metric else [])]
    require(
        list(given) == ["landmarks", "class_weight", "regularizer", "normalize", *chosen]
        and TEXT.accepts(given["landmarks"])
        and given["class_weight"] in ("equal", "by class")
        and given["regularizer"] in REGULARIZERS
        and SWITCH.accepts(given["normalize"])
        and all(POSITIVE.accepts(given[name]) for name in chosen),
        "fit_params_ must state how the model was fitted",
    )


_SEPARATORS = Structure(
    coef_=array("float64", "problems", "landmarks"),
    metrics_=array("float64", "problems", "rows", "rows"),
    reports_=tuple_of(_SOLVE_REPORT),
    fit_params_=dict_of(TEXT, TEXT | FINITE | BOOL),
    rule=_check_solutions,
)
_CANDIDATE = dict_of(TEXT, FINITE)


def _check_search(model: TunedLandmarkClassifier) -> None:
    chosen = ["n_landmarks", "gamma", *(["lam"] if model.learns_metric else [])]
    require(list(model.best_params_) == chosen, f"best_params_ must be {', '.join(chosen)}")
    require(
        model.best_params_["n_landmarks"] == len(model.landmarks_),
        "best_params_ must have the number of landmarks",
    )
    table = model.cv_results_
    lengths = {len(column) for column in table.values()}
    require("params" in table and len(lengths) == 1, "cv_results_ must be a table")
    require(
        all(map(_CANDIDATE.accepts, table["params"])),
        "cv_results_ must have the parameters that were tried",
    )


_COLUMN = Kind("a column", lambda v: type(v) is list or (isinstance(v, np.ndarray) and v.ndim == 1))
_TUNED = Structure(
    best_params_=dict_of(TEXT, POSITIVE),
    best_score_=FINITE,
    cv_results_=dict_of(TEXT, _COLUMN),
    n_splits_=at_least(1),
    rule=_check_search,
)


def _check_local(model: estimators.LocalSLTSClassifier) -> None:
    without = model.snippets_ is None
    require(without == (model.snippet_coef_ is None), "snippets_ and snippet_coef_ belong together")
    require(
        without == (model.n_snippets == 0),
        "it has n_snippets without snippets_, or snippets_ without n_snippets",
    )
    given = model.representations, model.objective
    representations, objectives = ((v,) if isinstance(v, str) else tuple(v) for v in given)
    found = [(c.representation.name, c.settings.objective) for c in model.comparisons_]
    require(
        found == [(r, o) for r in representations for o in objectives],
        "its parameters representations or objective have changed since fit",
    )
    for comparison in model.comparisons_:
        expected = AlignmentSettings(comparison.settings.objective, model.band, normalize=False)
        require(comparison.settings == expected, "its parameter band has changed since fit")
        # Kernels do not end on NaN, which a tiny spread gives.
        rows = comparison.representation(model.landmarks_).values
        require(np.isfinite(rows).all(), "comparisons_ must give finite rows of landmarks_")


_LOCAL = Structure(
    group_names_=tuple_of(TEXT, "groups"),
    groups_=codes("landmarks", of="groups", each=True),
    comparisons_=tuple_of(_COMPARISON, "comparisons"),
    local_metrics_=tuple_of(
        array("float64", "problems", "groups", "phases", "width[i]", "rank[i]"), "comparisons"
    ),
    intercept_=array("float64", "problems"),
    selection_=tuple_of(_CHOICE),
    reports_=tuple_of(_RIDGE_REPORT),
    snippets_=NOTHING | _SNIPPETS,
    snippet_coef_=NOTHING | array("float64", "problems", "snippets", "thresholds", "kinds"),
    rule=_check_local,
)

# ---- classifiers

CLASSIFIERS: Mapping[type[SeriesClassifier], tuple[Structure, ...]] = {
    estimators.SLTSClassifier: (_EVERY, _ALIGNED, _LANDMARKS, _SEPARATORS),
    estimators.SLTSClassifierCV: (_EVERY, _ALIGNED, _LANDMARKS, _SEPARATORS, _TUNED),
    estimators.BBSClassifier: (_EVERY, _ALIGNED, _LANDMARKS, _SEPARATORS),
    estimators.BBSClassifierCV: (_EVERY, _ALIGNED, _LANDMARKS, _SEPARATORS, _TUNED),
    estimators.OneNNClassifier: (_EVERY, _ALIGNED, _TRAINING_ROWS, _NEIGHBORS),
    estimators.SimilaritySVC: (_EVERY, _ALIGNED, _TRAINING_ROWS, _SVM),
    estimators.LDMLTClassifier: (_EVERY, _ALIGNED, _TRAINING_ROWS, _NEIGHBORS, _LDMLT),
    estimators.LocalSLTSClassifier: (_EVERY, _LANDMARKS, _LOCAL),
}

# Attributes and parameters that older files of this format lack, and their values in such models.
LATER_ATTRIBUTES: Mapping[str, Callable[[Any], Any]] = {
    "C_": lambda model: model.C,
    "every_": lambda model: None,
    "fit_params_": _fit_params,
    "held_out_margins_": lambda model: None,
    "label_column_": lambda model: None,
    "origins_": lambda model: None,
    "snippets_": lambda model: None,
    "snippet_coef_": lambda model: None,
    "training_digests_": lambda model: None,
    "validation_": lambda model: None,
}
# Attributes that older files of this format have, and models no longer: they are left out.
FORMER_ATTRIBUTES = frozenset({"n_sampled_"})
LATER_PARAMETERS: Mapping[str, Any] = {"n_snippets": 0}
# Attributes that only files without a later parameter may lack.
BELONGS_TO: Mapping[str, str] = {"snippets_": "n_snippets", "snippet_coef_": "n_snippets"}


def stored_attributes(kind: type[SeriesClassifier]) -> frozenset[str]:
    """Names of the fitted attributes that a file stores."""
    return frozenset().union(*(structure.fields for structure in CLASSIFIERS[kind]))


def stored_parameters(model: SeriesClassifier) -> dict[str, Any]:
    """Parameters that a file stores."""
    given = model.get_params(deep=False)
    return {name: value for name, value in given.items() if name not in MACHINE_PARAMETERS}


def check_model(model: SeriesClassifier) -> None:
    """Raise `ModelFileError` unless the model is as declared and safe to use."""
    sizes = Sizes()
    for name, value in stored_parameters(model).items():
        require_kind(model.parameter_kinds[name], f"the parameter {name}", value)
    for structure in CLASSIFIERS[type(model)]:
        structure.check("", model, sizes)
