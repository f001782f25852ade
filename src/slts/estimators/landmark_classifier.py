"""What BBS and SLTS share: landmarks, decision values, probabilities, the similarity map."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import TransformerMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from slts._typing import FloatArray, IntArray
from slts.alignment import AlignmentSettings, check_dtype
from slts.alignment.reductions import (
    grouped_products,
    products,
    projected_similarities,
    similarities,
)
from slts.errors import warn
from slts.estimators.base import SeriesClassifier
from slts.estimators.landmark_stream import InMemory, fit_stream
from slts.estimators.memory_plan import amount
from slts.estimators.search import Search, search
from slts.estimators.splitting import Split, make_splits
from slts.estimators.streams import (
    BatchStream,
    as_stream,
    half_of_memory,
    memory_bytes,
    takes_streams,
)
from slts.execution import Progress
from slts.landmarks import resolve_count, select_landmarks
from slts.landmarks.selection import METHODS, check_landmarks
from slts.learning.landmark import LandmarkData, LandmarkModel
from slts.models.linear_form import LinearForm
from slts.models.row_map import RowMap
from slts.series import SeriesBatch

# The paper's rule: half of a small training set, 100 landmarks of a large one.
_MOST_LANDMARKS, _LANDMARK_SHARE = 100, 0.5
# Series whose grouped sums are held at once while deciding.
_DECISION_BYTES = 64 * 2**20


@dataclass(frozen=True)
class SolveReport:
    """One solved problem: its objective and how far from optimal it can be."""

    positive: Any
    stage: str
    gamma: float
    objective: float
    gap: float
    n_iter: int
    converged: bool


class LandmarkClassifier(TransformerMixin, SeriesClassifier):  # type: ignore[misc]
    """Base of the sparse classifiers over landmarks.

    A decision value is sum_j coef_[c, j] <metrics_[c], T(x, landmark j)>.
    """

    landmarks_: SeriesBatch
    landmark_indices_: IntArray
    coef_: FloatArray
    metrics_: FloatArray
    reports_: tuple[SolveReport, ...]

    # Whether metrics are learned from products T; otherwise they are identities, and K_I is enough.
    learns_metric: bool = True

    # Parameters every subclass has.
    n_landmarks: Any
    landmarks: Any
    scale: Any
    homogeneous: Any
    class_weight: Any
    dtype: Any
    memory_limit: Any
    random_state: Any

    def _settings(self) -> AlignmentSettings:
        check_dtype(self.dtype, type(self).__name__)
        return replace(super()._settings(), dtype=self.dtype)

    @abstractmethod
    def _parameters(self) -> list[dict[str, float]]:
        """What to choose from; one entry if there is no choice."""

    @abstractmethod
    def _held_out_decisions(
        self,
        data: LandmarkData,
        train: IntArray,
        test: IntArray,
        parameters: Sequence[dict[str, float]],
    ) -> FloatArray:
        """Decision values on `test`, learned on `train`, shape (parameters, test, problems)."""

    @abstractmethod
    def _solve(
        self, data: LandmarkData, parameters: dict[str, float], progress: Progress | None
    ) -> LandmarkModel:
        """Learn from all data with the chosen parameters."""

    # The parameter that makes the splits.
    _cv_name = "calibration_cv"

    def _splits(self, codes: IntArray, seed: int) -> list[Split]:
        """Splits whose held-out decisions calibrate probabilities (and choose parameters)."""
        cv = getattr(self, "calibration_cv", None)
        if cv is None:
            return []
        return make_splits(
            cv, codes, random_state=seed, name="calibration_cv", classes=self.classes_
        )

    def _landmark_counts(self, data: LandmarkData) -> list[int]:
        return [data.n_landmarks]

    def _keep(self, found: Search) -> None:
        """Hook for estimators that report their search."""

    def _choose(
        self,
        data: LandmarkData,
        parameters: Sequence[dict[str, float]],
        splits: Sequence[Split],
        importance: FloatArray | None = None,
    ) -> dict[str, Any]:
        """Number of landmarks and parameters by held-out accuracy; calibrates on the way."""
        counts = self._landmark_counts(data)
        chosen: dict[str, Any] = {"n_landmarks": counts[0], **parameters[0]}
        self.probability_scale_ = None
        if splits:
            with self._progress("Trying parameters on held-out series") as progress:
                found = search(
                    data, counts, parameters, self._held_out_decisions, splits,
                    importance=importance, progress=progress,
                )  # fmt: skip
            self.probability_scale_ = found.scale
            self._keep(found)
            chosen = dict(found.candidates[found.best])
        return chosen

    def _refine(
        self,
        model: LandmarkModel,
        data: LandmarkData,
        series: SeriesBatch,
        settings: AlignmentSettings,
        splits: Sequence[Split],
    ) -> LandmarkModel:
        """Hook for estimators that go on from what was learned; `data` is without alignments."""
        return model

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Choose landmarks, align once, learn.

        Parameters
        ----------
        X
            Training series, anything `slts.as_series` takes; or series that need not fit in
            memory: the path of a Parquet data set, `slts.scan_series`, a Dask bag or data frame.
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
                fit_stream(self, stream, y, sample_weight)
            return self
        with self._all_or_nothing():
            batch, codes = self._check_training_data(X, y)
            weights = self._check_weights(batch, codes, sample_weight, self.class_weight)
            settings, parameters = self._settings(), self._parameters()
            limit = self._memory()
            seed = int(check_random_state(self.random_state).randint(2**31 - 1))
            splits = self._splits(codes, seed)
            self.row_map_ = RowMap.fit(
                batch, settings, homogeneous=self.homogeneous, scale=self.scale
            )
            series = self.row_map_(batch)
            indices = self._choose_landmarks(series, settings, seed)
            size = self._alignments_bytes(len(indices), series, settings)
            if self._goes_in_parts(size, limit):
                landmarks = (batch[indices], indices, codes[indices])
                self._fit_in_parts(batch, codes, weights, limit, size, splits, landmarks)
                return self
            data = self._align(series, codes, weights, series[indices], codes[indices], settings)
            chosen = self._choose(data, parameters, splits)
            data = data.first_landmarks(chosen.pop("n_landmarks"))
            with self._progress("Learning") as progress:
                model = self._solve(data, chosen, progress)
            self.landmark_indices_ = indices[: data.n_landmarks]
            # The alignments have served, and may be large.
            data = replace(data, similarities=None, products=None)
            model = self._refine(model, data, series, settings, splits)
            self._conclude(model, batch[self.landmark_indices_], data, series.n_channels)
        return self

    def _fit_in_parts(
        self,
        batch: SeriesBatch,
        codes: IntArray,
        weights: FloatArray,
        limit: int,
        size: float,
        splits: Sequence[Split],
        landmarks: tuple[SeriesBatch, IntArray, IntArray],
    ) -> None:
        """Go on from what `fit` has found, with series in memory and alignments in parts."""
        columns = self.n_columns_in_
        seen = np.flatnonzero(weights > 0.0)
        some = batch if len(seen) == len(batch) else batch[seen]
        shares = weights[seen] / weights[seen].mean()
        known = InMemory(limit, size, self.classes_, shares, seen, splits, self.row_map_, landmarks)
        fit_stream(self, BatchStream(some, codes[seen]), known=known)
        self._remember(self.classes_, len(batch), batch.n_steps, batch.n_channels, columns)

    def _memory(self) -> int:
        """Memory that alignments of series in memory may take."""
        if self.memory_limit is None:
            return half_of_memory()
        return memory_bytes(self.memory_limit, type(self).__name__)

    def _alignments_bytes(
        self, n_landmarks: int, rows: SeriesBatch, settings: AlignmentSettings
    ) -> float:
        """Size of what is kept of the alignments with all landmarks."""
        each = rows.n_channels**2 if self.learns_metric else 1
        return float(len(rows)) * n_landmarks * each * np.dtype(settings.dtype).itemsize

    def _goes_in_parts(self, size: float, limit: int) -> bool:
        """Whether alignments of a size are too many for memory, which is refused if it must be."""
        needs = self._needs_all_in_memory
        if size > limit and needs is not None and self.memory_limit is not None:
            raise ValueError(
                f"The 'memory_limit' parameter of {type(self).__name__} is too small: "
                f"{amount(limit)}, and with {needs} all alignments must be in memory, "
                f"{amount(size)}. Raise it, or take fewer n_landmarks."
            )
        return size > limit and needs is None

    @property
    def _needs_all_in_memory(self) -> str | None:
        """The parameter, and its value, that cannot be had with alignments in parts."""
        return None

    def _conclude(
        self, model: LandmarkModel, landmarks: SeriesBatch, data: LandmarkData, d: int
    ) -> None:
        """Keep what was learned, and warn of what was not."""
        self.landmarks_ = landmarks
        self._warn_about_missing_classes(data.landmark_codes)
        self.coef_ = model.coef
        identity = np.broadcast_to(np.eye(d), (len(model.coef), d, d))
        self.metrics_ = identity if model.metrics is None else model.metrics
        self.reports_ = self._report(model, data)
        self._warn_about_collapse(model, data)

    @takes_streams
    def decision_function(self, X: Any) -> FloatArray:
        """Decision values, sum_j coef_[c, j] K_c; see `SeriesClassifier.decision_function`."""
        values = self._decide(self._new_rows(X))
        return values[:, 0] if len(self.classes_) == 2 else values

    @property
    def _calibrates(self) -> bool:
        return getattr(self, "calibration_cv", 0) is not None

    @takes_streams
    def transform(self, X: Any) -> FloatArray:
        """Similarity of every series to every landmark, under each class's metric.

        Parameters
        ----------
        X
            Anything `slts.as_series` takes; or series to be read: a path or several,
            `slts.scan_series`, a Dask bag or data frame.

        Returns
        -------
        ndarray
            Shape (series, features), named by `get_feature_names_out`.
        """
        series = self._new_rows(X)
        landmarks = self.row_map_(self.landmarks_)
        with self._progress("Aligning") as progress:
            if not self.learns_metric:
                return np.asarray(
                    similarities(
                        series, landmarks, self._settings(),
                        device=self.device, n_jobs=self.n_jobs, progress=progress,
                    )
                )  # fmt: skip
            projected = projected_similarities(
                series, landmarks, self.metrics_, self._settings(),
                device=self.device, n_jobs=self.n_jobs, progress=progress,
            )  # fmt: skip
        return np.asarray(projected.transpose(0, 2, 1).reshape(len(series), self.coef_.size))

    def get_feature_names_out(self, input_features: Any = None) -> npt.NDArray[Any]:
        """Names of the columns of `transform`.

        Parameters
        ----------
        input_features
            Ignored; there for scikit-learn.

        Returns
        -------
        ndarray
            ``"landmark3"``, or with a metric per class ``"class1_landmark3"``.
        """
        check_is_fitted(self)
        names = [f"landmark{j}" for j in self.landmark_indices_]
        if self.learns_metric:
            names = [f"class{c}_{name}" for c in self.positive_classes_ for name in names]
        return np.asarray(names, dtype=object)

    def linear_form(self) -> LinearForm:
        """The fitted model as numbers: what `slts.explain` takes apart."""
        check_is_fitted(self)
        used = np.flatnonzero(self.coef_.any(axis=0))
        return LinearForm(
            name="",
            positives=self.positive_classes_,
            landmarks=self.row_map_(self.landmarks_[used]),
            landmark_indices=self.landmark_indices_[used],
            coef=self.coef_[:, used],
            local_metrics=self.metrics_[:, np.newaxis, np.newaxis],
            groups=np.zeros(len(used), dtype=np.int64),
            group_names=("all",),
            intercept=np.zeros(len(self.coef_)),
            rows=self.row_map_,
            settings=self._settings(),
        )

    def linear_forms(self) -> tuple[LinearForm, ...]:
        """`linear_form`, as models with several forms give theirs."""
        return (self.linear_form(),)

    def _choose_landmarks(
        self, series: SeriesBatch, settings: AlignmentSettings, seed: int
    ) -> IntArray:
        if not isinstance(self.landmarks, str) or self.landmarks not in METHODS:
            return check_landmarks(self.landmarks, len(series), type(self).__name__)
        count = resolve_count(self._most_landmarks(len(series)), len(series))
        return select_landmarks(
            series, count, method=self.landmarks, objective=self.objective, band=self.band,
            normalize=False, random_state=seed, device=self.device, n_jobs=self.n_jobs,
        )  # fmt: skip

    def _most_landmarks(self, n_series: int) -> int | float:
        """How many landmarks to align with; None is the paper's rule."""
        if self.n_landmarks is None:
            return min(_MOST_LANDMARKS, max(1, round(_LANDMARK_SHARE * n_series)))
        return self.n_landmarks  # type: ignore[no-any-return]

    def _align(
        self,
        series: SeriesBatch,
        codes: IntArray,
        weights: FloatArray,
        landmarks: SeriesBatch,
        landmark_codes: IntArray,
        settings: AlignmentSettings,
    ) -> LandmarkData:
        K = T = None
        with self._progress("Aligning with landmarks") as progress:
            if self.learns_metric:
                T = products(
                    series, landmarks, settings,
                    device=self.device, n_jobs=self.n_jobs, progress=progress,
                )  # fmt: skip
            else:
                K = similarities(
                    series, landmarks, settings,
                    device=self.device, n_jobs=self.n_jobs, progress=progress,
                )  # fmt: skip
        return LandmarkData(K, T, codes, landmark_codes, weights, len(self.classes_))

    def _decide(self, series: SeriesBatch) -> FloatArray:
        """Decision values, aligning with the landmarks in use only."""
        form = self.linear_form()
        landmarks, coef, settings = form.landmarks, form.coef, form.settings
        values = np.zeros((len(series), len(coef)))
        if len(landmarks) == 0:
            return values
        with self._progress("Aligning") as progress:
            if not self.learns_metric:
                K = similarities(
                    series, landmarks, settings,
                    device=self.device, n_jobs=self.n_jobs, progress=progress,
                )  # fmt: skip
                return np.asarray(K @ coef.T)
            step = max(1, _DECISION_BYTES // (8 * self.metrics_.size))
            for begin in range(0, len(series), step):
                part = slice(begin, begin + step)
                sums = grouped_products(
                    series[part], landmarks, coef, settings, device=self.device, n_jobs=self.n_jobs
                )
                values[part] = np.einsum("icde,cde->ic", sums, self.metrics_)
                if progress is not None:
                    progress(min(begin + step, len(series)), len(series))
        return values

    def _report(self, model: LandmarkModel, data: LandmarkData) -> tuple[SolveReport, ...]:
        reports = []
        for k, positive in enumerate(data.positives):
            label = self.classes_[positive]
            if model.metric_solutions:
                m = model.metric_solutions[k]
                reports.append(
                    SolveReport(label, "metric", m.gamma, m.primal, m.gap, m.n_iter, m.converged)
                )
            s = model.separators[k]
            reports.append(
                SolveReport(label, "separator", s.gamma, s.objective, s.gap, s.n_iter, s.converged)
            )
        return tuple(reports)

    def _warn_about_collapse(self, model: LandmarkModel, data: LandmarkData) -> None:
        """Say so when nothing was learned: M near zero, or every answer "no"."""
        labels = self.classes_.tolist()
        for positive, solution in zip(data.positives, model.metric_solutions, strict=False):
            if solution.loss > 1 - 1e-3:
                warn(
                    f"The metric of class {labels[positive]!r} collapsed to almost zero "
                    f"(training hinge {solution.loss:.4f}): lower lam or gamma.",
                )
        if len(self.classes_) > 2 and not model.says_yes:
            warn(
                "Every one-vs-rest problem predicts the negative class for all training series: "
                "lower gamma or lam, and centre and scale the channels if they have offsets.",
            )
