"""Several local metrics instead of one: by landmark class and phase, through several representations."""

from __future__ import annotations

import logging
import numbers
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import TransformerMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from slts._typing import AnyArray, FloatArray, IntArray
from slts.alignment import AlignmentSettings
from slts.errors import warn
from slts.estimators.base import SeriesClassifier
from slts.estimators.local_training import Training, learn_local_metrics, training_bytes
from slts.estimators.memory_plan import amount
from slts.models.representations import REPRESENTATIONS, Representation
from slts.estimators.streams import (
    as_stream,
    check_read_together,
    mapper_for,
    memory_bytes,
    takes_streams,
)
from slts.estimators.survey import Survey, survey
from slts.landmarks import resolve_count, select_landmarks
from slts.landmarks.reservoir import SampleSize
from slts.landmarks.selection import check_landmarks, draw_stratified
from slts.learning.calibration import fit_scale
from slts.learning.local import Choice
from slts.learning.loo_ridge import PENALTIES
from slts.models.comparisons import Comparison, LastRows
from slts.models.linear_form import LinearForm
from slts.series import SeriesBatch
from slts.series.stream import SeriesStream

_LOGGER = logging.getLogger("slts")

OBJECTIVES = ("cost", "affinity")
# Landmarks: so many of each class, fewer where classes are many.
_PER_CLASS, _LANDMARKS = 10, 200
# Metrics grow with classes times groups: beyond this, classes share groups.
_MOST_GROUPS = 32
# Ridge is exact up to so many series; beyond, so many of them span the solution.
_ANCHORS = 2000
# Cells of all recurrences in training, beyond which series are averaged down; never below
# `_SHORT` steps.
_CELLS, _SHORT = 1e10, 128
# Series whose features are held at once in prediction.
_SERIES = 2000
# A sample of a stream has so many series at least and at most, and so many of each class. It may
# fill a share of the memory.
_FEWEST, _MOST, _PER_CLASS_DRAWN, _SAMPLE_SHARE = 1000, 100_000, 50, 1 / 8
# Share of the objective that rounding may leave on the table.
_GAP = 1e-6


@dataclass(frozen=True)
class RidgeReport:
    """How the least-squares problem was solved; `gap` bounds the distance from its optimum.

    The optimum is that among combinations of at most 2000 training series.
    """

    stage: str
    objective: float
    gap: float
    converged: bool


