"""What all classifiers share: checks of input, labels and weights; prediction and its outputs."""

from __future__ import annotations

import copy
import inspect
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, fields, replace
from threading import RLock
from typing import Any, ClassVar, NamedTuple, Self, TypeVar, cast

import numpy as np
import numpy.typing as npt
from sklearn.base import ClassifierMixin
from sklearn.exceptions import NotFittedError
from sklearn.metrics import accuracy_score
from sklearn.utils import assert_all_finite, check_random_state
from sklearn.utils.metaestimators import available_if
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, column_or_1d

from slts._typing import AnyArray, FloatArray
from slts.alignment import Aligner, AlignmentSettings, require_device
from slts.errors import DataError
from slts.estimators.parameters import check_parameters
from slts.estimators.prediction import (
    Method,
    apply_to_series,
    apply_to_source,
    apply_with_labels,
)
from slts.estimators.series_estimator import SeriesEstimator, columns_of_table
from slts.execution import progress_bar, usable_memory, use_fit_threads
from slts.learning.calibration import (
    HeldOutMargins,
    Validation,
    fit_scale,
    probabilities,
)
from slts.models.linear_form import decision_of
from slts.models.origins import Origins
from slts.quantities import format_bytes
from slts.series import SeriesBatch, as_series
from slts.series.convert import check_one_per_series
from slts.series.dataset import Dataset, first_missing
from slts.series.naming import class_name, names_of
from slts.series.source import Digests, SeriesSource
from slts.training.first_pass import FirstPass, count_and_sample
from slts.training.held_out import HeldOutDecisions
from slts.training.landmark_choice import FitOptions
from slts.training.sampling import SampleSize
from slts.training.source import ArraySource, is_source, task_runner

T = TypeVar("T")
Options = TypeVar("Options", bound=FitOptions)
# Weights that are this much smaller than the largest are lost in its rounding.
_WEIGHT_RANGE = 1e-15
# Copies of all series that are in memory at once: as read, as distinct series, and as rows.
_COPIES_IN_MEMORY = 3
# Threads that predict with one model wait for what is prepared. A lock of a model could not be
# pickled.
_PREPARATION_LOCK = RLock()


class Outputs(NamedTuple):
    """Labels, decision values and probabilities of series, from one set of alignments."""

    labels: npt.NDArray[Any]
    decisions: FloatArray
    probabilities: FloatArray | None


class _OwnParametersFirst:
    """Signature of a constructor for `help`: a dataclass puts parameters of its bases first."""

    def __get__(self, instance: object, owner: Any) -> inspect.Signature:
        names = [name for cls in owner.__mro__ for name in inspect.get_annotations(cls)]
        _, *own = inspect.signature(owner.__init__).parameters.values()

        def place(p: inspect.Parameter) -> tuple[int, int]:
            # The order of the others has a meaning. A subclass may have a constructor of its own.
            movable = p.kind is p.KEYWORD_ONLY and p.name in names
            return p.kind, names.index(p.name) if movable else -1

        return inspect.Signature(sorted(own, key=place))


