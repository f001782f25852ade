"""Local metrics and snippets: landmarks of every length, compared in several representations."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import TransformerMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted

from slts._typing import AnyArray, FloatArray, IntArray
from slts.alignment import Aligner, AlignmentSettings
from slts.errors import warn
from slts.estimators.base import SeriesClassifier
from slts.estimators.parameters import PARAMETERS, some_of
from slts.learning.blas import on_host
from slts.learning.local import Choice, linear_values
from slts.learning.loo_ridge import PENALTIES
from slts.models.comparisons import Comparison, group_weights, with_rows
from slts.models.linear_form import LinearForm
from slts.models.snippets import SnippetForm, Snippets
from slts.series import SeriesBatch
from slts.training.local_fit import fit_local
from slts.training.local_metrics import LocalOptions

# Largest share of the objective that rounding may leave.
_GAP = 1e-6


@dataclass(frozen=True)
class RidgeReport:
    """How the least-squares problem was solved; `gap` bounds the distance from its optimum.

    The optimum is taken over combinations of at most 2000 training series.
    """

    stage: str
    objective: float
    gap: float
    converged: bool


@dataclass(eq=False, repr=False, kw_only=True)
class LocalSLTSClassifier(TransformerMixin, SeriesClassifier):  # type: ignore[misc]
    """Local similarity learning: accurate on most data without any settings.

    Every series is aligned with a few landmarks of each class, in several comparisons. A comparison
    is a representation (standardised values; values and their changes; levels and their changes)
    with an alignment objective. On the aligned products, a metric is learned for each class, group
    of landmarks and phase of the landmark. Snippets, which are short parts of training series, are
    compared with every step, and each class has weights for how often they occur. One ridge
    regression learns metrics and weights. Its penalty minimises the exact leave-one-out error.
    Decisions are linear, so `slts.explain` is exact.

    Parameters
    ----------
    n_landmarks
        Number of landmarks in total, or fraction of the distinct training series. None means 10 of
        each class, or fewer if there are more than 20 classes. Ignored if `landmarks` are indices.
    n_landmarks_per_class
        Number of landmarks of each class, or all its series if it has fewer. Set this or
        `n_landmarks`, not both. Methods that ignore classes choose the same total number.
    n_snippets
        Number of snippets. Four times as many are drawn, equally from all classes, and those with
        the largest coefficients are kept. 0 means no snippets.
    landmarks
        ``"random"`` draws equally from all classes; ``"kmedoids"`` and ``"dselect"`` choose as
        `slts.select_landmarks` does; or indices of training series.
    representations
        Some of ``"values"``, ``"changes"``, ``"levels"``.
    objective
        ``"cost"``, ``"affinity"`` or both; see `slts.align`.
    metrics
        ``"class"``: one metric for the landmarks of each class; ``"landmark"``: one for each
        landmark; ``"shared"``: one for all. Each class has its own metrics in all three cases.
    n_phases
        Number of equal parts of a landmark with metrics of their own, or ``"auto"``: 3 if the
        leave-one-out error is clearly lower, else 1.
    band
        None, a Sakoe-Chiba radius or `slts.Itakura`.
    n_components
        Largest number of channels of a representation. If there are more, they are reduced to
        principal components.
    metric_rank
        Rank of the metrics.
    max_length
        Longer series are averaged over neighbouring steps before they are aligned; None keeps all
        steps. Snippets use all steps.
    penalties
        Penalties to choose from, relative to the mean squared norm of the features.
    class_weight
        None, ``"balanced"`` or a dict of weights by label.
    device
        Where alignments run: ``"cpu"``; ``"cuda"``, an NVIDIA GPU through CuPy (extra ``cuda``);
        or ``"auto"``, the GPU if there is one and the work is large enough (logged once). Snippets
        are compared on the CPU. Model files do not store it.
    memory_limit
        Memory that training may use, in bytes or as text such as ``"2GB"``. None means half of the
        memory that the process may use. If the series need more, a sample determines landmarks,
        snippets and the number of phases. The coefficients are learned from all series, read in
        parts.
    n_jobs
        Number of CPU threads, by joblib's convention.
    random_state
        Seed for landmarks, snippets, anchors and sample.
    verbose
        Show progress.

    Attributes
    ----------
    classes_, n_features_in_
        Labels, and number of channels.
    landmarks_, landmark_indices_
        The landmarks, and their positions among the training series.
    comparisons_ : tuple of Comparison
        The fitted comparisons: representation x objective.
    local_metrics_ : tuple of ndarray
        For each comparison, shape (problems, groups, phases, d, r). Multiplied by the transpose of
        the comparison's ``basis`` they are metrics of rank r.
    snippets_ : Snippets or None
        The snippets: values in the units of the data, channels, thresholds, and the training
        series that each comes from.
    snippet_coef_ : ndarray of shape (problems, snippets, thresholds, kinds) or None
        Weights of the share of the steps at which a snippet occurs and, if lengths differ, of the
        count relative to the longest training series.
    intercept_ : ndarray of shape (problems,)
        Constant part of the decisions.
    groups_ : ndarray of shape (landmarks,)
        Group of each landmark.
    group_names_ : tuple of str
        The class, classes or landmark of each group.
    selection_ : tuple of Choice
        The candidates, which one was chosen, and why.
    reports_
        Objective and optimality of the solution.

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

    # Features and counts of as many are held in prediction.
    _series_at_once: ClassVar = 2000
    parameter_kinds: ClassVar = {**PARAMETERS, "objective": some_of("cost", "affinity")}

    n_landmarks: int | float | None = field(default=None, kw_only=False)
    n_landmarks_per_class: int | None = None
    n_snippets: int = 400
    landmarks: Any = "random"
    representations: Sequence[str] = ("values", "changes")
    objective: str | Sequence[str] = "affinity"
    metrics: str = "class"
    n_phases: int | str = "auto"
    band: Any = None
    n_components: int = 24
    metric_rank: int = 8
    max_length: int | None = 96
    penalties: Sequence[float] = PENALTIES
    class_weight: Any = None
    memory_limit: Any = None

    landmarks_: SeriesBatch = field(init=False)
    landmark_indices_: IntArray = field(init=False)
    comparisons_: tuple[Comparison, ...] = field(init=False)
    local_metrics_: tuple[FloatArray, ...] = field(init=False)
    intercept_: FloatArray = field(init=False)
    groups_: IntArray = field(init=False)
    group_names_: tuple[str, ...] = field(init=False)
    snippets_: Snippets | None = field(init=False)
    snippet_coef_: FloatArray | None = field(init=False)
    selection_: tuple[Choice, ...] = field(init=False)
    reports_: tuple[RidgeReport, ...] = field(init=False)

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Choose landmarks, align once in every comparison, solve, select.

        Parameters
        ----------
        X
            Training series: anything `slts.as_series` accepts, or a scan (`slts.scan_series`),
            which need not fit in memory.
        y
            Labels of any type, one per series; None for a scan, which contains them.
        sample_weight
            Non-negative weight of each series in the loss; None means 1 for all.

        Returns
        -------
        Self
            The fitted classifier.
        """
        with self._fitting():
            source = self._training_source(X, y, sample_weight)
            fit = fit_local(source, self._checked_options())
            self._remember(fit.first_pass, fit.origins)
            self.landmarks_, self.landmark_indices_ = fit.landmarks, fit.landmark_indices
            self.groups_, self.group_names_ = fit.groups, fit.group_names
            self.comparisons_ = fit.solution.comparisons
            self.local_metrics_, self.selection_ = fit.solution.metrics, fit.solution.selection
            self.snippets_, self.snippet_coef_ = fit.snippets, fit.solution.snippet_coef
            self.intercept_ = fit.solution.intercept
            self._calibrate_on(fit.held_out)
            self.validation_ = fit.validation
            objective, gap = fit.solution.ridge.objective, fit.solution.ridge.gap
            self.reports_ = (RidgeReport("ridge", objective, gap, gap <= _GAP * objective),)
            if not self.reports_[0].converged:
                warn(
                    f"The least-squares problem is ill conditioned (duality gap "
                    f"{gap:.2g} at objective {objective:.2g}): use larger penalties.",
                    ConvergenceWarning,
                )
        return self

    def _decide(self, batch: SeriesBatch) -> FloatArray:
        values = np.tile(self.intercept_, (len(batch), 1))
        for metrics, part, found in self._features(batch, group_weights(self.groups_)):
            values += linear_values(found, metrics[:, part])
        form = self._snippet_form()
        return values if form is None else values + form.decide(batch, self.n_jobs)

    def transform(self, X: Any) -> FloatArray:
        """Contribution of every landmark and snippet to every decision value.

        Parameters
        ----------
        X
            Anything `slts.as_series` accepts, or a scan.

        Returns
        -------
        ndarray
            Shape (series, problems * (landmarks + snippets)), named by `get_feature_names_out`;
            with the intercept, the columns of a class sum to its decision value.
        """
        return self._apply(type(self)._transform, X)

    def _transform(self, batch: SeriesBatch) -> FloatArray:
        n_landmarks, n_snippets = len(self.landmarks_), len(self.snippets_ or ())
        shares = np.zeros((len(batch), len(self.intercept_), n_landmarks + n_snippets))
        for metrics, part, found in self._features(batch, np.eye(n_landmarks)):
            own = metrics[:, self.groups_[part]]
            found = on_host(found)
            shares[:, :, part] += np.einsum("ijfur,cjfur->icj", found, own, optimize=True)
        shares[:, :, :n_landmarks] /= np.bincount(self.groups_)[self.groups_]
        form = self._snippet_form()
        if form is not None:
            counts = form.snippets.counts(batch, self.n_jobs)
            added = form.snippets.contributions(counts, batch.lengths, form.coef)
            shares[:, :, n_landmarks:] = added
        return shares.reshape(len(batch), shares.shape[1] * shares.shape[2])

    def get_feature_names_out(self, input_features: Any = None) -> npt.NDArray[Any]:
        """Names of the columns of `transform`.

        Parameters
        ----------
        input_features
            Ignored; present for scikit-learn.

        Returns
        -------
        ndarray
            ``"class1_landmark3"``, ``"class1_snippet17"`` and so on.
        """
        check_is_fitted(self)
        parts = [f"landmark{j}" for j in self.landmark_indices_]
        parts += [f"snippet{k}" for k in range(len(self.snippets_ or ()))]
        names = [f"class{c}_{part}" for c in self.positive_classes_ for part in parts]
        return np.asarray(names, dtype=object)

    def linear_forms(self) -> tuple[LinearForm | SnippetForm, ...]:
        """The linear forms whose sum is the decision, for `slts.explain`.

        One for each comparison with whole landmarks, then one for the snippets.
        """
        check_is_fitted(self)
        inputs = (
            *(self.classes_, self.landmarks_, self.landmark_indices_, self.groups_),
            *(self.group_names_, self.comparisons_, self.local_metrics_, self.intercept_),
        )
        aligned = self._prepare("forms", inputs, self._aligned_forms)
        counted = self._snippet_form()
        return aligned if counted is None else (*aligned, counted)

    def _aligned_forms(self) -> tuple[LinearForm, ...]:
        share = 1.0 / np.bincount(self.groups_)[self.groups_]
        return tuple(
            LinearForm(
                name=comparison.name,
                positives=self.positive_classes_,
                aligner=self._comparison_aligner(k),
                landmark_indices=self.landmark_indices_,
                coef=np.broadcast_to(share, (len(self.intercept_), len(share))),
                factors=metrics,
                groups=self.groups_,
                group_names=self.group_names_,
                intercept=self.intercept_ if k == 0 else np.zeros_like(self.intercept_),
                rows=comparison.representation,
            )
            for k, (comparison, metrics) in enumerate(
                zip(self.comparisons_, self.local_metrics_, strict=True)
            )
        )

    def _snippet_form(self) -> SnippetForm | None:
        snippets, coef = self.snippets_, self.snippet_coef_
        if snippets is None or coef is None:
            return None
        positives = self.positive_classes_
        return self._prepare(
            "snippets",
            (snippets, coef, self.classes_),
            lambda: SnippetForm(positives, snippets, coef),
        )

    def _comparison_aligner(self, k: int) -> Aligner:
        comparison, landmarks = self.comparisons_[k], self.landmarks_
        aligner = self._prepare(
            k,
            (comparison, landmarks),
            lambda: comparison.aligner(comparison.representation(landmarks)),
        )
        return replace(aligner, device=self.device, n_jobs=self.n_jobs)

    def describe_snippet(self, snippet: int, channel_names: Sequence[str] | None = None) -> str:
        """Where a snippet comes from: "steps 30 to 40 of recording 17, channel x".

        Parameters
        ----------
        snippet
            Position in `snippets_`.
        channel_names
            Names of the channels; None takes those of training.

        Returns
        -------
        str
            Steps, training series and channels.
        """
        if self.snippets_ is None:
            raise ValueError("The model has no snippets.")
        name = self.series_name(int(self.snippets_.series[snippet]), with_class=False)
        return self.snippets_.describe(snippet, channel_names or self.channel_names_in_, name)

    @property
    def n_numbers_(self) -> int:
        """Number of stored numbers: metrics, bases, maps, intercepts, landmarks, snippets."""
        check_is_fitted(self)
        metrics = sum(metrics.size for metrics in self.local_metrics_)
        bases = sum(comparison.basis.size for comparison in self.comparisons_)
        distinct = {id(c.representation): c.representation for c in self.comparisons_}
        maps = sum(representation.n_numbers for representation in distinct.values())
        short = 0
        if self.snippets_ is not None and self.snippet_coef_ is not None:
            short = self.snippets_.n_numbers + self.snippet_coef_.size
        return int(
            metrics + bases + maps + short + self.intercept_.size + self.landmarks_.values.size
        )

    def _features(
        self, batch: SeriesBatch, weights: FloatArray
    ) -> Iterator[tuple[FloatArray, slice, AnyArray]]:
        """Yield metrics, groups and features of every comparison.

        `weights` are those of the landmarks in each group.
        """
        with self._progress("Aligning") as progress:
            compared = with_rows(self.comparisons_, batch, self.n_jobs)
            for k, (comparison, rows) in enumerate(compared):
                metrics, aligner = self.local_metrics_[k], self._comparison_aligner(k)
                for part, found in comparison.features(rows, aligner, weights, metrics.shape[2]):
                    yield metrics, part, found
                progress(k + 1, len(self.comparisons_))

    def _checked_options(self) -> LocalOptions:
        """Return the parameters as `fit_local` takes them."""
        per_class = self.n_landmarks_per_class
        if per_class is not None and self.n_landmarks is not None:
            raise ValueError(
                f"Only one of the parameters 'n_landmarks' and 'n_landmarks_per_class' of "
                f"LocalSLTSClassifier can be given. Got {self.n_landmarks!r} and {per_class!r}."
            )
        objectives = _several(self.objective)
        return self._options(
            LocalOptions,
            n_snippets=int(self.n_snippets),
            n_components=int(self.n_components),
            metric_rank=int(self.metric_rank),
            max_length=None if self.max_length is None else int(self.max_length),
            representations=_several(self.representations),
            settings=tuple(AlignmentSettings(o, self.band, normalize=False) for o in objectives),
            phases=(1, 3) if self.n_phases == "auto" else (int(self.n_phases),),
            penalties=np.unique(np.asarray(self.penalties, dtype=np.float64)),
        )


def _several(given: str | Sequence[str]) -> tuple[str, ...]:
    return (given,) if isinstance(given, str) else tuple(given)
