"""Learning of classifiers that keep all series: a linear SVM, nearest neighbours, LDMLT's metric.

LDMLT learns a Mahalanobis metric for DTW from triplets of series, in cycles. A cycle aligns and
ranks the series under the current metric, draws triplets in the wrong order, and takes a LogDet
step (:mod:`slts.solvers.logdet`) for each triplet.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from sklearn.svm import LinearSVC
from sklearn.utils import check_random_state

from slts._typing import FloatArray, IntArray
from slts.alignment import Aligner, AlignmentSettings, align
from slts.errors import DataError
from slts.execution import Bar, Progress, silent
from slts.features.aligned_products import AlignedProducts
from slts.features.feature_map import Resources
from slts.features.models import LinearModel, Neighbours, Origins, nearest_decisions
from slts.features.row_map import RowMap
from slts.series import SeriesBatch
from slts.series.values import map_rows
from slts.solvers.calibration import HeldOutDecisions, Validation
from slts.solvers.logdet import LogDetSolution, Ranking, draw_members, logdet_step
from slts.training.held_out import make_splits, search
from slts.training.training_set import Fit, TrainingSet

# Folds that C is chosen on if nothing is held out for calibration.
_FOLDS = 3
# The disorder has settled when a cycle changes it by less than this share.
_SETTLED = 1e-4
# Length of all steps of a cycle together, relative to M.
_ALPHA = 10.0
# Keeps I + step * (P - Q) well conditioned when there are few triplets; any value below 1 works.
_LARGEST_RATE = 0.5
_PROGRESS_EVERY = 500


@dataclass(frozen=True, kw_only=True)
class SvmFit(Fit):
    """What was learned, with the C that was given or chosen."""

    C: float


def fit_svm(
    data: TrainingSet,
    settings: AlignmentSettings,
    resources: Resources,
    bar: Bar,
    *,
    Cs: Sequence[float],
    fit_intercept: bool,
    scale: str | None,
    homogeneous: bool | str,
    class_weight: Any,
    calibration_cv: Any,
) -> SvmFit:
    """Choose C on held-out series, calibrate on its held-out decisions, train on all series.

    Parameters are those of `SimilaritySVC`; `Cs` is what C is chosen from, ascending.
    """
    codes, series, n_classes = data.codes, data.named_series, len(data.classes)
    row_map = RowMap.fit(series, scale=scale, homogeneous=homogeneous, normalize=settings.normalize)
    # Every series is a landmark; the SVM finds the weights.
    equal = np.ones((1 if n_classes == 2 else n_classes, len(series)))
    landmarks = AlignedProducts(
        "similarity", series, row_map, settings, equal, bank_per_output=True
    )
    with bar("Aligning"):
        K = landmarks.similarities(series, None, resources)
    weights = data.weights * data.class_weights(class_weight)[codes]
    # Without calibration, C alone is chosen on held-out series.
    calibrates = calibration_cv is not None or len(Cs) == 1
    name = "calibration_cv" if calibrates else "C='auto'"
    splits = make_splits(calibration_cv if calibrates else _FOLDS, data, name)
    for train, _ in splits:
        missing = np.setdiff1d(np.arange(len(data.classes)), codes[train])
        if len(missing):
            raise DataError(
                f"calibration_cv leaves class {data.classes.tolist()[missing[0]]!r} out of a "
                f"training part: every training part must have all classes."
            )

    def learn(rows: IntArray | slice, C: float) -> tuple[FloatArray, FloatArray]:
        # The primal solver needs no seed and does not slow down as C grows.
        svm = LinearSVC(C=C, dual=False, fit_intercept=fit_intercept)
        svm.fit(K[rows], codes[rows], sample_weight=weights[rows])
        return svm.coef_, np.broadcast_to(svm.intercept_, len(svm.coef_)).astype(np.float64)

    def decide(train: IntArray, test: IntArray) -> Iterator[FloatArray]:
        for C in Cs:
            coef, intercept = learn(train, C)
            yield K[test] @ coef.T + intercept

    C, held_out, validation = Cs[0], None, None
    if splits:
        with bar("Training on parts") as progress:
            decisions = (decide(*split) for split in splits)
            candidates = [{"C": C} for C in Cs]
            best = search(decisions, candidates, splits, data, weights, data.weights, progress)
        C, validation = Cs[best.best], best.validation
        held_out = None if calibration_cv is None else best.held_out
    coef, intercept = learn(slice(None), C)
    landmarks = replace(landmarks, landmarks=series.anonymous(), weights=coef)
    identities = np.tile(np.eye(landmarks.shape[-1]), (len(coef), 1, 1, 1, 1))
    return SvmFit(
        model=LinearModel((landmarks,), (identities,), intercept), landmark_indices=data.indices,
        origins=Origins.of(data.series, data.indices, codes), held_out=held_out,
        validation=validation, C=C,
    )  # fmt: skip


def left_out_decisions(
    neighbours: Neighbours, size: int, resources: Resources
) -> tuple[HeldOutDecisions | None, Validation | None]:
    """Decide on up to `size` training series, each left out in turn; also return the accuracy.

    Both are None if every class has one series only: that series has no neighbour of its class.
    """
    codes = neighbours.codes
    # Training series are in random order, so the first ones are a random choice.
    held_out = np.flatnonzero(np.bincount(codes)[codes] > 1)[:size]
    if len(held_out) == 0:
        return None, None
    values = neighbours.nearness_of_rows(neighbours.rows[held_out], resources)
    values[np.arange(len(held_out)), held_out] = -np.inf
    left_out = HeldOutDecisions(
        nearest_decisions(values, codes), codes[held_out], np.ones(len(held_out))
    )
    return left_out, Validation.of("leave-one-out", left_out, held_out)


# ---- LDMLT


@dataclass(frozen=True, kw_only=True)
class LogDetOptions:
    """Parameters of LDMLT.

    Attributes
    ----------
    n_cycles
        Largest number of cycles. Usually all are run.
    triplets_per_series
        Triplets per ranked series in the first cycle. Later cycles draw fewer, in proportion to the
        square root of the disorder.
    margin
        In units of the distance at M = I. The trace of M is always d.
    ranking_limit
        Largest number of series that a cycle ranks and draws triplets from; None for all. Each
        cycle draws them anew, with the classes in proportion. Above the limit the disorder is an
        estimate, and the time does not depend on the number of series.
    seed
        Seed of the draws.
    resources
        Where series are ranked. Single paths are found on the CPU.
    """

    n_cycles: int = 8
    triplets_per_series: float = 20.0
    margin: float = 0.0
    ranking_limit: int | None = 1500
    seed: int = 0
    resources: Resources = field(default_factory=Resources)


def learn_logdet_metric(
    batch: SeriesBatch, codes: IntArray, options: LogDetOptions, progress: Progress = silent
) -> LogDetSolution:
    """Learn M such that series of one class are nearer to each other than to others.

    A cycle ranks the series by their distances, draws triplets (i, same class j, other class k)
    uniformly among those in the wrong order, and takes a step for each triplet that is still
    violated, d(i, k) - d(i, j) < margin, when it is visited.

    Parameters
    ----------
    batch
        Series whose rows are compared as they are, without normalisation.
    codes
        Class of each series.
    options
        Parameters.
    progress
        Called with (finished cycles, all cycles).

    Returns
    -------
    LogDetSolution
        The metric with the smallest disorder, which may be M = I.
    """
    learner, rng = _Learner(batch, codes, options), check_random_state(options.seed)
    ranking = learner.rank(rng)
    disorder = [ranking.disorder]
    best = learner.factor
    # With one channel there is only one metric of trace d.
    converged = ranking.disorder == 0.0 or batch.n_channels == 1
    while not converged and len(disorder) <= options.n_cycles:
        share = min(1.0, math.sqrt(disorder[-1] / disorder[0]))
        count = math.ceil(options.triplets_per_series * len(ranking) * share)
        rate = min(_ALPHA / count, _LARGEST_RATE)
        for visited, triplet in enumerate(ranking.draw(count, rng).tolist()):
            learner.learn_from(*triplet, rate=rate)
            if visited % _PROGRESS_EVERY == 0:
                progress(len(disorder) - 1 + visited / count, options.n_cycles)
        ranking = learner.rank(rng)
        if ranking.disorder <= min(disorder):
            best = learner.factor
        converged = abs(ranking.disorder - disorder[-1]) < _SETTLED * disorder[-1]
        converged = converged or ranking.disorder == 0.0
        disorder.append(ranking.disorder)
    progress(options.n_cycles, options.n_cycles)
    metric = best @ best.T
    return LogDetSolution(
        metric, tuple(disorder), learner.n_updates, len(disorder) - 1, bool(converged)
    )


class _Learner:
    """The batch, and the factor L of the current M, whose trace is d."""

    def __init__(self, batch: SeriesBatch, classes: IntArray, options: LogDetOptions) -> None:
        self.batch, self.classes, self.options = batch, classes, options
        self.factor: FloatArray = np.eye(batch.n_channels)
        self.n_updates = 0

    def rank(self, rng: np.random.RandomState) -> Ranking:
        """Rank some series by their distances under the current M."""
        members = draw_members(self.classes, self.options.ranking_limit, rng)
        rows = map_rows(self.batch[members], self.factor)
        settings = AlignmentSettings(objective="distance", normalize=False)
        distances = Aligner(rows, settings, *self.options.resources).distances(rows)
        return Ranking(distances.astype(np.float64, copy=False), self.classes[members], members)

    def learn_from(self, i: int, same: int, other: int, *, rate: float) -> None:
        """Take a step for a triplet if it is violated."""
        x, y, z = (self.factor.T @ self.batch[k] for k in (i, same, other))
        pull, push = _path_differences(x, y), _path_differences(x, z)
        if np.vdot(push, push) - np.vdot(pull, pull) >= self.options.margin:
            return
        factor = logdet_step(self.factor, pull, push, rate)
        # Only ratios of distances matter. A fixed trace gives the margin its meaning.
        self.factor = factor * math.sqrt(len(factor) / float(np.vdot(factor, factor)))
        self.n_updates += 1


def _path_differences(a: FloatArray, b: FloatArray) -> FloatArray:
    """Return the differences a_i - b_j along the path, shape (d, path length)."""
    path = align(a, b, objective="distance", normalize=False).path
    return a[:, path[:, 0]] - b[:, path[:, 1]]