@dataclass(eq=False, repr=False, kw_only=True)
class SeriesClassifier(ClassifierMixin, SeriesEstimator):  # type: ignore[misc]
    """Base of the classifiers.

    Other parts of the library read fitted classifiers through these attributes and methods only.

    Parameters are fields of a dataclass, and the constructor stores them unchanged. Fitted
    attributes are fields that are not arguments of the constructor.

    Attributes
    ----------
    classes_ : ndarray
        The labels, sorted.
    n_features_in_, n_channels_in_, channel_names_in_, n_columns_in_
        See `SeriesEstimator`.
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
        Sorted digests of the training series, from which copies among held-out series are
        recognised; None in models from files without digests.
    """

    __signature__ = _OwnParametersFirst()

    # Series whose decision values are computed at once; None is all.
    _series_at_once: ClassVar[int | None] = None

    device: str = "cpu"
    n_jobs: int | None = None
    random_state: Any = None
    verbose: Any = False

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
    # What is prepared from the fitted model once; not part of pickles and model files.
    _prepared: dict[Any, tuple[tuple[Any, ...], Any]] = field(init=False)

    @property
    def _calibrates(self) -> bool:
        """Whether the parameters ask `fit` to calibrate probabilities."""
        return True

    def _decide(self, batch: SeriesBatch) -> FloatArray:
        """Return decision values of checked series, shape (series, problems)."""
        raise NotImplementedError

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
        return decision_of(self.classes_, label)

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
        if not is_source(X):
            if y is None:
                raise DataError("y is None: score needs the label of every series.")
            unknown_labels(labels_as_given(y), self.classes_)
            return float(super().score(X, y, sample_weight))
        if y is not None:
            return float(accuracy_score(y, self.predict(X), sample_weight=sample_weight))
        (predicted,), labels, _ = apply_with_labels(self, X, type(self).predict)
        return float(accuracy_score(labels, predicted, sample_weight=sample_weight))

    def __getstate__(self) -> dict[str, Any]:
        """Leave out what is prepared: it is made again when it is needed."""
        state = dict(super().__getstate__())
        state.pop("_prepared", None)
        return state

    def with_margins(self, held_out: HeldOutMargins) -> Self:
        """Return a copy with other margins of held-out series, for `slts.prediction_sets`."""
        model = copy.copy(self)
        model.held_out_margins_ = held_out
        return model

    def _apply(self, method: Method, X: Any) -> FloatArray:
        """Apply a method to checked series, or to the series of a scan part by part."""
        check_is_fitted(self)
        require_device(self.device, type(self).__name__)
        if is_source(X):
            return apply_to_source(self, X, method)
        return apply_to_series(self, self.check_series(X), method)

    def _finite_decisions(self, batch: SeriesBatch) -> FloatArray:
        """Return decision values, or raise an error: a forged file may have weights of 1e308."""
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

    def _prepare(self, name: Any, inputs: tuple[Any, ...], make: Callable[[], T]) -> T:
        """Return something that depends on fitted attributes only, the `inputs`.

        It is made at the first call, and again if one of the inputs was replaced.
        """
        kept = self._shared()
        with _PREPARATION_LOCK:
            known, made = kept.get(name, ((), None))
            if not known or any(a is not b for a, b in zip(known, inputs, strict=True)):
                made = make()
                kept[name] = inputs, made
        return cast(T, made)

    def _aligner(
        self,
        name: Any,
        settings: AlignmentSettings,
        landmarks: Callable[[], SeriesBatch],
        inputs: tuple[Any, ...],
    ) -> Aligner:
        """Return the aligner with some landmarks of the fitted model; see `_prepare`."""
        aligner = self._prepare(name, inputs, lambda: Aligner(landmarks(), settings))
        return replace(aligner, device=self.device, n_jobs=self.n_jobs)

    def _shared(self) -> dict[Any, tuple[tuple[Any, ...], Any]]:
        """Return what is prepared so far; models that were loaded or unpickled have nothing."""
        kept: dict[Any, tuple[tuple[Any, ...], Any]] = self.__dict__.setdefault("_prepared", {})
        return kept

    def _progress(self, description: str) -> Any:
        return progress_bar(description, show=bool(self.verbose))

    @contextmanager
    def _fitting(self) -> Iterator[None]:
        """Check the parameters and forget the former fit; restore it if the new one fails."""
        check_parameters(self, self.parameter_kinds)
        before = dict(self.__dict__)
        self._prepared = {}
        require_device(self.device, type(self).__name__)
        try:
            with use_fit_threads(self.n_jobs):
                yield
        except BaseException:
            self.__dict__.clear()
            self.__dict__.update(before)
            raise

    def _training_source(
        self, X: Any, y: Any, sample_weight: Any = None, groups: Any = None
    ) -> SeriesSource:
        """Check the training data and return them as a source."""
        name = type(self).__name__
        if is_source(X):
            if y is not None:
                raise DataError(
                    "y must be None for a scan, which has labels of its own: name their column "
                    "with scan_series(..., label='...')."
                )
            if sample_weight is not None:
                raise DataError(
                    f"{name} takes no sample_weight with a scan. Use class_weight, or read the "
                    f"series into memory: scan.read()."
                )
            if groups is not None:
                raise DataError(
                    "groups must be None for a scan: name their column with "
                    "scan_series(..., groups='...')."
                )
            self.n_columns_in_ = self.every_ = self.label_column_ = None
            if X.columns is not None:
                self.every_ = X.columns.every
                # Without a header, the names of columns are numbers.
                self.label_column_ = X.columns.label if X.columns.has_header else None
            return cast(SeriesSource, X)
        # A frame may have the labels in a column.
        hint = " If the labels are a column of X: X, y = slts.as_series(X, label='...')."
        shown = hint if hasattr(X, "columns") else ""
        if isinstance(X, Dataset):
            raise DataError("X is a Dataset, expected series: use fit(X.series, X.labels).")
        if y is None:
            if isinstance(X, tuple):
                as_series(X)  # X and y in one tuple are an error that says so
            raise ValueError(f"{name} requires y to be passed, but the target y is None.{shown}")
        if isinstance(y, str):
            raise DataError(f"y must be labels, one per series. Got the text {y!r} instead.{hint}")
        batch = as_series(X)
        labels = column_or_1d(y, warn=True)
        assert_all_finite(labels, input_name="y")
        _check_comparable(labels_as_given(y))
        check_classification_targets(labels)
        advice = f" Every series has one label.{shown}"
        check_one_per_series(len(batch), labels, "y", "labels", advice)
        _check_order(y, batch)
        classes, codes = np.unique(labels, return_inverse=True)
        if len(classes) < 2:
            raise DataError(
                f"y holds one class only, {classes.tolist()[0]!r}: a classifier needs at "
                f"least two classes."
            )
        weights = None
        if sample_weight is not None:
            weights = _check_sample_weight(
                sample_weight, np.empty((len(batch), 1)), dtype=np.float64, ensure_non_negative=True
            )
            weights = _representable(weights)
            totals = np.bincount(codes, weights=weights)
            if (totals <= 0.0).any():
                raise DataError(
                    f"class {classes[int(np.argmin(totals))]} has no weight: every class needs a "
                    f"series whose sample_weight is positive. Leave the class out instead."
                )
        self.n_columns_in_ = columns_of_table(X)
        self.every_ = self.label_column_ = None
        known = None if groups is None else check_groups(groups, len(batch))
        return ArraySource(batch, codes.astype(np.int64), weights, known, classes)

    def _read_training_data(
        self, X: Any, y: Any, sample_weight: Any = None, groups: Any = None
    ) -> FirstPass:
        """Read all training series into memory and remember their shape."""
        source = self._training_source(X, y, sample_weight, groups)
        size = _COPIES_IN_MEMORY * (source.n_bytes or 0)
        if size > usable_memory():
            raise DataError(
                f"{type(self).__name__} needs all training series in memory: about "
                f"{format_bytes(size)} for {source.name}, but the process may use "
                f"{format_bytes(usable_memory())}. Use LocalSLTSClassifier or SLTSClassifier "
                f"instead."
            )
        runner = task_runner(self.n_jobs, source)
        with self._progress("Reading") as progress:
            first_pass = count_and_sample(
                source, runner, SampleSize(), seed=self._seed(), progress=progress
            )
        origins = Origins.of(first_pass.sample.series, first_pass.indices, first_pass.codes)
        self._remember(first_pass, origins)
        return first_pass

    def _remember(self, first_pass: FirstPass, origins: Origins) -> None:
        """Remember the shape of the training data, and the names of the series that are kept."""
        self.classes_, self.origins_ = first_pass.classes, origins
        self.training_digests_ = first_pass.digests_of_shapes
        self.n_series_in_, self.n_steps_in_ = first_pass.n_series, first_pass.n_steps
        self._remember_channels(first_pass.sample.series)


