"""Scale the channels of series in a pipeline."""

from __future__ import annotations

from typing import Any, ClassVar, Self

from sklearn.base import TransformerMixin
from sklearn.utils.validation import check_is_fitted

from slts.errors import DataError
from slts.estimators.parameters import check_parameters, one_of
from slts.estimators.series_estimator import SeriesEstimator, columns_of_table
from slts.series import SeriesBatch, as_series
from slts.series.channels import SCALES, ChannelScale
from slts.training.source import is_source


class SeriesScaler(TransformerMixin, SeriesEstimator):  # type: ignore[misc]
    """Scale every channel by the centre and the spread of all training steps.

    `LocalSLTSClassifier` scales channels by itself, and the other classifiers have a parameter
    `scale` that does the same and is saved with them.

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
            Training series: anything `slts.as_series` takes.
        y
            Ignored; present for scikit-learn.

        Returns
        -------
        Self
            The fitted transformer.
        """
        check_parameters(self, self.parameter_kinds)
        _refuse_scans(X)
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
            Anything `slts.as_series` takes, with the channels of training.

        Returns
        -------
        SeriesBatch
            Series of the same lengths.
        """
        check_is_fitted(self)
        _refuse_scans(X)
        batch = self.check_series(X)
        values = self.channel_scale_(batch.values)
        return batch.with_values(values, batch.channel_names)


def _refuse_scans(X: Any) -> None:
    if is_source(X):
        raise DataError(
            "SeriesScaler needs series in memory. To learn from a scan, use the parameter scale of "
            "the classifier, or read the series: scan.read()."
        )
