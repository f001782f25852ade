"""What is fitted on series: the channels of training, checks of X; and `SeriesScaler`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from slts.columns.roles import shortened
from slts.errors import DataError, warn
from slts.estimators.parameters import PARAMETERS, Kind, check_parameters, one_of
from slts.quantities import count
from slts.series import SeriesBatch, as_series
from slts.series.channels import SCALES, ChannelScale
from slts.training.scans import is_source


class SeriesEstimator(BaseEstimator):  # type: ignore[misc]
    """Base of what is fitted on series.

    Attributes
    ----------
    n_features_in_ : int
        Number of channels; number of columns if X was a table (a 2-D array of univariate series).
    n_channels_in_, channel_names_in_
        Number of channels in training, and their names or None.
    n_columns_in_ : int or None
        Number of columns if X was a table.
    """

    # What each parameter may be; `fit` and model files check it.
    parameter_kinds: ClassVar[Mapping[str, Kind]] = PARAMETERS

    n_features_in_: int
    n_channels_in_: int
    channel_names_in_: tuple[str, ...] | None
    n_columns_in_: int | None

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
                    f" Its channels are {shortened(batch.channel_names)}; those of the model are "
                    f"{shortened(self.channel_names_in_)}."
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
                f"X has channels {shortened(batch.channel_names)}, but {type(self).__name__} was "
                f"fitted on {shortened(known)}: the channels of X are used in the given order"
            )
            return batch
        if set(batch.channel_names) != set(known):
            absent = next(name for name in known if name not in batch.channel_names)
            raise DataError(
                f"X has channels {shortened(batch.channel_names)}, but {type(self).__name__} was "
                f"fitted on {shortened(known)}: X has no {absent!r}."
            )
        order = [batch.channel_names.index(name) for name in known]
        values = np.ascontiguousarray(batch.values[:, order])
        return batch.with_values(values, known)


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


class SeriesScaler(TransformerMixin, SeriesEstimator):  # type: ignore[misc]
    """Scale every channel by the centre and the spread of all training steps.

    You rarely need it: `LocalSLTSClassifier` always scales channels, and the other classifiers have
    a parameter `scale` that does the same and is saved with them.

    Parameters
    ----------
    scale
        ``"standard"`` (mean and standard deviation), ``"robust"`` (median and quartiles) or
        ``"asinh"`` (robust, with compressed tails).

    Attributes
    ----------
    channel_scale_ : ChannelScale
        ``centre`` and ``spread`` of each channel; the spread of a constant channel is 1.
    n_features_in_ : int
        Number of channels.

    Examples
    --------
    >>> import numpy as np, slts
    >>> X = [np.array([[1.0, 3.0], [10.0, 30.0]]), np.array([[5.0, 7.0, 9.0], [50.0, 70.0, 90.0]])]
    >>> scaler = slts.SeriesScaler().fit(X)
    >>> scaler.channel_scale_.centre
    array([ 5., 50.])
    >>> scaler.transform(X[:1])[0].round(2)
    array([[-1.41, -0.71],
           [-1.41, -0.71]])
    """

    parameter_kinds: ClassVar = {"scale": one_of(*SCALES)}
    channel_scale_: ChannelScale

    def __init__(self, scale: str = "standard") -> None:
        self.scale = scale

    def fit(self, X: Any, y: Any = None) -> Self:
        """Learn centre and spread of every channel.

        Parameters
        ----------
        X
            Training series: anything `slts.as_series` accepts.
        y
            Ignored; present for scikit-learn.

        Returns
        -------
        Self
            The fitted transformer.
        """
        check_parameters(self, self.parameter_kinds)
        _raise_if_scan(X)
        batch = as_series(X)
        self.n_columns_in_ = columns_of_table(X)
        self._remember_channels(batch)
        self.channel_scale_ = ChannelScale.fit(batch, self.scale)
        return self

    def transform(self, X: Any) -> SeriesBatch:
        """Scale series.

        Parameters
        ----------
        X
            Anything `slts.as_series` accepts, with the channels of training.

        Returns
        -------
        SeriesBatch
            Series of the same lengths.
        """
        check_is_fitted(self)
        _raise_if_scan(X)
        batch = self.check_series(X)
        values = self.channel_scale_(batch.values)
        return batch.with_values(values, batch.channel_names)


def _raise_if_scan(X: Any) -> None:
    if is_source(X):
        raise DataError(
            "SeriesScaler needs series in memory. To learn from a scan, use the parameter scale of "
            "the classifier, or read the series: scan.read()."
        )