def _representable(weights: FloatArray) -> FloatArray:
    """Return weights whose sums and squares neither overflow nor vanish.

    Extreme weights are divided by the largest. Common ones stay: for an SVM their size matters.
    """
    largest = float(weights.max(initial=0.0))
    if largest == 0.0:
        return weights
    smallest = float(weights[weights > 0.0].min())
    if smallest / largest < _WEIGHT_RANGE:
        series = int(np.flatnonzero(weights == smallest)[0])
        raise DataError(
            f"sample_weight of series {series} is {smallest:g}, and the largest is {largest:g}: "
            f"positive weights must not differ by more than a factor of {1 / _WEIGHT_RANGE:g}. Use "
            f"0 to leave a series out."
        )
    if smallest > _WEIGHT_RANGE and largest < 1.0 / _WEIGHT_RANGE:
        return weights
    return weights / largest


def labels_as_given(y: Any) -> AnyArray:
    """Return labels as an array; in a list they keep their types, as 1 and "a"."""
    labels: AnyArray = column_or_1d(np.array(y, dtype=object) if isinstance(y, list | tuple) else y)
    return labels


def unknown_labels(labels: AnyArray, classes: AnyArray) -> list[Any]:
    """Return the distinct labels that are not classes of a model.

    Raise an error if they differ from classes only in type, as 1 and "1".
    """
    names = classes.tolist()
    known = set(names)
    unknown = [label for label in dict.fromkeys(labels.tolist()) if label not in known]
    if unknown and {*map(str, unknown)} <= {*map(str, names)}:
        given, expected = type(unknown[0]).__name__, type(names[0]).__name__
        convert = f"{expected}(label)"
        if expected not in ("int", "float", "str"):
            # bool("False") is True.
            convert = "{str(c): c for c in model.classes_}[str(label)]"
        raise DataError(
            f"y has labels of type {given}, such as {unknown[0]!r}, but the model was trained on "
            f"labels of type {expected}, such as {names[0]!r}. Labels from text files are text. "
            f"Convert them: [{convert} for label in y]."
        )
    return unknown


