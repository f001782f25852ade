"""What classifiers with a linear model share."""

from __future__ import annotations

from dataclasses import dataclass, field

from slts._typing import FloatArray, IntArray
from slts.estimators.base import SeriesClassifier
from slts.features.linear_model import LinearModel
from slts.series import SeriesBatch


@dataclass(eq=False, repr=False, kw_only=True)
class LinearClassifier(SeriesClassifier):
    """Base of the classifiers whose decision values are the outputs of a linear model.

    Attributes
    ----------
    model_ : LinearModel
        Feature maps with coefficients.
    landmark_indices_ : ndarray
        Positions of the landmarks among the training series.
    """

    model_: LinearModel = field(init=False)
    landmark_indices_: IntArray = field(init=False)

    @property
    def landmarks_(self) -> SeriesBatch:
        """The landmarks."""
        return self.model_.aligned[0].landmarks

    @property
    def intercept_(self) -> FloatArray:
        """Constant part of the decision values, shape (problems,)."""
        return self.model_.intercept

    @property
    def n_numbers_(self) -> int:
        """Number of stored numbers: coefficients, maps, intercepts, landmarks."""
        return self.model_.n_numbers

    def check_fitted(self) -> None:
        """Raise an error if fitted attributes do not fit each other, as in a damaged file."""
        if len(self.model_.intercept) != len(self.positive_classes_):
            raise ValueError("model_ does not have one output for each problem")
        if len(self.landmark_indices_) != len(self.landmarks_):
            raise ValueError("landmark_indices_ does not have one position for each landmark")
        if self.landmarks_.n_channels != self.n_channels_in_:
            raise ValueError("landmarks_ do not have the channels of training")
