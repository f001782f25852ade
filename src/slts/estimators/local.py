"""The default classifier: whole landmarks, and snippets."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt
from sklearn.utils.validation import check_is_fitted

from slts._typing import FloatArray
from slts.alignment import AlignmentSettings
from slts.errors import DataError
from slts.estimators.base import TransformerMixin
from slts.estimators.linear import LinearClassifier
from slts.estimators.prediction import apply
from slts.estimators.training_data import from_arrays
from slts.execution import use_fit_threads
from slts.features.snippets import Snippets
from slts.features.summary import summarize
from slts.series import SeriesBatch
from slts.solvers.ridge import PENALTIES, RidgeReport
from slts.training.local_fit import ChannelAccuracies, fit_local, leave_out_channels
from slts.training.training_set import LocalOptions

# Channels that are left out, one at a time, unless they are named: each takes about half a fit.
_MOST_LEFT_OUT = 30


@dataclass(eq=False, repr=False, kw_only=True)
class LocalSLTSClassifier(TransformerMixin, LinearClassifier):
    """Local similarity learning: accurate on most data without any settings.

    Snippets, which are short parts of training series, are compared with every step of a series,
    and how often each occurs is a feature. Every series is also aligned with a few landmarks of
    each class. The aligned products are features, summed over the landmarks of each class. One
    ridge regression learns the coefficients. Its penalty minimises the exact leave-one-out error,
    or with groups the error on groups that are left out as a whole. Landmarks get more weight, and
    coefficients for each phase of a landmark, if that error is clearly lower. Decisions are linear,
    so `slts.explain` is exact.

    Parameters
    ----------
    n_landmarks
        Number of landmarks in total, or fraction of the distinct training series, drawn equally
        from all classes. None means 10 of each class, or fewer if there are more than 20 classes.
    n_snippets
        Number of snippets, drawn equally from all classes. None means 1500, and 50 more for each
        further channel, up to 2000. 0 means no snippets.
    objective
        ``"affinity"`` or ``"cost"``; see `slts.align`.
    n_phases
        Number of equal parts of a landmark with coefficients of their own, or ``"auto"``: 3 and
        more weight of the landmarks if the leave-one-out error is clearly lower, else 1.
    band
        None, a Sakoe-Chiba radius or `slts.Itakura`.
    n_components
        Largest number of channels that are aligned. If there are more, they are reduced to
        principal components.
    metric_rank
        Number of directions of the landmarks' rows that aligned products keep.
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
        memory that the process may use. If the series of a scan need more than an eighth of it, a
        sample determines landmarks, snippets and the number of phases. The coefficients are learned
        from all series, read in parts.
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
    model_ : LinearModel
        The feature maps (whole landmarks, then the snippets) and their coefficients.
    snippets_ : Snippets or None
        The snippets: values in the units of the data, channels, thresholds, and the training
        series that each comes from.
    snippet_coef_ : ndarray of shape (problems, snippets, thresholds, kinds) or None
        Weights of the share of the steps at which a snippet occurs and, if lengths differ, of the
        count relative to the longest training series.
    intercept_ : ndarray of shape (problems,)
        Constant part of the decisions.
    bank_names_ : tuple of str
        The class or classes of the landmarks in each bank.
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

    n_landmarks: int | float | None = field(default=None, kw_only=False)
    n_snippets: int | None = None
    objective: str = "affinity"
    n_phases: int | str = "auto"
    band: Any = None
    n_components: int = 24
    metric_rank: int = 8
    max_length: int | None = 96
    penalties: Sequence[float] = PENALTIES
    class_weight: Any = None
    memory_limit: Any = None

    bank_names_: tuple[str, ...] = field(init=False)
    reports_: tuple[RidgeReport, ...] = field(init=False)

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None, groups: Any = None) -> Self:
        """Draw landmarks and snippets, align once, solve.

        Parameters
        ----------
        X
            Training series: anything `slts.as_series` accepts, or a scan (`slts.scan_series`),
            which need not fit in memory.
        y
            Labels of any type, one per series; None for a scan, which contains them.
        sample_weight
            Non-negative weight of each series in the loss; None means 1 for all.
        groups
            Group of each series, such as the subject: what `fit` leaves out to choose the penalty
            and to calibrate are whole groups. None for a scan, which contains them
            (``scan_series(..., groups="subject")``).

        Returns
        -------
        Self
            The fitted classifier.
        """
        with self._fitting() as seed:
            options = self._checked_options(seed)
            fit = fit_local(self._read(X, y, sample_weight, groups, seed=seed), options)
            self._keep(fit)
            self.bank_names_, self.reports_ = fit.bank_names, (fit.report,)
        return self

    @property
    def snippets_(self) -> Snippets | None:
        """The snippets."""
        return self.model_.snippets

    @property
    def snippet_coef_(self) -> FloatArray | None:
        """Coefficients of the snippets."""
        return self.model_.snippet_coef

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
        check_is_fitted(self)
        return apply(self, type(self)._transform, X)

    def _transform(self, batch: SeriesBatch) -> FloatArray:
        parts = self.model_.by_landmark(batch, self._resources)
        return parts.reshape(len(parts), parts.shape[1] * parts.shape[2])

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

    def accuracy_without_channels(
        self, X: Any, y: Any, channels: Sequence[int] | None = None
    ) -> ChannelAccuracies:
        """Leave-one-out accuracy without each channel, with the landmarks and snippets of the fit.

        A channel without which the accuracy is higher does harm. Snippets that see the channel are
        left out, so fewer remain than in a model that is fitted without it. At most 1,000 series
        are used, drawn equally from all classes.

        Parameters
        ----------
        X, y
            Labelled series in memory: the training series, or others to learn from in their place.
        channels
            Positions of the channels to leave out, one at a time. None takes all, or the 30 of
            the largest importance (`slts.summarize`).

        Returns
        -------
        ChannelAccuracies
            ``accuracy`` with all channels, ``without`` each of ``channels``, and ``n_series``.
        """
        batch = self.check_series(X)
        n = batch.n_channels
        if n == 1:
            raise DataError("X has one channel: nothing is left without it.")
        chosen = np.arange(n) if channels is None else np.asarray(channels, dtype=np.int64)
        if not np.isin(chosen, np.arange(n)).all():
            raise ValueError(
                f"The 'channels' parameter must hold positions from 0 to {n - 1}. Got "
                f"{chosen.tolist()} instead."
            )
        if channels is None and n > _MOST_LEFT_OUT:
            importance = summarize(self, n_jobs=self.n_jobs).channel_importance.mean(axis=0)
            chosen = np.sort(np.argsort(-importance[:n], kind="stable")[:_MOST_LEFT_OUT])
        data = from_arrays(batch, y, None, None, owner=type(self).__name__, seed=0)
        with use_fit_threads(self.n_jobs):
            return leave_out_channels(data, self.model_, chosen, self._checked_options(seed=0))

    def describe_snippet(self, snippet: int, channel_names: Sequence[str] | None = None) -> str:
        """Where a snippet comes from: "steps 30 to 38 of recording 17, channel x".

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

    def _checked_options(self, seed: int) -> LocalOptions:
        """Return the parameters as `fit_local` takes them."""
        return self._options(
            LocalOptions,
            seed=seed,
            n_snippets=None if self.n_snippets is None else int(self.n_snippets),
            n_components=int(self.n_components),
            metric_rank=int(self.metric_rank),
            max_length=None if self.max_length is None else int(self.max_length),
            settings=AlignmentSettings(self.objective, self.band, normalize=False),
            phases=(1, 3) if self.n_phases == "auto" else (int(self.n_phases),),
            penalties=np.unique(np.asarray(self.penalties, dtype=np.float64)),
        )
