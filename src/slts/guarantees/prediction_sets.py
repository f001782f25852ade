"""`prediction_sets`: sets of classes that contain the true class with a given probability."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.utils.validation import check_is_fitted, column_or_1d

from slts._typing import AnyArray, FloatArray, IntArray
from slts.errors import DataError, warn
from slts.estimators.base import SeriesClassifier
from slts.guarantees.bounds import check_probability
from slts.guarantees.held_out import HeldOut, inner_model
from slts.quantities import count
from slts.series.convert import check_one_per_series
from slts.series.dataset import SeriesScan
from slts.solvers.calibration import HeldOutScores

# What a set says by its size: one class, or several.
FLAGS = ("single", "several")


@dataclass(frozen=True, eq=False)
class LabelSets:
    """Sets of classes, one for each series.

    Attributes
    ----------
    classes
        The labels of the classifier.
    alpha
        Largest probability that a set does not contain the true class.
    p_values
        p-value of each class for each series, shape (series, classes): at least its probability,
        and 1 for the most probable class. A set contains the classes above `alpha`.
    """

    classes: AnyArray
    alpha: float
    p_values: FloatArray

    @property
    def members(self) -> npt.NDArray[np.bool_]:
        """Whether each class is in the set, shape (series, classes)."""
        return self.p_values > self.alpha

    @property
    def sizes(self) -> IntArray:
        """Number of classes in each set."""
        return np.asarray(np.sum(self.members, axis=1, dtype=np.int64))

    @property
    def labels(self) -> list[AnyArray]:
        """The classes in each set."""
        return [self.classes[row] for row in self.members]

    @property
    def flags(self) -> AnyArray:
        """Whether each set has a "single" class or "several"."""
        return np.array(FLAGS).take(self.sizes > 1)

    def __repr__(self) -> str:
        """Count the sets by their flags."""
        flags = self.flags
        counts = ", ".join(f"{np.sum(flags == flag)} {flag}" for flag in FLAGS)
        return f"LabelSets({len(flags)} series, alpha={self.alpha:g}: {counts})"

    def contains(self, y: Any) -> npt.NDArray[np.bool_]:
        """Whether each set contains the label of its series."""
        labels = column_or_1d(y)
        check_one_per_series(len(self.p_values), labels, "y", "labels")
        of_series = labels[:, np.newaxis] == self.classes
        return np.asarray(np.any(self.members & of_series, axis=1))


@dataclass(frozen=True, eq=False)
class PredictionSets:
    """Predicts sets of classes; made by `prediction_sets`.

    Attributes
    ----------
    model
        The classifier. A classifier of slts has these scores as `held_out_scores_`, so that
        ``slts.save(sets.model, path)`` stores them.
    held_out
        Scores of held-out series, which the scores of new series are compared with.
    """

    model: Any
    held_out: HeldOutScores

    def __repr__(self) -> str:
        """Name the classifier, and what its scores come from."""
        source = "held-out" if self.held_out.independent else "training"
        n = len(self.held_out.codes)
        return f"PredictionSets({type(self.model).__name__}, scores of {n} {source} series)"

    @property
    def guarantee(self) -> str:
        """What is known about the share of sets that contain the true class."""
        n, n_groups = len(self.held_out.codes), self.held_out.n_groups
        groups = "" if n_groups is None else f"{count(n_groups, 'group')} of "
        new = "new series" if n_groups is None else "random series of a new group"
        if not self.held_out.independent:
            without = "it" if n_groups is None else "its group"
            return (
                f"About 1 - alpha of the sets contain the true class of a {new}. This is an "
                f"estimate without a proven guarantee: it comes from {groups}{n} training series, "
                f"each classified by a model that was fitted without {without}. For a guarantee, "
                f"calibrate on series that were not used for training, in Python: "
                f"slts.prediction_sets(model, X, y)."
            )
        return (
            f"A set contains the true class with probability at least 1 - alpha, if the {groups}"
            f"{n} held-out series and the {new} are independent draws from one distribution."
        )

    def predict(self, X: Any, alpha: float = 0.05, *, per_class: bool = False) -> LabelSets:
        """Predict a set of classes for each series.

        Parameters
        ----------
        X
            Anything that the classifier accepts.
        alpha
            Largest probability that a set does not contain the true class.
        per_class
            Guarantee this probability for every class (Mondrian), not only on average. Each class
            then needs 1 / alpha - 1 held-out series.

        Returns
        -------
        LabelSets
            The sets: the most probable class, every class with a probability above alpha, and the
            classes that are less probable than that but needed for the guarantee.
        """
        return self.from_probabilities(probabilities_of(self.model, X), alpha, per_class=per_class)

    def from_probabilities(
        self, probabilities: FloatArray, alpha: float = 0.05, *, per_class: bool = False
    ) -> LabelSets:
        """Predict sets from class probabilities of the classifier; see `predict`."""
        check_probability("alpha", alpha)
        self._warn_if_too_few(alpha, per_class)
        p_values = self.held_out.p_values(probabilities, per_class=per_class)
        return LabelSets(self.model.classes_, float(alpha), p_values)

    def _warn_if_too_few(self, alpha: float, per_class: bool) -> None:
        classes = self.model.classes_.tolist()
        draws = self.held_out.n_draws(len(classes), per_class=per_class)
        fewest = int(np.argmin(draws))
        if 1.0 / (draws[fewest] + 1.0) > alpha:
            of_class = f" of class {classes[fewest]!r}" if per_class else ""
            kind = self.held_out.draws
            warn(
                f"alpha={alpha:g} needs {int(np.ceil(1.0 / alpha - 1.0))} held-out {kind}"
                f"{of_class}, but there are {draws[fewest]:.4g}: every set contains "
                f"{'this class' if per_class else 'all classes'}. Raise alpha, or hold out more "
                f"{kind}."
            )


def prediction_sets(
    model: Any, X: Any = None, y: Any = None, *, groups: Any = None, copies: str = "error"
) -> PredictionSets:
    """Calibrate prediction sets: sets of classes instead of one class.

    Parameters
    ----------
    model
        Any fitted classifier with class probabilities.
    X, y
        Held-out series that were not used in training, and their labels; y is None for a scan
        with labels. Without X, the held-out decisions of `fit` are used: no series are needed, but
        coverage is not guaranteed.
    groups
        Group of each held-out series, such as a person, if series of a group are not independent.
        The guarantee is then for a random series of a new group. None for a scan, which contains
        them.
    copies
        Whether held-out series may equal training series, as in `certify`.

    Returns
    -------
    PredictionSets
        Its method `predict` returns the sets for any alpha.

    Examples
    --------
    >>> import numpy as np, slts
    >>> rng = np.random.default_rng(0)
    >>> y = np.tile(["left", "right"], 60)
    >>> X = [rng.normal(size=(2, 15)) + (c == "right") * np.array([[4.0], [0.0]]) for c in y]
    >>> model = slts.LocalSLTSClassifier(random_state=0).fit(X[:40], y[:40])
    >>> sets = slts.prediction_sets(model, X[40:100], y[40:100])
    >>> new = sets.predict(X[100:], alpha=0.05)
    >>> [str(label) for label in new.labels[0]], int(new.sizes[0]), str(new.flags[0])
    (['left'], 1, 'single')
    """
    check_is_fitted(model)
    if X is None:
        if y is not None or groups is not None:
            raise ValueError(
                "The 'X' parameter of prediction_sets is None, but y or groups are not. Pass "
                "their series."
            )
        held_out = getattr(inner_model(model, None)[0], "held_out_scores_", None)
        if held_out is None:
            raise DataError(
                f"this {type(model).__name__} has no decisions for held-out series, because it was "
                f"fitted without calibration or by an older slts. Pass held-out series in Python: "
                f"slts.prediction_sets(model, X, y)."
            )
        return PredictionSets(model, held_out)
    if y is None and not isinstance(X, SeriesScan):
        raise DataError(
            "y is None: prediction_sets needs the labels of held-out series. For the sets of new "
            "series, use prediction_sets(model).predict(X)."
        )
    series = HeldOut.of(model, X, y, groups)
    counted = series.check_copies(copies)
    if counted and copies == "error":
        warn(f"{counted}. They count as new series.")
    chances = series.probabilities
    if chances is None:
        chances = probabilities_of(model, X)
    codes = np.searchsorted(model.classes_, series.labels)
    held_out = HeldOutScores.of(chances, codes, groups=series.groups, independent=True)
    if isinstance(model, SeriesClassifier):
        model = model.with_scores(held_out)
    return PredictionSets(model, held_out)


def probabilities_of(model: Any, X: Any) -> FloatArray:
    """Return class probabilities, or raise an error if the classifier has none."""
    if not hasattr(model, "predict_proba"):
        raise DataError(
            f"{type(model).__name__} has no class probabilities, which prediction sets need: fit "
            f"it with calibration."
        )
    return np.asarray(model.predict_proba(X), dtype=np.float64)
