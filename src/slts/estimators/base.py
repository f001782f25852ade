"""What all classifiers share: fitting, prediction and its outputs."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, fields
from functools import partial
from typing import Any, ClassVar, NamedTuple, Self, TypeVar

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.exceptions import NotFittedError
from sklearn.metrics import accuracy_score
from sklearn.utils import check_random_state
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from slts._typing import FloatArray
from slts.alignment import require_device
from slts.errors import DataError, warn
from slts.estimators.parameters import PARAMETERS, Kind, check_parameters
from slts.estimators.prediction import (
    Method,
    apply_to_series,
    apply_to_source,
    apply_with_labels,
)
from slts.estimators.training_data import Reader, labels_as_given, unknown_labels
from slts.execution import Bar, progress_bar, use_fit_threads
from slts.features.explanation import decision_position
from slts.features.feature_map import Resources
from slts.features.origins import Origins
from slts.quantities import count, list_first
from slts.series import SeriesBatch, as_series
from slts.series.naming import class_name
from slts.series.source import Digests, SeriesSource
from slts.solvers.calibration import HeldOutMargins, Validation, fit_scale, probabilities
from slts.training.held_out import HeldOutDecisions
from slts.training.options import FitOptions
from slts.training.training_set import TrainingSet

Options = TypeVar("Options", bound=FitOptions)


class Outputs(NamedTuple):
    """Labels, decision values and probabilities of series, from one set of alignments."""

    labels: npt.NDArray[Any]
    decisions: FloatArray
    probabilities: FloatArray | None


@dataclass(eq=False, repr=False, kw_only=True)
class SeriesClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """Base of the classifiers.

    Other parts of the library read fitted classifiers through these attributes and methods only.

    Parameters are fields of a dataclass, and the constructor stores them unchanged. Fitted
    attributes are fields that are not arguments of the constructor.

    Attributes
    ----------
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
    held_out_margins_ : HeldOutMargins or None
        Margins of held-out training series, for `slts.prediction_sets`; None if there are none.
    origins_ : Origins or None
        Names and classes of the training series that landmarks, snippets or neighbours come from;
        None in models from older files.
    every_ : str or None
        Interval of the time grid of the scan that the model was fitted on, if it was resampled.
    label_column_ : str or None
        Name of the label column of the scan that the model was fitted on, if it has one.
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

    n_features_in_: int = field(init=False)
    n_channels_in_: int = field(init=False)
    channel_names_in_: tuple[str, ...] | None = field(init=False)
    n_columns_in_: int | None = field(init=False)
    classes_: npt.NDArray[Any] = field(init=False)
    n_series_in_: int = field(init=False)
    n_steps_in_: int = field(init=False)
    probability_scale_: FloatArray | None = field(init=False)
    held_out_margins_: HeldOutMargins | None = field(init=False)
    origins_: Origins | None = field(init=False)
    every_: str | None = field(init=False)
    label_column_: str | None = field(init=False)
    validation_: Validation | None = field(init=False)
    training_digests_: Digests | None = field(init=False)

    @property
    def _calibrates(self) -> bool:
        """Whether the parameters ask `fit` to calibrate probabilities."""
        return True

    def _decide(self, batch: SeriesBatch) -> FloatArray:
        """Return decision values of checked series, shape (series, problems)."""
        raise NotImplementedError

    def check_fitted(self) -> None:
        """Raise an error if fitted attributes do not fit each other, as in a damaged file."""

    def fit(self, X: Any, y: Any = None) -> Self:
        """Learn from series and labels; each classifier documents how."""
        raise NotImplementedError

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
        values = self._apply(type(self)._finite_decisions, X)
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

    @available_if(lambda self: self._calibrates)  # type: ignore[untyped-decorator]
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
        if not isinstance(X, SeriesSource):
            if y is None:
                raise DataError("y is None: score needs the label of every series.")
            unknown_labels(labels_as_given(y), self.classes_)
            return float(super().score(X, y, sample_weight))
        if y is not None:
            return float(accuracy_score(y, self.predict(X), sample_weight=sample_weight))
        (predicted,), labels, _ = apply_with_labels(self, X, type(self).predict)
        return float(accuracy_score(labels, predicted, sample_weight=sample_weight))

    def with_margins(self, held_out: HeldOutMargins) -> Self:
        """Return a copy with other margins of held-out series, for `slts.prediction_sets`."""
        model = copy.copy(self)
        model.held_out_margins_ = held_out
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
        columns = columns_of_table(X)
        if None not in (columns, self.n_columns_in_) and columns != self.n_columns_in_:
            raise DataError(
                f"X has {columns} features, but {type(self).__name__} is expecting "
                f"{self.n_columns_in_} features as input: it was fitted on a table with that many "
                f"columns. Pass series of other lengths as a list: list(X)."
            )
        # A number of channels as in training is right.
        batch = as_series(X, layout="channels_first")
        if batch.n_channels != self.n_channels_in_:
            hint = ""
            if getattr(X, "ndim", 0) == 2 and len(X) == self.n_channels_in_:
                hint = " X is one series, not a collection: pass [x]."
            elif (batch.lengths == self.n_channels_in_).all():
                hint = " Is the layout time_first? Then use as_series(X, layout='time_first')."
            elif batch.channel_names is not None and self.channel_names_in_ is not None:
                hint = (
                    f" Its channels are {list_first(batch.channel_names)}; those of the model are "
                    f"{list_first(self.channel_names_in_)}."
                )
            raise DataError(
                f"X has {count(batch.n_channels, 'channel')}, but {type(self).__name__} was fitted "
                f"on {self.n_channels_in_}.{hint}"
            )
        return self._in_training_order(batch)

    def _remember_channels(self, series: SeriesBatch) -> None:
        """Remember the channels of some training series; `n_columns_in_` must be known."""
        self.n_channels_in_, self.channel_names_in_ = series.n_channels, series.channel_names
        self.n_features_in_ = self.n_columns_in_ or series.n_channels

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.three_d_array = True
        tags.input_tags.allow_nan = True
        return tags

    def _in_training_order(self, batch: SeriesBatch) -> SeriesBatch:
        """Order channels by name. Entirely different names are taken by position; this warns."""
        known = self.channel_names_in_
        if known is None or batch.channel_names is None or batch.channel_names == known:
            return batch
        if set(known).isdisjoint(batch.channel_names):
            warn(
                f"X has channels {list_first(batch.channel_names)}, but {type(self).__name__} was "
                f"fitted on {list_first(known)}: the channels of X are used in the given order"
            )
            return batch
        if set(batch.channel_names) != set(known):
            absent = next(name for name in known if name not in batch.channel_names)
            raise DataError(
                f"X has channels {list_first(batch.channel_names)}, but {type(self).__name__} was "
                f"fitted on {list_first(known)}: X has no {absent!r}."
            )
        order = [batch.channel_names.index(name) for name in known]
        values = np.ascontiguousarray(batch.values[:, order])
        return batch.with_values(values, known)

    def _apply(self, method: Method, X: Any) -> FloatArray:
        """Apply a method to checked series, or to the series of a scan part by part."""
        check_is_fitted(self)
        if not isinstance(X, SeriesBatch) and isinstance(X, SeriesSource):
            return apply_to_source(self, X, method)
        return apply_to_series(self, self.check_series(X), method)

    @property
    def _resources(self) -> Resources:
        return Resources(self.device, self.n_jobs)

    def _finite_decisions(self, batch: SeriesBatch) -> FloatArray:
        """Return decision values, or raise an error if a series is too large for the weights."""
        with np.errstate(over="ignore", invalid="ignore"):
            values = self._decide(batch)
        broken = np.flatnonzero(~np.isfinite(values).all(axis=1))
        if len(broken):
            raise DataError(
                f"{batch.name_of(broken[0], 'X')} has a decision value that is not finite: the "
                f"weights of this {type(self).__name__} or the values of the series are too large."
            )
        return values

    def _calibrate_on(self, held_out: HeldOutDecisions | None) -> None:
        """Fit probabilities and keep margins, from decision values of held-out series."""
        self.probability_scale_ = self.held_out_margins_ = None
        if held_out is not None:
            self.probability_scale_ = fit_scale(*held_out)
            decisions, codes, weights = held_out
            self.held_out_margins_ = HeldOutMargins.of(decisions, codes, weights / weights.mean())

    def _options(self, kind: type[Options], **derived: Any) -> Options:
        """Return the parameters as `training` takes them: derived ones, others as they are."""
        derived |= {"owner": type(self).__name__, "seed": self._seed(), "bar": self._progress}
        names = {field.name for field in fields(kind)} - set(derived)
        return kind(**derived, **{name: getattr(self, name) for name in names})

    def _seed(self) -> int:
        return int(check_random_state(self.random_state).randint(2**31 - 1))

    def _labels(self, decisions: FloatArray) -> npt.NDArray[Any]:
        chosen = decisions > 0.0 if decisions.ndim == 1 else decisions.argmax(axis=1)
        return np.asarray(self.classes_[chosen.astype(np.intp)])

    @property
    def _progress(self) -> Bar:
        return partial(progress_bar, show=bool(self.verbose))

    @contextmanager
    def _fitting(self) -> Iterator[None]:
        """Check the parameters and forget the former fit; restore it if the new one fails."""
        check_parameters(self, self.parameter_kinds)
        before = dict(self.__dict__)
        require_device(self.device, type(self).__name__)
        try:
            with use_fit_threads(self.n_jobs):
                yield
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
        keeps_all: bool = False,
    ) -> TrainingSet:
        """Check the training data and return them; remember what they look like."""
        limit = getattr(self, "memory_limit", None)
        reader = Reader(
            type(self).__name__, limit, self._seed(), self.n_jobs, self._progress, keeps_all
        )
        data = reader.read(X, y, sample_weight, groups)
        self.every_ = self.label_column_ = self.n_columns_in_ = None
        if not isinstance(X, SeriesSource):
            self.n_columns_in_ = columns_of_table(X)
        elif X.columns is not None:
            self.every_ = X.columns.every
            # Without a header, the names of columns are numbers.
            self.label_column_ = X.columns.label if X.columns.has_header else None
        self.classes_, self.training_digests_ = data.classes, data.digests
        self.n_series_in_, self.n_steps_in_ = data.n_series, data.n_steps
        self._remember_channels(data.series)
        return data


def columns_of_table(X: Any) -> int | None:
    """Return the number of columns if X is a table of numbers, else None.

    A table has a fixed number of columns; scikit-learn's users expect an error when it changes.
    """
    shape = getattr(X, "shape", None)
    if shape is not None and not isinstance(X, SeriesBatch):
        return int(shape[1]) if len(shape) == 2 else None
    if isinstance(X, list | tuple) and X and all(isinstance(row, list | tuple) for row in X):
        widths = {len(row) for row in X}
        if len(widths) == 1 and all(np.ndim(row[0]) == 0 for row in X if row):
            return widths.pop()
    return None