class LocalSLTSClassifier(TransformerMixin, SeriesClassifier):  # type: ignore[misc]
    """Local similarity learning: accurate on most data without any setting.

    Every series is aligned with a few landmarks of each class, several times: seen through three
    representations (standardised values; values and their changes; levels passed and their changes) and by
    both rules of alignment. A metric for each class, group of landmarks and phase of the landmark
    is learned on the aligned products by ridge regression, whose penalty is chosen by its exact
    leave-one-out error. Decisions stay linear in the aligned products: `slts.explain` is exact.

    Parameters
    ----------
    n_landmarks
        Number of landmarks, or share of the training series; None takes 10 of each class, fewer
        if there are more than 20 classes. Of no effect with `landmarks` given as indices.
    landmarks
        ``"random"`` draws as many from each class; ``"kmedoids"`` and ``"dselect"`` choose as
        `slts.select_landmarks` does; or indices of training series.
    representations
        Representations, some of ``"values"``, ``"changes"``, ``"levels"``.
    objective
        ``"cost"``, ``"affinity"`` or both; see `slts.align`.
    metrics
        ``"class"``: a metric for the landmarks of each class; ``"landmark"``: for each landmark;
        ``"shared"``: one for all. Each class to be recognised has its own in any case.
    n_phases
        Equal parts of a landmark with metrics of their own, or ``"auto"``: 3 where leave-one-out
        is clearly in favour, else 1.
    band
        None, a Sakoe-Chiba radius or `slts.Itakura`.
    n_components
        Channels a representation may show; more are reduced to as many principal components.
    metric_rank
        Rank of the metrics: in how many directions the landmarks are looked at.
    max_length
        Steps of a series longer than this are averaged, two by two, three by three and so on; None
        chooses by the amount of work, and no fewer than 128.
    penalties
        To choose from, relative to the mean squared norm of the features.
    class_weight
        None, ``"balanced"`` or a dict, as in scikit-learn.
    device
        ``"cpu"``; ``"cuda"``, an NVIDIA GPU through CuPy (extra ``cuda``), that aligns in `fit` and
        in prediction; or ``"auto"``: the GPU if there is one and the work is large enough, which is
        logged once. Model files do not keep it.
    memory_limit
        For series that are read from elsewhere, not from memory: about how much memory a sample of
        them may take, in bytes or as text such as ``"2GB"``; None is 1 GiB. The model is learned
        from this sample.
    n_jobs
        Threads of the CPU, by joblib's convention.
    random_state
        Seed for drawing landmarks.
    verbose
        Show progress.

    Attributes
    ----------
    classes_, n_features_in_
        Labels, and number of channels.
    landmarks_, landmark_indices_
        The landmarks as they came, and which training series they are.
    comparisons_ : tuple of Comparison
        The fitted comparisons.
    local_metrics_ : tuple of ndarray
        For each comparison, shape (problems, groups, phases, d, r); times the transpose of the comparison's
        ``basis`` they are the metrics, of rank r.
    intercept_ : ndarray of shape (problems,)
        Constant part of the decisions.
    groups_ : ndarray of shape (landmarks,)
        Group of each landmark.
    group_names_ : tuple of str
        The class, or classes, or landmark, of each group.
    selection_ : tuple of Choice
        What was tried, what was chosen, and why.
    reports_
        Objective and optimality of the solution.
    n_sampled_ : int or None
        How many series were drawn to learn from, of series that were read from elsewhere; None of
        series in memory.

    Examples
    --------
    >>> import numpy as np, slts
    >>> rng = np.random.default_rng(0)
    >>> y = np.repeat(["still", "waving"], 15)
    >>> X = [rng.normal(size=(2, 30)) + 2 * np.sin(np.arange(30)) * (c == "waving") for c in y]
    >>> model = slts.LocalSLTSClassifier(random_state=0).fit(X, y)
    >>> model.score(X, y)
    1.0
    """

    landmarks_: SeriesBatch
    landmark_indices_: IntArray
    comparisons_: tuple[Comparison, ...]
    local_metrics_: tuple[FloatArray, ...]
    intercept_: FloatArray
    groups_: IntArray
    group_names_: tuple[str, ...]
    selection_: tuple[Choice, ...]
    reports_: tuple[RidgeReport, ...]
    n_sampled_: int | None

    def __init__(
        self,
        n_landmarks: int | float | None = None,
        *,
        landmarks: Any = "random",
        representations: Sequence[str] = REPRESENTATIONS,
        objective: str | Sequence[str] = OBJECTIVES,
        metrics: str = "class",
        n_phases: int | str = "auto",
        band: Any = None,
        n_components: int = 24,
        metric_rank: int = 8,
        max_length: int | None = None,
        penalties: Sequence[float] = PENALTIES,
        class_weight: Any = None,
        device: str = "cpu",
        memory_limit: Any = None,
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: bool = False,
    ) -> None:
        self.n_landmarks = n_landmarks
        self.landmarks = landmarks
        self.representations = representations
        self.objective = objective  # type: ignore[assignment]
        self.metrics = metrics
        self.n_phases = n_phases
        self.band = band
        self.n_components = n_components
        self.metric_rank = metric_rank
        self.max_length = max_length
        self.penalties = penalties
        self.class_weight = class_weight
        self.device = device
        self.memory_limit = memory_limit
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Choose landmarks, align once through every representation, solve, select.

        Parameters
        ----------
        X
            Training series, anything `slts.as_series` takes; or series that need not fit in
            memory: the path of a Parquet data set, `slts.scan_series`, a Dask bag or data frame.
            Of these a sample is drawn that `memory_limit` has room for, and learned from.
        y
            Labels of any type, one per series. For series that are read from elsewhere the name of
            the column with the labels, or None to have it found.
        sample_weight
            Non-negative weight of each series in the loss; None is 1 for all.

        Returns
        -------
        Self
            The fitted classifier.
        """
        stream = as_stream(X, y if isinstance(y, str) else None)
        if stream is not None:
            with self._all_or_nothing():
                return self._fit_sample(stream, y, sample_weight)
        with self._all_or_nothing():
            memory_bytes(self.memory_limit, type(self).__name__)
            self.n_sampled_ = None
            every, codes = self._check_training_data(X, y)
            weights = self._check_weights(every, codes, sample_weight, self.class_weight)
            plan = self._check_parameters()
            rng = check_random_state(self.random_state)
            # A series without weight is not to be seen.
            seen = np.flatnonzero(weights > 0.0)
            batch, weights = every[seen], weights[seen] / weights[seen].mean()
            count = self._count(codes, seen)
            n_comparisons = len(plan.representations) * len(plan.settings)
            max_length = self._longest(batch, count * n_comparisons)
            representations = [
                Representation.fit(
                    batch, name, max_length=max_length, n_components=self.n_components
                )
                for name in plan.representations
            ]
            if isinstance(self.landmarks, str):
                chosen = self._choose_landmarks(count, representations[0], batch, codes[seen], rng)
                self.landmark_indices_ = seen[chosen]
            else:
                self.landmark_indices_ = np.array(self.landmarks, dtype=np.int64)
            self.landmarks_ = every[self.landmark_indices_]
            self._warn_about_missing_classes(codes[self.landmark_indices_])
            self._group_landmarks(codes[self.landmark_indices_], rng)
            codes = codes[seen]
            anchors = draw_stratified(codes, _ANCHORS, rng)
            targets = np.where(codes[:, np.newaxis] == np.arange(len(self.classes_)), 1.0, -1.0)
            if len(self.classes_) == 2:
                targets = targets[:, 1:]
            training = Training(
                batch, codes, weights, targets, anchors, self.landmarks_, self.groups_
            )
            self._learn(training, representations, plan)
        return self

    def _fit_sample(self, stream: SeriesStream, y: Any, sample_weight: Any) -> Self:
        """Learn from a sample: the model has a fixed size, so most of many series add little."""
        name = type(self).__name__
        check_read_together(y, sample_weight, name)
        if not isinstance(self.landmarks, str):
            raise ValueError(
                f"The 'landmarks' parameter of {name} must be a method for series that are read "
                f"part by part. Got indices instead."
            )
        limit = memory_bytes(self.memory_limit, name)
        seed = int(check_random_state(self.random_state).randint(2**31 - 1))
        size = SampleSize(_MOST, limit * _SAMPLE_SHARE, per_class=_PER_CLASS_DRAWN)
        with mapper_for(self.n_jobs, stream) as mapper, self._progress("Reading") as progress:
            found = survey(stream, mapper, size, seed=seed, progress=progress)
        found = self._what_fits(found, limit)
        if len(found.sample) < found.n_series:
            _LOGGER.info(
                "%s learns from a sample of %d of %d series (memory_limit: %s)",
                name, len(found.sample), found.n_series, amount(limit),
            )  # fmt: skip
        self.fit(found.sample.series, found.sample.labels, found.importance(found.sample_codes))
        self.landmark_indices_ = found.sample_indices[self.landmark_indices_]
        self.n_series_in_, self.n_steps_in_ = found.n_series, found.n_steps
        self.n_sampled_ = len(found.sample)
        return self

    def _what_fits(self, found: Survey, limit: float) -> Survey:
        """Leave as much of the sample as can be learned from in `limit` bytes."""
        plan, sample = self._check_parameters(), found.sample
        n_classes = len(found.classes)
        n_groups = {"shared": 1, "class": min(n_classes, _MOST_GROUPS)}.get(
            self.metrics, n_classes * self._per_class(n_classes)
        )

        def needed(count: int) -> float:
            series = count * sample.series.values.nbytes / len(sample)
            learning = training_bytes(
                count,
                min(count, _ANCHORS),
                n_channels=Representation.most_channels(
                    sample.series.n_channels, self.n_components
                ),
                rank=self.metric_rank,
                n_groups=n_groups,
                n_phases=plan.phases[-1],
                n_comparisons=len(plan.representations) * len(plan.settings),
            )
            return max(2.0 * series + learning, series / _SAMPLE_SHARE)

        most = len(sample)
        while needed(most) > limit and most > 1:
            most -= max(1, most // 50)
        if most == len(sample):
            return found
        fewest = min(max(_FEWEST, 3 * n_classes), found.n_series)
        if most < fewest:
            raise ValueError(
                f"The 'memory_limit' parameter of {type(self).__name__} is too small: "
                f"{amount(limit)}, and learning from a sample of {fewest} series takes "
                f"{amount(1.01 * needed(fewest))}. Raise it, or take fewer comparisons or phases."
            )
        per_class = min(_PER_CLASS_DRAWN, max(2, most // (2 * n_classes)))
        count = most - per_class * n_classes
        kept = sample.first(count, per_class)
        # Most of every class are among the first anyway.
        return replace(found, sample=sample.first(count + most - len(kept), per_class))

    @takes_streams
    def decision_function(self, X: Any) -> FloatArray:
        """Decision values, about 1 for the class and -1 for others.

        Parameters
        ----------
        X
            Anything `slts.as_series` takes; or series to be read: a path or several,
            `slts.scan_series`, a Dask bag or data frame.

        Returns
        -------
        ndarray
            Shape (series, classes); for two classes (series,), positive for ``classes_[1]``.
        """
        batch = self.check_series(X)
        values = np.tile(self.intercept_, (len(batch), 1))
        for rows, metrics, part, found in self._features(batch, self.groups_):
            own = metrics[:, part].reshape(len(metrics), -1)
            values[rows] += found.reshape(len(found), own.shape[1]) @ own.T
        return values[:, 0] if len(self.classes_) == 2 else values

    @takes_streams
    def transform(self, X: Any) -> FloatArray:
        """Share of every landmark in every decision value.

        Parameters
        ----------
        X
            Anything `slts.as_series` takes; or series to be read: a path or several,
            `slts.scan_series`, a Dask bag or data frame.

        Returns
        -------
        ndarray
            Shape (series, problems * landmarks), named by `get_feature_names_out`; with the
            intercept, the columns of a class sum to its decision value.
        """
        batch = self.check_series(X)
        shares = np.zeros((len(batch), len(self.intercept_), len(self.landmarks_)))
        for rows, metrics, part, found in self._features(batch, np.arange(len(self.landmarks_))):
            own = metrics[:, self.groups_[part]]
            shares[rows, :, part] += np.einsum("ijfur,cjfur->icj", found, own, optimize=True)
        shares /= np.bincount(self.groups_)[self.groups_]
        return shares.reshape(len(batch), shares.shape[1] * shares.shape[2])

    def get_feature_names_out(self, input_features: Any = None) -> npt.NDArray[Any]:
        """Names of the columns of `transform`.

        Parameters
        ----------
        input_features
            Ignored; there for scikit-learn.

        Returns
        -------
        ndarray
            ``"class1_landmark3"`` and so on.
        """
        check_is_fitted(self)
        return np.asarray(
            [
                f"class{c}_landmark{j}"
                for c in self.positive_classes_
                for j in self.landmark_indices_
            ],
            dtype=object,
        )

    def linear_forms(self) -> tuple[LinearForm, ...]:
        """The fitted model as numbers, one form per comparison: what `slts.explain` takes apart."""
        check_is_fitted(self)
        share = 1.0 / np.bincount(self.groups_)[self.groups_]
        coef = np.broadcast_to(share, (len(self.intercept_), len(share)))
        return tuple(
            LinearForm(
                name=comparison.name,
                positives=self.positive_classes_,
                landmarks=comparison.representation(self.landmarks_),
                landmark_indices=self.landmark_indices_,
                coef=coef,
                local_metrics=metrics @ comparison.basis.T,
                groups=self.groups_,
                group_names=self.group_names_,
                intercept=self.intercept_ / len(self.comparisons_),
                rows=comparison.representation,
                settings=comparison.settings,
            )
            for comparison, metrics in zip(self.comparisons_, self.local_metrics_, strict=True)
        )

    @property
    def n_numbers_(self) -> int:
        """Numbers the model stores: metrics and bases, representations, intercepts, landmarks' values."""
        check_is_fitted(self)
        metrics = sum(metrics.size for metrics in self.local_metrics_)
        bases = sum(comparison.basis.size for comparison in self.comparisons_)
        representations = sum(
            representation.n_numbers
            for representation in {
                id(v.representation): v.representation for v in self.comparisons_
            }.values()
        )
        return int(
            metrics + bases + representations + self.intercept_.size + self.landmarks_.values.size
        )

    def _features(
        self, batch: SeriesBatch, groups: IntArray
    ) -> Iterator[tuple[slice, FloatArray, slice, AnyArray]]:
        """Series, metrics, groups and features of every comparison, some at a time."""
        n_comparisons = len(self.comparisons_)
        starts = range(0, len(batch), _SERIES)
        with self._progress("Aligning") as progress:
            for n, begin in enumerate(starts):
                which, rows = slice(begin, begin + _SERIES), LastRows()
                for k, comparison in enumerate(self.comparisons_):
                    metrics = self.local_metrics_[k]
                    series, landmarks = rows.of(
                        comparison.representation, batch[which], self.landmarks_
                    )
                    n_phases = metrics.shape[2]
                    parts = comparison.features(
                        series, landmarks, groups, n_phases, device=self.device, n_jobs=self.n_jobs
                    )
                    for part, found in parts:
                        yield which, metrics, part, found
                    if progress is not None:
                        progress(n * n_comparisons + k + 1, len(starts) * n_comparisons)

    def _check_parameters(self) -> _Plan:
        representations = _subset("representations", self.representations, REPRESENTATIONS)
        objectives = _subset("objective", self.objective, OBJECTIVES)
        if self.metrics not in ("class", "landmark", "shared"):
            raise ValueError(
                f"The 'metrics' parameter of LocalSLTSClassifier must be 'class', 'landmark' or "
                f"'shared'. Got {self.metrics!r} instead."
            )
        if self.n_phases == "auto":
            phases: tuple[int, ...] = (1, 3)
        else:
            phases = (_at_least_one("n_phases", self.n_phases),)
        _at_least_one("n_components", self.n_components)
        _at_least_one("metric_rank", self.metric_rank)
        if self.max_length is not None:
            _at_least_one("max_length", self.max_length)
        try:
            penalties = np.asarray(self.penalties, dtype=np.float64)
        except (TypeError, ValueError):
            penalties = np.empty(0)
        usable = penalties.ndim == 1 and len(penalties) > 0 and np.isfinite(penalties).all()
        if not usable or not (penalties > 0).all():
            raise ValueError(
                f"The 'penalties' parameter of LocalSLTSClassifier must be positive numbers. "
                f"Got {self.penalties!r} instead."
            )
        settings = tuple(AlignmentSettings(o, self.band, normalize=False) for o in objectives)
        return _Plan(representations, settings, phases, np.unique(penalties))

    def _longest(self, batch: SeriesBatch, n_alignments: int) -> int | None:
        """Steps that series may have, so that training stays within reach; None: all they have.

        Every series is aligned `n_alignments` times.
        """
        if self.max_length is not None:
            return self.max_length
        budget = _CELLS / (n_alignments * len(batch))

        def cells(longest: float) -> float:
            return float(np.minimum(batch.lengths, longest).mean()) ** 2

        longest = int(batch.lengths.max())
        if longest <= _SHORT or cells(longest) <= budget:
            return None
        lengths = np.arange(_SHORT, longest, max(1, (longest - _SHORT) // 256))
        fits = sum(cells(float(length)) <= budget for length in lengths)
        return int(lengths[max(0, fits - 1)])

    def _count(self, codes: IntArray, seen: IntArray) -> int:
        """How many landmarks there will be."""
        if not isinstance(self.landmarks, str):
            return len(check_landmarks(self.landmarks, len(codes), type(self).__name__))
        if self.n_landmarks is None:
            most = self._per_class(len(self.classes_))
            return int(np.minimum(np.bincount(codes[seen]), most).sum())
        return min(resolve_count(self.n_landmarks, len(codes)), len(seen))

    @staticmethod
    def _per_class(n_classes: int) -> int:
        return max(4, min(_PER_CLASS, _LANDMARKS // n_classes))

    def _choose_landmarks(
        self,
        count: int,
        representation: Representation,
        batch: SeriesBatch,
        codes: IntArray,
        rng: Any,
    ) -> IntArray:
        if self.landmarks == "random":
            return draw_stratified(codes, count, rng)
        return select_landmarks(
            representation(batch), count, method=self.landmarks, objective="cost", band=self.band,
            normalize=False, random_state=rng.randint(2**31 - 1),
            device=self.device, n_jobs=self.n_jobs,
        )  # fmt: skip

    def _group_landmarks(self, codes: IntArray, rng: Any) -> None:
        """Which landmarks share a metric."""
        present, groups = np.unique(codes, return_inverse=True)
        names = [str(label) for label in self.classes_[present]]
        if self.metrics == "shared":
            groups, names = np.zeros(len(codes), dtype=np.int64), ["all"]
        elif self.metrics == "landmark":
            groups = np.arange(len(codes))
            names = [
                f"{self.classes_[c]} #{j}"
                for c, j in zip(codes, self.landmark_indices_, strict=True)
            ]
        elif len(present) > _MOST_GROUPS:
            # Classes dealt out evenly: a metric per pair of many classes is more than data can say.
            dealt = rng.permutation(len(present)) % _MOST_GROUPS
            names = [" ".join(np.asarray(names)[dealt == g]) for g in range(_MOST_GROUPS)]
            groups = dealt[groups]
        self.groups_ = np.asarray(groups, dtype=np.int64)
        self.group_names_ = tuple(names)

    def _learn(
        self, training: Training, representations: Sequence[Representation], plan: _Plan
    ) -> None:
        found = learn_local_metrics(
            training,
            [
                (representation, settings)
                for representation in representations
                for settings in plan.settings
            ],
            plan.phases,
            plan.penalties,
            metric_rank=self.metric_rank,
            device=self.device,
            n_jobs=self.n_jobs,
            show=bool(self.verbose),
        )
        self.comparisons_, self.local_metrics_ = found.comparisons, found.metrics
        self.intercept_, self.selection_ = found.fit.intercept, found.selection
        self.probability_scale_ = fit_scale(found.fit.left_out, training.codes, training.weights)
        objective, gap = found.fit.objective, found.fit.gap
        self.reports_ = (RidgeReport("ridge", objective, gap, gap <= _GAP * objective),)
        if not self.reports_[0].converged:
            warn(
                f"The least-squares problem is ill conditioned (gap {gap:.2g} of {objective:.2g}): "
                f"use larger penalties.",
                ConvergenceWarning,
            )


@dataclass(frozen=True)
class _Plan:
    """Checked parameters."""

    representations: tuple[str, ...]
    settings: tuple[AlignmentSettings, ...]
    phases: tuple[int, ...]
    penalties: FloatArray


def _subset(name: str, given: Any, known: tuple[str, ...]) -> tuple[str, ...]:
    try:
        names = (given,) if isinstance(given, str) else tuple(given)
    except TypeError:
        names = ()
    if not names or any(n not in known for n in names) or len(set(names)) < len(names):
        raise ValueError(
            f"The {name!r} parameter of LocalSLTSClassifier must be one or several of {known}. "
            f"Got {given!r} instead."
        )
    return names


def _at_least_one(name: str, value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, numbers.Integral) or value < 1:
        what = "an int of at least 1" + (" or 'auto'" if name == "n_phases" else "")
        raise ValueError(
            f"The {name!r} parameter of LocalSLTSClassifier must be {what}. Got {value!r} instead."
        )
    return int(value)