def check_groups(groups: Any, n_series: int) -> AnyArray:
    """Return one group per series, or raise an error."""
    column: AnyArray = column_or_1d(groups)
    check_one_per_series(n_series, column, "groups", "groups")
    missing = first_missing(column.tolist())
    if missing is not None:
        raise DataError(f"groups[{missing}] is missing: every series must be in a group.")
    return np.asarray(column.tolist()) if column.dtype == object else column


def _check_order(y: Any, batch: SeriesBatch) -> None:
    """Raise an error if y is indexed by the identifiers of the series, but in another order."""
    index, names = getattr(y, "index", ()), batch.series_names
    # A method of lists; numbers from 0 are positions.
    if names is None or callable(index) or hasattr(index, "step"):
        return
    given = tuple(names_of(list(index), getattr(index, "name", None)))
    if given != names and sorted(given) == sorted(names):
        k = next(k for k, name in enumerate(names) if given[k] != name)
        raise DataError(
            f"y and X are in different orders: by its index, label {k} belongs to {given[k]!r}, "
            f"but series {k} of X is {names[k]!r}. Use X, y = slts.as_series(frame, label='...'). "
            f"If the order of y is right, pass y.to_numpy()."
        )


def _check_comparable(labels: AnyArray) -> None:
    """Raise an error for labels that cannot be sorted, such as 1 and "a" or None."""
    try:
        np.unique(labels)
    except TypeError as error:
        kinds = [type(label) for label in labels]
        other = next((i for i, kind in enumerate(kinds) if kind is not kinds[0]), 0)
        raise DataError(
            f"y must have labels of one type, such as text or whole numbers. Got {labels[0]!r} for "
            f"series 0 and {labels[other]!r} for series {other}."
        ) from error
