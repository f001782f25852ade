"""What all classifiers share: fitting, prediction and its outputs."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, fields
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Self, TypeVar, cast

import numpy as np
import numpy.typing as npt
from sklearn.exceptions import NotFittedError
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from slts._typing import FloatArray
from slts.alignment import require_device
from slts.errors import DataError
from slts.estimators.parameters import PARAMETERS, Kind, check_parameters
from slts.estimators.prediction import (
    apply,
    apply_with_labels,
    check_series,
    columns_of_table,
    finite_decisions,
)
from slts.estimators.training_data import (
    from_arrays,
    from_scan,
    labels_as_given,
    unknown_labels,
)
from slts.execution import Bar, progress_bar, use_fit_threads
from slts.features.explanation import decision_position
from slts.features.feature_map import Resources
from slts.features.models import LinearModel, Neighbours, Origins
from slts.quantities import class_name
from slts.series import SeriesBatch
from slts.series.convert import check_one_per_series
from slts.series.dataset import SeriesScan
from slts.series.keys import Digests
from slts.solvers.calibration import (
    HeldOutDecisions,
    HeldOutScores,
    Validation,
    fit_scale,
    probabilities,
)
from slts.training.training_set import FitOptions, TrainingSet

# scikit-learn has no types: with its classes as bases, type checkers would accept any name.
if TYPE_CHECKING:
    Method = TypeVar("Method", bound=Callable[..., Any])
    available_if: Callable[[Callable[[Any], bool]], Callable[[Method], Method]]

    class ClassifierMixin:
        """Types for the mixin of classifiers: `SeriesClassifier` defines what users call."""

    class TransformerMixin:
        """Types for the mixin of transformers."""

        fit_transform: Callable[..., FloatArray]
        set_output: Callable[..., Self]

    class BaseEstimator:
        """Types for the base of estimators."""

        get_params: Callable[..., dict[str, Any]]
        set_params: Callable[..., Self]
        set_fit_request: Callable[..., Self]
        set_score_request: Callable[..., Self]
        get_metadata_routing: Callable[[], Any]
        __sklearn_tags__: Callable[[], Any]

else:
    from sklearn.base import BaseEstimator, ClassifierMixin
    from sklearn.base import TransformerMixin as TransformerMixin
    from sklearn.utils.metaestimators import available_if

Options = TypeVar("Options", bound=FitOptions)


class Outputs(NamedTuple):
    """Labels, decision values and probabilities of series, from one set of alignments."""

    labels: npt.NDArray[Any]
    decisions: FloatArray
    probabilities: FloatArray | None


@dataclass(eq=False, repr=False, kw_only=True)
class SeriesClassifier(ClassifierMixin, BaseEstimator):
    """Base of the classifiers.

    Other parts of the library read fitted classifiers through these attributes and methods only.

    Parameters are fields of a dataclass, and the constructor stores them unchanged. Fitted
    attributes are fields that are not arguments of the constructor.

    Attributes
    ----------
    model_ : LinearModel or Neighbours
        What decision values are computed from.
    classes_ : ndarray
        The labels, sorted.
    n_channels_in_, channel_names_in_
        Number of channels in training, and their names or None.
    n_columns_in_ : int or None
        Number of columns if X was a table (a 2-D array of univariate series).
    n_features_in_ : int
        `n_columns_in_`, or the number of channels.
    n_series_in_, n_steps_in_ : int
        Number of training series, and of their steps.
    probability_scale_ : ndarray or None
        Scale of the probabilities for each predicted class; None if calibration was skipped.
    held_out_scores_ : HeldOutScores or None
        Scores of held-out training series, for `slts.prediction_sets`; None if there are none.
    origins_ : Origins or None
        Names and classes of the training series that landmarks, snippets or neighbours come from;
        None in models from older files.
    every_ : str or None
        Interval of the time grid of the scan that the model was fitted on, if it was resampled.
    label_column_, time_column_, id_columns_
        Names of the columns of the scan that the model was fitted on; None if it had none.
    validation_ : Validation or None
        Accuracy on training series that `fit` held out; None if it held out none.
    training_digests_ : ndarray or None
        Sorted digests of the values of the training series, at most a million, by which copies
        among held-out series are recognised; None in models from files without digests.
    """

    # What each parameter may be; `fit` and model files check it.
    parameter_kinds: ClassVar[Mapping[str, Kind]] = PARAMETERS
    # Series whose decision values are computed at once; None is all.
    _series_at_once: ClassVar[int | None] = None

    device: str = "cpu"
    n_jobs: int | None = None
    random_state: Any = None
    verbose: Any = False

    model_: LinearModel | Neighbours = field(init=False)
    n_features_in_: int = field(init=False)
    n_channels_in_: int = field(init=False)
    channel_names_in_: tuple[str, ...] | None = field(init=False)
    n_columns_in_: int | None = field(init=False)
    classes_: npt.NDArray[Any] = field(init=False)
    n_series_in_: int = field(init=False)
    n_steps_in_: int = field(init=False)
    probability_scale_: FloatArray | None = field(init=False)
    held_out_scores_: HeldOutScores | None = field(init=False)
    origins_: Origins | None = field(init=False)
    every_: str | None = field(init=False)
    label_column_: str | None = field(init=False)
    time_column_: str | None = field(init=False)
    id_columns_: tuple[str, ...] | None = field(init=False)
    validation_: Validation | None = field(init=False)
    training_digests_: Digests | None = field(init=False)

    @property
    def _calibrates(self) -> bool:
        """Whether the parameters ask `fit` to calibrate probabilities."""
        return True

    def check_fitted(self) -> None:
        """Raise an error if fitted attributes do not fit each other, as in a damaged file."""

    def fit(self, X: Any, y: Any = None) -> Self:
        """Learn from series and labels; each classifier documents how."""
        raise NotImplementedError

    def features(self, X: Any) -> FloatArray:
        """What is seen of series in similarity space: `transform`, or nearness to all references.

        Parameters
        ----------
        X
            Anything `slts.as_series` accepts.

        Returns
        -------
        ndarray
            Shape (series, features).
        """
        return np.asarray(cast(Any, self).transform(X))

    @property
    def positive_classes_(self) -> npt.NDArray[Any]:
        """The positive class of each decision value: every class, or the second of two."""
        return self.classes_[1:] if len(self.classes_) == 2 else self.classes_

    def series_name(self, index: int, *, with_class: bool = True) -> str:
        """What the user calls a training series: "walk, recording 17".

        Parameters
        ----------
        index
            Position among the training series, such as one of `landmark_indices_`.
        with_class
            Whether the class of the series comes first.

        Returns
        -------
        str
            The name; "training series 17" if the data had no identifiers.
        """
        if self.origins_ is None:
            return f"training series {index}"
        name, code = self.origins_.name(index), self.series_class(index)
        if not with_class or code is None:
            return name
        return f"{class_name(str(self.classes_[code]))}, {name}"

    def series_class(self, index: int) -> int | None:
        """Position in `classes_` of the class of a training series that the model keeps."""
        return None if self.origins_ is None else self.origins_.code(index)

    def decision_of(self, label: Any) -> tuple[int, float]:
        """Find the decision value of a class and its sign.

        Two classes share one decision value, which supports the second class. Multiplied by -1, it
        supports the first class.

        Parameters
        ----------
        label
            One of `classes_`.

        Returns
        -------
        position : int
            Column of the decision value; 0 for two classes.
        sign : float
            1 or -1.
        """
        check_is_fitted(self)
        return decision_position(self.classes_, label)

    def decision_function(self, X: Any) -> FloatArray:
        """Decision values: the larger the value, the more likely the class.

        Parameters
        ----------
        X
            Anything `slts.as_series` accepts, or a scan.

        Returns
        -------
        ndarray
            Shape (series, classes); for two classes (series,), positive for ``classes_[1]``.
        """
        check_is_fitted(self)
        values = apply(self, finite_decisions, X)
        return values[:, 0] if len(self.classes_) == 2 else values

    def predict(self, X: Any) -> npt.NDArray[Any]:
        """Predict the class with the largest decision value.

        Parameters
        ----------
        X
            Anything `slts.as_series` accepts, or a scan.

        Returns
        -------
        ndarray
            One of `classes_` for each series.
        """
        return self._labels(self.decision_function(X))

    def outputs(self, X: Any) -> Outputs:
        """Labels, decision values and probabilities, from one set of alignments.

        Parameters
        ----------
        X
            Anything `slts.as_series` accepts, or a scan.

        Returns
        -------
        Outputs
            ``labels``, ``decisions`` and ``probabilities``, None if they were not calibrated.
        """
        return self.outputs_from(self.decision_function(X))

    def outputs_from(self, decisions: FloatArray) -> Outputs:
        """Labels and probabilities from the result of `decision_function`."""
        scale = self.probability_scale_
        chances = None if scale is None else probabilities(decisions, scale)
        return Outputs(self._labels(decisions), decisions, chances)

    @available_if(lambda self: self._calibrates)
    def predict_proba(self, X: Any) -> FloatArray:
        """Class probabilities, calibrated on decision values of held-out training series.

        Parameters
        ----------
        X
            Anything `slts.as_series` accepts, or a scan.

        Returns
        -------
        ndarray
            Shape (series, classes); rows sum to one. See "Probabilities" in the user guide.
        """
        probabilities = self.outputs(X).probabilities
        if probabilities is None:
            raise NotFittedError(
                f"This {type(self).__name__} was fitted without calibration: fit it again."
            )
        return probabilities

    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """Accuracy on labelled series.

        Parameters
        ----------
        X
            Anything `slts.as_series` accepts, or a scan.
        y
            Labels; None for the labels of a scan.
        sample_weight
            Weight of each series.

        Returns
        -------
        float
            Share of the series that are labelled correctly.
        """
        check_is_fitted(self)
        if y is None and not isinstance(X, SeriesScan):
            raise DataError("y is None: score needs the label of every series.")
        if y is None:
            (predicted,), labels, _ = apply_with_labels(self, X, type(self).predict)
            unknown_labels(labels, self.classes_)
        else:
            labels = labels_as_given(y)
            unknown_labels(labels, self.classes_)
            predicted = self.predict(X)
        check_one_per_series(len(predicted), labels, "y", "labels")
        # Unknown labels may be of another type, and are wrong.
        right = labels.astype(object) == predicted.astype(object)
        return float(np.average(right, weights=sample_weight))

    def with_scores(self, held_out: HeldOutScores) -> Self:
        """Return a copy with other scores of held-out series, for `slts.prediction_sets`."""
        model = copy.copy(self)
        model.held_out_scores_ = held_out
        return model

    @property
    def feature_names_in_(self) -> npt.NDArray[Any]:
        """Names of the channels in training; not defined if they had none, as in scikit-learn."""
        names = getattr(self, "channel_names_in_", None)
        if names is None:
            raise AttributeError(f"this {type(self).__name__} was not fitted on named channels")
        return np.asarray(names, dtype=object)

    def check_series(self, X: Any) -> SeriesBatch:
        """Convert X and compare it with the training series.

        Parameters
        ----------
        X
            Anything `slts.as_series` accepts.

        Returns
        -------
        SeriesBatch
            The series, with the channels in the order of training.
        """
        check_is_fitted(self)
        return check_series(self, X)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.three_d_array = True
        tags.input_tags.allow_nan = True
        return tags

    @property
    def _resources(self) -> Resources:
        return Resources(self.device, self.n_jobs)

    def _calibrate_on(
        self, held_out: HeldOutDecisions | None, validation: Validation | None
    ) -> None:
        """Fit probabilities and keep scores, from decision values of held-out series."""
        self.probability_scale_ = self.held_out_scores_ = None
        self.validation_ = validation
        if held_out is not None:
            decisions, codes, weights, groups = held_out
            self.probability_scale_ = fit_scale(decisions, codes, weights)
            chances = probabilities(decisions, self.probability_scale_)
            self.held_out_scores_ = HeldOutScores.of(chances, codes, weights, groups)

    def _options(self, kind: type[Options], **derived: Any) -> Options:
        """Return the parameters as `training` takes them: derived ones, others as they are."""
        derived |= {"owner": type(self).__name__, "bar": self._progress}
        names = {field.name for field in fields(kind)} - set(derived)
        return kind(**derived, **{name: getattr(self, name) for name in names})

    def _labels(self, decisions: FloatArray) -> npt.NDArray[Any]:
        chosen = decisions > 0.0 if decisions.ndim == 1 else decisions.argmax(axis=1)
        return np.asarray(self.classes_[chosen.astype(np.intp)])

    @property
    def _progress(self) -> Bar:
        return partial(progress_bar, show=bool(self.verbose))

    @contextmanager
    def _fitting(self) -> Iterator[int]:
        """Check the parameters and yield the seed; restore the former fit if the new one fails."""
        check_parameters(self, self.parameter_kinds)
        before = dict(self.__dict__)
        require_device(self.device, type(self).__name__)
        seed = int(check_random_state(self.random_state).randint(2**31 - 1))
        try:
            with use_fit_threads(self.n_jobs):
                yield seed
        except BaseException:
            self.__dict__.clear()
            self.__dict__.update(before)
            raise

    def _read(
        self,
        X: Any,
        y: Any,
        sample_weight: Any = None,
        groups: Any = None,
        *,
        seed: int,
        keeps_all: bool = False,
    ) -> TrainingSet:
        """Check the training data and return them; remember what they look like."""
        owner = type(self).__name__
        if isinstance(X, SeriesScan):
            data = from_scan(
                X, y, sample_weight, groups, owner=owner, seed=seed, keeps_all=keeps_all,
                limit=getattr(self, "memory_limit", None), n_jobs=self.n_jobs, bar=self._progress,
            )  # fmt: skip
        else:
            data = from_arrays(X, y, sample_weight, groups, owner=owner, seed=seed)
        data.check()
        self.every_ = self.label_column_ = self.time_column_ = self.id_columns_ = None
        self.n_columns_in_ = None
        if not isinstance(X, SeriesScan):
            self.n_columns_in_ = columns_of_table(X)
        elif X.columns is not None:
            columns = X.columns
            self.every_ = columns.every
            # Without a header, the names of columns are numbers.
            if columns.has_header:
                self.label_column_, self.time_column_ = columns.label, columns.time
                ids = columns.id_columns or (columns.id,)
                self.id_columns_ = tuple(id for id in ids if id is not None) or None
        self.classes_, self.training_digests_ = data.classes, data.digests
        self.n_series_in_, self.n_steps_in_ = data.n_series, data.n_steps
        series = data.series
        self.n_channels_in_, self.channel_names_in_ = series.n_channels, series.channel_names
        self.n_features_in_ = self.n_columns_in_ or series.n_channels
        return data
