"""What classifiers share that keep all training series and compare with each of them."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from slts._typing import FloatArray, IntArray
from slts.alignment import Aligner, AlignmentSettings
from slts.estimators.base import SeriesClassifier
from slts.models.row_map import RowMap
from slts.series import SeriesBatch
from slts.training.first_pass import FirstPass


class AllSeriesClassifier(SeriesClassifier):
    """Base of the classifiers that compare series with all distinct training series.

    Attributes
    ----------
    training_rows_, training_indices_
        Distinct training series as rows, and their positions in X.
    """

    training_rows_: SeriesBatch
    training_indices_: IntArray
    row_map_: RowMap
    # Parameters that every subclass has.
    scale: Any
    homogeneous: Any

    def _keep(self, first_pass: FirstPass, settings: AlignmentSettings) -> None:
        """Keep the training series as rows."""
        series = first_pass.sample.series.anonymous()
        self.row_map_ = RowMap.fit(series, settings, homogeneous=self.homogeneous, scale=self.scale)
        self.training_rows_, self.training_indices_ = self.row_map_(series), first_pass.indices

    def nearness(self, X: Any) -> FloatArray:
        """Nearness of series to every distinct training series.

        Parameters
        ----------
        X
            Anything `slts.as_series` takes.

        Returns
        -------
        ndarray
            Shape (series, training series); larger is nearer.
        """
        check_is_fitted(self)
        return self._nearness_of_rows(self.row_map_(self.check_series(X)))

    def _nearness_of_rows(self, rows: SeriesBatch) -> FloatArray:
        """Return the nearness of rows to each training series: here their similarity."""
        aligner = self._training_aligner()
        with self._progress("Aligning") as progress:
            return np.asarray(aligner.similarities(rows, progress=progress), dtype=np.float64)

    def _training_aligner(self) -> Aligner:
        kept = self.training_rows_
        return self._aligner("all", self.row_map_.settings, lambda: kept, (kept,))
