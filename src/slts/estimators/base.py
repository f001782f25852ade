"""What all classifiers of series share: checking input, labels and weights."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from typing import Any, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.exceptions import NotFittedError
from sklearn.metrics import accuracy_score
from sklearn.utils import assert_all_finite, compute_class_weight
from sklearn.utils.metaestimators import available_if
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, column_or_1d

from slts._typing import FloatArray, IntArray
from slts.alignment import AlignmentSettings, require_device
from slts.alignment.reductions import similarities
from slts.errors import DataError, warn
from slts.estimators.streams import as_stream, predictions
from slts.execution import Progress, progress_bar
from slts.learning.calibration import probabilities, two_sided
from slts.models.row_map import RowMap
from slts.series import SeriesBatch, as_series

ClassWeight = str | Mapping[Any, float] | None


def _gives_probabilities(self: SeriesClassifier) -> bool:
    return self._calibrates


class SeriesClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """Base of the classifiers: series in, checked batches and integer labels out.

    Attributes
    ----------
    classes_ : ndarray
        The labels, sorted.
    n_features_in_ : int
        Number of channels; of columns if X was a table (a 2-D array of univariate series).
    """

    classes_: npt.NDArray[Any]
    n_features_in_: int
    n_channels_in_: int
    n_columns_in_: int | None
    n_series_in_: int
    n_steps_in_: int
    row_map_: RowMap
    objective: str
    band: Any
    normalize: bool
    device: str
    n_jobs: int | None
    verbose: Any
    # Scale of the calibrated probabilities; None where calibration was skipped.
    probability_scale_: float | None

    @property
    def _calibrates(self) -> bool:
        """Whether the parameters ask `fit` to calibrate probabilities."""
        return True

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.three_d_array = True
        return tags

    def _settings(self) -> AlignmentSettings:
        """How this estimator aligns; similarities are of affinities, so "distance" is refused."""
        if self.objective not in ("affinity", "cost"):
            raise ValueError(
                f"The 'objective' parameter of {type(self).__name__} must be 'affinity' or 'cost'. "
                f"Got {self.objective!r} instead."
            )
        return AlignmentSettings(self.objective, self.band, self.normalize)

    def _check_device(self) -> None:
        """Refuse what names no device, and a GPU that is not there."""
        require_device(self.device, type(self).__name__)

    @property
    def positive_classes_(self) -> npt.NDArray[Any]:
        """The class each decision value argues for: every class, or the second of two."""
        return self.classes_[1:] if len(self.classes_) == 2 else self.classes_

    def _progress(self, description: str) -> AbstractContextManager[Progress | None]:
        """A bar if the estimator is to be verbose."""
        return progress_bar(description, show=bool(self.verbose))

    def _similarities(self, rows: SeriesBatch, others: SeriesBatch) -> FloatArray:
        """K_I of mapped rows, with this estimator's settings, threads and progress bar."""
        settings = self._settings()
        with self._progress("Aligning") as progress:
            K = similarities(
                rows, others, settings, device=self.device, n_jobs=self.n_jobs, progress=progress
            )
        return K.astype(np.float64, copy=False)

    @contextmanager
    def _all_or_nothing(self) -> Iterator[None]:
        """Keep the estimator as it was if `fit` fails."""
        before = dict(self.__dict__)
        try:
            yield
        except BaseException:
            self.__dict__.clear()
            self.__dict__.update(before)
            raise

    def _check_training_data(self, X: Any, y: Any) -> tuple[SeriesBatch, IntArray]:
        """Convert X, encode y, and remember what later input must look like."""
        self._check_device()
        if as_stream(X) is not None:
            raise DataError(
                f"{type(self).__name__} compares with all training series and needs them in "
                f"memory: read them with slts.files.read_series, or take SLTSClassifier or "
                f"LocalSLTSClassifier, which read part by part."
            )
        if y is None:
            raise ValueError(
                f"{type(self).__name__} requires y to be passed, but the target y is None."
            )
        batch = as_series(X)
        labels = column_or_1d(y, warn=True)
        assert_all_finite(labels, input_name="y")
        check_classification_targets(labels)
        if len(labels) != len(batch):
            raise DataError(
                f"X and y have inconsistent lengths: {len(batch)} series and {len(labels)} labels."
            )
        classes, codes = np.unique(labels, return_inverse=True)
        if len(classes) < 2:
            raise DataError(
                f"y holds one class only, {classes.tolist()[0]!r}: a classifier needs at "
                f"least two classes."
            )
        columns = _columns_of_table(X)
        self._remember(classes, len(batch), batch.n_steps, batch.n_channels, columns)
        return batch, codes.astype(np.int64)

    def _remember(
        self,
        classes: npt.NDArray[Any],
        n_series: int,
        n_steps: int,
        n_channels: int,
        n_columns: int | None = None,
    ) -> None:
        """Remember what later input must look like."""
        self.classes_ = classes
        self.n_series_in_, self.n_steps_in_ = n_series, n_steps
        self.n_channels_in_, self.n_columns_in_ = n_channels, n_columns
        self.n_features_in_ = n_columns or n_channels

    def check_series(self, X: Any) -> SeriesBatch:
        """Convert X and compare it with what the estimator was fitted on."""
        check_is_fitted(self)
        # It can be set after fitting, as on a model that was loaded.
        self._check_device()
        columns = _columns_of_table(X)
        if None not in (columns, self.n_columns_in_) and columns != self.n_columns_in_:
            raise DataError(
                f"X has {columns} features, but {type(self).__name__} is expecting "
                f"{self.n_columns_in_} features as input: it was fitted on a table with as many "
                f"columns. Series of another length are welcome as a list: list(X)."
            )
        batch = as_series(X)
        if batch.n_channels != self.n_channels_in_:
            one_series = getattr(X, "ndim", 0) == 2 and len(X) == self.n_channels_in_
            hint = (
                "X is one series, not a collection: pass [x]."
                if one_series
                else "Is the layout time_first? Then use as_series(X, layout='time_first')."
            )
            raise DataError(
                f"X has {batch.n_channels} channels, but {type(self).__name__} was fitted on "
                f"{self.n_channels_in_}. {hint}"
            )
        return self._in_training_order(batch)

    @property
    def channel_names_in_(self) -> tuple[str, ...] | None:
        """Names of the channels in training, if they had any: a series that is kept has them."""
        for value in self.__dict__.values():
            if isinstance(value, SeriesBatch) and value.channel_names is not None:
                return value.channel_names[: self.n_channels_in_]
        return None

    def _in_training_order(self, batch: SeriesBatch) -> SeriesBatch:
        """Channels by the names they had in training; other names altogether go by position."""
        known = self.channel_names_in_
        if known is None or batch.channel_names is None:
            return batch
        if batch.channel_names == known or set(known).isdisjoint(batch.channel_names):
            return batch
        if set(batch.channel_names) != set(known):
            raise DataError(
                f"X has channels {', '.join(batch.channel_names)}, but {type(self).__name__} was "
                f"fitted on {', '.join(known)}."
            )
        order = [batch.channel_names.index(name) for name in known]
        values = np.ascontiguousarray(batch.values[:, order])
        return SeriesBatch.from_checked(values, batch.offsets, known)

    def _new_rows(self, X: Any) -> SeriesBatch:
        """Checked series with their rows as they are aligned."""
        batch = self.check_series(X)
        return self.row_map_(batch)

    def _check_weights(
        self, batch: SeriesBatch, codes: IntArray, sample_weight: Any, class_weight: ClassWeight
    ) -> FloatArray:
        """Weight of every series, mean 1: `sample_weight` times the weight of its class."""
        placeholder = np.empty((len(batch), 1))
        weights: FloatArray = _check_sample_weight(
            sample_weight, placeholder, dtype=np.float64, ensure_non_negative=True
        )
        if class_weight is not None:
            by_class = compute_class_weight(
                dict(class_weight) if isinstance(class_weight, Mapping) else class_weight,
                classes=self.classes_,
                y=self.classes_[codes],
                sample_weight=weights,
            )
            weights = weights * by_class[codes]
        by_class = np.bincount(codes, weights=weights)
        if (by_class <= 0).any():
            label = self.classes_[int(np.argmax(by_class <= 0))]
            raise DataError(
                f"class {label} has no weight: every class needs a series whose sample_weight and "
                f"class_weight are positive. Leave the class out instead."
            )
        return weights * (len(weights) / float(weights.sum()))

    def _warn_about_missing_classes(self, landmark_codes: IntArray) -> None:
        missing = np.setdiff1d(np.arange(len(self.classes_)), landmark_codes)
        if len(missing):
            names = ", ".join(map(repr, self.classes_[missing].tolist()))
            warn(
                f"No landmark is of class {names}: raise n_landmarks, or give landmarks= that "
                f"cover every class.",
            )

    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """Accuracy on series whose labels are known.

        Parameters
        ----------
        X
            Anything `slts.as_series` takes; or series that are read from elsewhere, see `fit`.
        y
            Labels; for series that are read from elsewhere the name of their column, or None.
        sample_weight
            Weight of each series.

        Returns
        -------
        float
            Share of the series that are labelled rightly.
        """
        expect = getattr(self, "channel_names_in_", None)
        classes = getattr(self, "classes_", None)
        stream = as_stream(X, y if isinstance(y, str) else None, expect, classes)
        if stream is not None and (y is None or isinstance(y, str)):
            predicted, labels = predictions(self, stream)
            return float(accuracy_score(labels, predicted, sample_weight=sample_weight))
        return float(super().score(X, y, sample_weight))

    def fit(self, X: Any, y: Any) -> Self:
        """Learn from series and labels; each classifier says how."""
        raise NotImplementedError

    def decision_function(self, X: Any) -> FloatArray:
        """Decision values: the larger, the more the class.

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
        raise NotImplementedError

    def predict(self, X: Any) -> npt.NDArray[Any]:
        """Label every series with the class of the largest decision value.

        Parameters
        ----------
        X
            Anything `slts.as_series` takes; or series to be read: a path or several,
            `slts.scan_series`, a Dask bag or data frame.

        Returns
        -------
        ndarray
            One of `classes_` for each series.
        """
        return self._labels(self.decision_function(X))

    def _labels(self, decisions: FloatArray) -> npt.NDArray[Any]:
        labels: npt.NDArray[Any] = self.classes_[two_sided(decisions).argmax(axis=1)]
        return labels

    def outputs(self, X: Any) -> tuple[npt.NDArray[Any], FloatArray, FloatArray | None]:
        """Labels, decision values and, if calibrated, probabilities, from one set of alignments."""
        decisions = self.decision_function(X)
        chances = (
            None
            if self.probability_scale_ is None
            else probabilities(decisions, self.probability_scale_)
        )
        return self._labels(decisions), decisions, chances

    @available_if(_gives_probabilities)  # type: ignore[untyped-decorator]
    def predict_proba(self, X: Any) -> FloatArray:
        """Class probabilities, calibrated on decision values of series held out in training.

        Parameters
        ----------
        X
            Anything `slts.as_series` takes; or series to be read: a path or several,
            `slts.scan_series`, a Dask bag or data frame.

        Returns
        -------
        ndarray
            Shape (series, classes); rows sum to one. See "Probabilities" in the user guide.
        """
        decisions = self.decision_function(X)
        if self.probability_scale_ is None:
            raise NotFittedError(
                f"This {type(self).__name__} was fitted without calibration: fit it again."
            )
        return probabilities(decisions, self.probability_scale_)


def _columns_of_table(X: Any) -> int | None:
    """Number of columns if X is a table of numbers in scikit-learn's sense, else None.

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
