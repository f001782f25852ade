"""The series a report is about, and what the model answers to them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import column_or_1d

from slts._typing import AnyArray, FloatArray, IntArray
from slts.errors import DataError
from slts.estimators.base import SeriesClassifier
from slts.learning.calibration import two_sided
from slts.series import SeriesBatch, as_series


@dataclass(frozen=True, eq=False)
class Sample:
    """Series with the model's answers.

    Attributes
    ----------
    given
        X as the model gets it.
    batch
        X as a batch.
    labels, names
        True labels and their names: the classes of the model, then labels it has never seen.
    truth
        Index into `names`; None without labels.
    predicted
        Index of the predicted class.
    decisions
        Shape (series, classes), two-sided for two classes; None if the model has none.
    probabilities
        Shape (series, classes), if the model gives any.
    ids
        What each series is called.
    """

    given: Any
    batch: SeriesBatch
    labels: AnyArray | None
    names: list[str]
    truth: IntArray | None
    predicted: IntArray
    decisions: FloatArray | None
    probabilities: FloatArray | None
    ids: list[str]

    @property
    def wrong(self) -> IntArray:
        """Indices of misclassified series."""
        if self.truth is None:
            return np.empty(0, dtype=np.int64)
        return np.flatnonzero(self.truth != self.predicted)


def ask(model: Any, X: Any, y: Any = None, ids: Sequence[Any] | None = None) -> Sample:
    """Check the data and let the model answer.

    Parameters
    ----------
    model
        A fitted classifier.
    X, y
        Series, and their labels if known.
    ids
        Names of the series; None numbers them.

    Returns
    -------
    Sample
        Data and answers.
    """
    batch = model.check_series(X) if isinstance(model, SeriesClassifier) else as_series(X)
    given = batch if isinstance(model, SeriesClassifier) else X
    if len(batch) == 0:
        raise DataError("X is empty: a report needs at least one series, or X=None.")
    classes = model.classes_.tolist()
    names, labels, truth = [str(c) for c in classes], None, None
    if y is not None:
        labels = column_or_1d(y)
        if len(labels) != len(batch):
            raise DataError(
                f"X and y have inconsistent lengths: {len(batch)} series and {len(labels)} labels."
            )
        unseen = [c for c in np.unique(labels).tolist() if c not in set(classes)]
        position = {c: k for k, c in enumerate([*classes, *unseen])}
        names += [str(c) for c in unseen]
        truth = np.array([position[c] for c in labels.tolist()], dtype=np.int64)
    predicted, decisions, chances = _asked(model, given, classes)
    return Sample(
        given=given,
        batch=batch,
        labels=labels,
        names=names,
        truth=truth,
        predicted=predicted,
        decisions=decisions,
        probabilities=chances,
        ids=_names_of_series(ids, len(batch)),
    )


def _asked(
    model: Any, given: Any, classes: list[Any]
) -> tuple[IntArray, FloatArray | None, FloatArray | None]:
    """Predicted classes by position, decision values and probabilities, as far as there are any."""
    if isinstance(model, SeriesClassifier):
        labels, decisions, chances = model.outputs(given)
        return np.searchsorted(model.classes_, labels), two_sided(decisions), chances
    answers = np.asarray(model.predict(given)).tolist()
    predicted = np.array([classes.index(c) for c in answers], dtype=np.int64)
    if not hasattr(model, "decision_function"):
        return predicted, None, _probabilities(model, given)
    decisions = two_sided(np.asarray(model.decision_function(given), dtype=np.float64))
    # One-vs-one decisions of a foreign classifier argue for no class by themselves.
    usable = decisions.shape[1] == len(classes)
    return predicted, decisions if usable else None, _probabilities(model, given)


def _probabilities(model: Any, given: Any) -> FloatArray | None:
    if not hasattr(model, "predict_proba"):
        return None
    try:
        return np.asarray(model.predict_proba(given), dtype=np.float64)
    except NotFittedError:
        # Fitted without calibration.
        return None


def _names_of_series(ids: Sequence[Any] | None, count: int) -> list[str]:
    if ids is None:
        return [str(i) for i in range(count)]
    names = [str(name) for name in ids]
    if len(names) != count:
        raise DataError(
            f"X and ids have inconsistent lengths: {count} series and {len(names)} ids."
        )
    return names
