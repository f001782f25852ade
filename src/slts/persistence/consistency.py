"""How the parts of each classifier must fit together.

Every function raises `ModelFileError` unless they do. Kernels trust their arguments, so what passes
here must be safe to use.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from slts._typing import FloatArray
from slts.alignment import AlignmentSettings
from slts.errors import ModelFileError
from slts.estimators import (
    LDMLTClassifier,
    LocalSLTSClassifier,
    SimilaritySVC,
    SLTSClassifier,
    SLTSClassifierCV,
)
from slts.estimators.base import SeriesClassifier
from slts.estimators.landmark_classifier import LandmarkClassifier
from slts.estimators.neighbors import NearestNeighbor
from slts.models.representations import Representation
from slts.estimators.tuning import TunedLandmarks
from slts.learning.logdet import transform_rows
from slts.persistence.kinds import FINITE, TEXT, dict_of
from slts.series import SeriesBatch
from slts.series.channels import ChannelScale

# Rounding may take a unit row a little beyond 1.
_UNIT = 1.0 + 1e-6
_MOST_LEVELS = 1000


def _require(condition: bool, reason: str) -> None:
    if not condition:
        raise ModelFileError(reason)


def check_every(model: SeriesClassifier) -> None:
    """What holds of all classifiers."""
    classes = model.classes_
    _require(
        len(classes) > 1 and bool(np.array_equal(np.unique(classes), classes)),
        "classes_ must be two or more labels, sorted, each once",
    )
    _require(
        model.n_features_in_ == (model.n_columns_in_ or model.n_channels_in_),
        "n_features_in_ must be the number of channels, or of columns of a table",
    )
    _require(
        model.n_steps_in_ >= model.n_series_in_ >= len(classes),
        "there must be a training series for every class, and a step for every series",
    )


def _check_row_map(model: SeriesClassifier) -> None:
    # Rows are prepared by the one and aligned by the other.
    _require(
        model.row_map_.settings == model._settings(),
        "its parameters dtype, objective, band or normalize are not those it was fitted with",
    )
    _check_scale(model.row_map_.scale, model.n_channels_in_)


def _check_scale(scale: ChannelScale | None, n_channels: int) -> None:
    if scale is not None:
        _check_shape("the centre of the channels", scale.centre, (n_channels,))
        _check_spread(scale.spread, n_channels)


def _check_spread(spread: FloatArray, n_channels: int) -> None:
    _check_shape("the spread of the channels", spread, (n_channels,))
    _require(bool((spread > 0).all()), "the spread of the channels must be positive")


def _n_rows(model: SeriesClassifier) -> int:
    """Channels as they are aligned: those of the data, perhaps a constant one."""
    return model.n_channels_in_ + (model.row_map_.constant is not None)


def _n_problems(model: SeriesClassifier) -> int:
    return len(model.positive_classes_)


def _check_shape(name: str, value: Any, shape: tuple[int, ...]) -> None:
    _require(value.shape == shape, f"{name} must have shape {shape}, and has {value.shape}")


def _check_rows(name: str, batch: SeriesBatch, model: SeriesClassifier) -> None:
    """Rows kept as they are aligned: of all training series, as short as settings ask."""
    _check_row_map(model)
    _require(batch.n_channels == _n_rows(model), f"{name} must have {_n_rows(model)} channels")
    _require(
        len(batch) == model.n_series_in_ and batch.n_steps == model.n_steps_in_,
        f"{name} must be the training series",
    )
    settings = model._settings()
    if settings.normalize:
        norms = np.sqrt(np.einsum("ij,ij->i", batch.values, batch.values))
        _require(float(norms.max()) <= _UNIT, f"{name} must have rows of unit norm")
    else:
        settings.check_rows(batch)


def _check_places(model: LandmarkClassifier | LocalSLTSClassifier) -> None:
    landmarks, indices = model.landmarks_, model.landmark_indices_
    _require(
        landmarks.n_channels == model.n_channels_in_,
        f"landmarks_ must have {model.n_channels_in_} channels, and have {landmarks.n_channels}",
    )
    _check_shape("landmark_indices_", indices, (len(landmarks),))
    # Not below the number of training series: a certified fit counts in all series it was given.
    _require(
        len(np.unique(indices)) == len(indices) and int(indices.min()) >= 0,
        "landmark_indices_ must be distinct positions of series",
    )


def check_landmarks(model: LandmarkClassifier) -> None:
    """SLTS and BBS."""
    _check_row_map(model)
    _check_places(model)
    problems, d = _n_problems(model), _n_rows(model)
    _check_shape("coef_", model.coef_, (problems, len(model.landmarks_)))
    _check_shape("metrics_", model.metrics_, (problems, d, d))
    if not model._needs_products:
        _require(bool((model.metrics_ == np.eye(d)).all()), "metrics_ must be identities")
    stages = ["metric", "separator"] if model._needs_products else ["separator"]
    expected = [(positive, stage) for positive in model.positive_classes_ for stage in stages]
    _require(
        [(report.positive, report.stage) for report in model.reports_] == expected,
        "reports_ must list every solved problem once, in order",
    )


def check_slts(model: SLTSClassifier) -> None:
    """SLTS: perhaps with paths under metrics."""
    check_landmarks(model)


def check_tuned_slts(model: SLTSClassifierCV) -> None:
    """SLTS that chose its parameters."""
    check_tuned(model)


def check_tuned(model: TunedLandmarks) -> None:
    """The CV variants of SLTS and BBS."""
    check_landmarks(model)
    chosen = ["n_landmarks", "gamma", *(["lam"] if model._needs_products else [])]
    _require(
        list(model.best_params_) == chosen and all(v > 0 for v in model.best_params_.values()),
        f"best_params_ must be positive {', '.join(chosen)}",
    )
    _require(
        model.best_params_["n_landmarks"] == len(model.landmarks_),
        "best_params_ must name the number of landmarks",
    )
    lengths = {len(column) for column in model.cv_results_.values()}
    _require(len(lengths) == 1 and "params" in model.cv_results_, "cv_results_ must be a table")
    candidates = model.cv_results_["params"]
    _require(
        all(dict_of(TEXT, FINITE).accepts(candidate) for candidate in candidates),
        "cv_results_ must hold the parameters that were tried",
    )


def check_neighbors(model: NearestNeighbor) -> None:
    """Nearest neighbours."""
    _check_rows("training_rows_", model.training_rows_, model)
    _check_shape("training_codes_", model.training_codes_, (model.n_series_in_,))
    _require(
        bool(np.array_equal(np.unique(model.training_codes_), np.arange(len(model.classes_)))),
        "_codes must name every class, and no other",
    )


def check_svm(model: SimilaritySVC) -> None:
    """The SVM over all training series."""
    _check_rows("training_rows_", model.training_rows_, model)
    _check_shape("coef_", model.coef_, (_n_problems(model), model.n_series_in_))
    _check_shape("intercept_", model.intercept_, (_n_problems(model),))


def check_ldmlt(model: LDMLTClassifier) -> None:
    """Nearest neighbours under a learned distance."""
    check_neighbors(model)
    metric, d = model.metric_, _n_rows(model)
    _check_shape("metric_", metric, (d, d))
    _require(bool(np.array_equal(metric, model.report_.metric)), "report_ must be of metric_")


def transformed_rows(model: LDMLTClassifier) -> SeriesBatch:
    """Training series as the learned distance sees them."""
    # Refuses metrics that are not positive definite.
    transformed = transform_rows(model.training_rows_, model.metric_)
    model._settings().check_rows(transformed)
    return transformed


def check_local(model: LocalSLTSClassifier) -> None:
    """Local metrics, one set per comparison."""
    _check_places(model)
    _check_shape("groups_", model.groups_, (len(model.landmarks_),))
    n_groups = len(model.group_names_)
    _require(
        bool(np.array_equal(np.unique(model.groups_), np.arange(n_groups))),
        "groups_ must name every group, and no other",
    )
    _check_shape("intercept_", model.intercept_, (_n_problems(model),))
    _require(
        len(model.comparisons_) == len(model.local_metrics_) > 0,
        "there must be metrics for every comparison",
    )
    n_phases = model.local_metrics_[0].shape[2]
    for comparison, metrics in zip(model.comparisons_, model.local_metrics_, strict=True):
        settings = comparison.settings
        known = AlignmentSettings(settings.objective, model.band, normalize=False)
        _require(
            settings == known and settings.objective != "distance",
            "its parameter band is not the one it was fitted with",
        )
        d = _check_representation(comparison.representation, model.n_channels_in_)
        rank = comparison.basis.shape[1]
        _check_shape("the basis of a comparison", comparison.basis, (d, rank))
        _require(rank > 0 and n_phases > 0, "every comparison must have a direction and a phase")
        shape = (_n_problems(model), n_groups, n_phases, d, rank)
        _check_shape("the metrics of a comparison", metrics, shape)


def _check_representation(representation: Representation, n_channels: int) -> int:
    """Channels of the rows of a representation."""
    _require(
        (representation.scale is None) != (representation.levels is None),
        "a representation must have a scale or levels",
    )
    _check_scale(representation.scale, n_channels)
    width = n_channels
    if representation.levels is not None:
        knots = representation.levels.knots
        known = representation.levels.n_levels <= _MOST_LEVELS and knots.size > 0
        _require(known, f"a representation must have knots, and at most {_MOST_LEVELS} levels")
        _check_shape("the knots of a representation", knots, (n_channels, knots.shape[1]))
        _check_shape("the ranks of a representation", representation.levels.ranks, knots.shape)
        width *= representation.levels.n_levels
    if representation.change_spread is not None:
        _check_spread(representation.change_spread, width)
        width *= 2
    if representation.components is not None:
        basis = representation.components.basis
        _check_shape("the centre of the components", representation.components.centre, (width,))
        _check_shape("the basis of the components", basis, (width, basis.shape[1]))
        width = basis.shape[1]
    return width + 1
