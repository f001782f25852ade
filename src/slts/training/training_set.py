"""What fits take and return: the training set and parameters; a model and held-out decisions.

The training set has distinct series in the order of their keys, from arrays or from a scan. The key
of a series is a hash of the seed and its values. So whatever is drawn by keys does not depend on
the order of the series, on their identifiers, or on how they are stored. A series that occurs twice
with the same label, in the same group, is one series of weight two.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sklearn.utils import compute_class_weight

from slts._typing import AnyArray, FloatArray, IntArray
from slts.alignment import AlignmentSettings
from slts.errors import DataError, warn
from slts.execution import Bar
from slts.features.feature_map import Resources
from slts.features.models import LinearModel, Origins
from slts.quantities import list_first
from slts.series import SeriesBatch
from slts.series.dataset import SeriesScan
from slts.series.keys import (
    Digests,
    distinct,
    series_digests,
    series_keys,
    smallest_digests,
    splitmix64,
)
from slts.solvers.calibration import HeldOutDecisions, Validation

# Samples have at least this number of series of every class, or all its series.
PER_CLASS = 20
# Names that a warning lists.
_MOST_LISTED = 5


@dataclass(frozen=True, eq=False)
class TrainingSet:
    """Distinct series with their classes, in the order of their keys.

    Attributes
    ----------
    series, codes, keys
        The series, their classes (positions in `classes`) and keys.
    weights
        Sum of the weights of all equal series with this label. The weights of a sample are scaled
        so that those of each class sum to `totals`.
    indices
        Number of each series in the data, of the first where several are equal.
    groups
        Group of each series; None if the data have no groups.
    classes, totals
        Sorted labels, and the weight of all series of each class.
    n_series, n_steps
        Number of series in the data, with copies, and of their steps.
    digests
        Sorted digests of the distinct series in the data: `smallest_digests`.
    scan
        The scan that the series are a sample of; None if they are all series.
    positions
        Place of every series of the data here, -1 if its weight is zero; None for a scan.
    """

    series: SeriesBatch
    codes: IntArray
    keys: Digests
    weights: FloatArray
    indices: IntArray
    groups: AnyArray | None
    classes: AnyArray
    totals: FloatArray
    n_series: int
    n_steps: int
    digests: Digests
    scan: SeriesScan | None = None
    positions: IntArray | None = None

    @classmethod
    def of_arrays(
        cls,
        series: SeriesBatch,
        codes: IntArray,
        classes: AnyArray,
        *,
        weights: FloatArray | None,
        groups: AnyArray | None,
        seed: int,
    ) -> TrainingSet:
        """Merge equal series with equal labels in a group, and sort by key."""
        weights = np.ones(len(series)) if weights is None else weights
        digests = series_digests(series)
        keys, used = series_keys(digests, seed), np.flatnonzero(weights > 0.0)
        order, starts = distinct(
            keys[used], codes[used], None if groups is None else groups[used], used
        )
        digests, first = smallest_digests(digests[used]), order[starts]
        positions = np.full(len(series), -1)
        positions[order] = np.cumsum(np.isin(np.arange(len(order)), starts)) - 1
        return cls(
            series=series[first], codes=codes[first], keys=keys[first],
            weights=np.add.reduceat(weights[order], starts), indices=first,
            groups=None if groups is None else groups[first], classes=classes,
            totals=np.bincount(codes, weights=weights, minlength=len(classes)).astype(np.float64),
            n_series=len(series), n_steps=series.n_steps,
            digests=digests, positions=positions,
        )  # fmt: skip

    @property
    def named_series(self) -> SeriesBatch:
        """The series, for messages: those without identifiers have their numbers in the data."""
        if self.series.series_names is not None:
            return self.series
        of = "" if self.positions is None else " of X"
        return self.series.named([f"series {index}{of}" for index in self.indices.tolist()])

    def __len__(self) -> int:
        """Return the number of distinct series."""
        return len(self.codes)

    @property
    def n_distinct(self) -> int:
        """Number of distinct series in the data; of a scan, all are taken to be distinct."""
        return len(self) if self.scan is None else self.n_series

    def check(self) -> TrainingSet:
        """Warn about channels without values and labels that may be the same class."""
        _warn_about_empty_channels(self.series, is_sample=self.scan is not None)
        _warn_about_similar_classes(self.classes)
        return self

    def class_weights(self, class_weight: Any) -> FloatArray:
        """Return the weight of a series by its class, from scikit-learn's `class_weight`."""
        if isinstance(class_weight, str) and class_weight == "balanced":
            return np.asarray(self.totals.sum() / (len(self.classes) * self.totals))
        by_label = dict(class_weight) if isinstance(class_weight, Mapping) else class_weight
        weights = np.asarray(compute_class_weight(by_label, classes=self.classes, y=self.classes))
        if not (weights > 0.0).all():
            label = self.classes[int(np.argmin(weights > 0.0))]
            raise DataError(
                f"class {label} has no weight: every class needs a positive class_weight."
            )
        return weights

    def loss_weights(self, class_weight: Any, rows: IntArray | None = None) -> FloatArray:
        """Return the weights of series in a loss, of mean 1: all series, or those of some rows."""
        rows = np.arange(len(self)) if rows is None else rows
        weights = self.weights_of(rows) * self.class_weights(class_weight)[self.codes[rows]]
        return np.asarray(weights / weights.mean())

    def weights_of(self, rows: IntArray) -> FloatArray:
        """Return weights of some series that keep the share of each class."""
        codes, weights = self.codes[rows], self.weights[rows]
        sums = np.bincount(codes, weights=weights, minlength=len(self.classes))
        return np.asarray(weights * (self.totals / np.where(sums > 0.0, sums, 1.0))[codes])

    def take(self, rows: IntArray) -> TrainingSet:
        """Return some of the series, with weights that keep the share of each class."""
        positions = None
        if self.positions is not None:
            places = np.full(len(self) + 1, -1)
            places[rows] = np.arange(len(rows))
            positions = places[self.positions]
        return replace(
            self, series=self.series[rows], codes=self.codes[rows], keys=self.keys[rows],
            weights=self.weights_of(rows), indices=self.indices[rows],
            groups=None if self.groups is None else self.groups[rows], positions=positions,
        )  # fmt: skip

    def first(self, count: int) -> IntArray:
        """Return positions of the first series, and of at least `PER_CLASS` of every class."""
        chosen = np.arange(len(self)) < count
        if not chosen.all():
            for c in range(len(self.classes)):
                chosen[np.flatnonzero(self.codes == c)[:PER_CLASS]] = True
        return np.flatnonzero(chosen)

    def evenly(self, count: int, rows: IntArray | None = None) -> IntArray:
        """Return positions of `count` series, as evenly from all classes as their sizes allow.

        The first series of every class in `rows` are taken, then the second, and so on; by default
        in the order of the keys.
        """
        rows = np.arange(len(self)) if rows is None else rows
        if count >= len(rows):
            return np.sort(rows)
        codes = self.codes[rows]
        ranks = np.empty(len(rows), dtype=np.int64)
        for c in np.unique(codes):
            members = np.flatnonzero(codes == c)
            ranks[members] = np.arange(len(members))
        return np.sort(rows[np.argsort(ranks, kind="stable")][:count])

    def shuffled(self, purpose: int) -> IntArray:
        """Return a random order that depends on the keys alone; every purpose has its own order."""
        salt = splitmix64(np.array([purpose], dtype=np.uint64))
        return np.argsort(splitmix64(self.keys ^ salt), kind="stable")


def one_vs_rest(codes: IntArray, n_classes: int) -> FloatArray:
    """Return +1 or -1 for each problem, shape (series, problems); two classes are one problem."""
    targets = np.where(codes[:, np.newaxis] == np.arange(n_classes), 1.0, -1.0)
    return targets[:, 1:] if n_classes == 2 else targets


def _warn_about_empty_channels(series: SeriesBatch, *, is_sample: bool) -> None:
    names = series.channel_names or tuple(map(str, range(series.n_channels)))
    missing = np.flatnonzero(np.isnan(series.values[0]))
    empty = [names[k] for k in missing if np.isnan(series.values[:, k]).all()]
    if empty:
        which = f"channels {', '.join(empty)} have" if len(empty) > 1 else f"channel {empty[0]} has"
        where = f"a sample of {len(series)} training series" if is_sample else "any training series"
        warn(f"{which} no value in {where}: leave out channels that were never measured")


def _warn_about_similar_classes(classes: AnyArray) -> None:
    """Warn about text that differs only in case or in spaces around it; a and A are two letters."""
    alike: dict[str, list[str]] = {}
    for name in classes.tolist():
        text = str(name).strip()
        alike.setdefault(text.casefold() if len(text) > 1 else text, []).append(repr(name))
    similar = [" and ".join(names) for names in alike.values() if len(names) > 1]
    if similar:
        warn(
            f"labels that differ only in case or spaces are different classes: "
            f"{list_first(similar, _MOST_LISTED)}. If they are the same class, write them in the "
            f"same way"
        )


# ---- what a fit takes beside the series: parameters, checked


@dataclass(frozen=True, kw_only=True)
class FitOptions:
    """Parameters of all classifiers over landmarks; `owner` names the classifier in messages."""

    owner: str
    n_landmarks: Any
    settings: AlignmentSettings
    class_weight: Any
    device: str
    n_jobs: int | None
    memory_limit: Any
    seed: int
    bar: Bar

    @property
    def resources(self) -> Resources:
        """Where features are computed."""
        return Resources(self.device, self.n_jobs)


@dataclass(frozen=True, kw_only=True)
class LandmarkOptions(FitOptions):
    """Parameters of SLTS and BBS.

    `parameters` are the candidates to choose from, `cv_name` is the parameter that gives `cv`.
    """

    landmarks: Any
    learns_metric: bool
    regularizer: str
    parameters: Sequence[dict[str, float]]
    cv: Any
    cv_name: str
    scale: str | None
    homogeneous: bool | str


@dataclass(frozen=True, kw_only=True)
class LocalOptions(FitOptions):
    """Parameters of `LocalSLTSClassifier`."""

    n_snippets: int | None
    phases: tuple[int, ...]
    n_components: int
    metric_rank: int
    max_length: int | None
    penalties: FloatArray


# ---- what a fit returns


@dataclass(frozen=True, kw_only=True)
class Fit:
    """What was learned, by every classifier with a linear model.

    `landmark_indices` are the numbers of the landmarks in the data. `held_out` is None if
    probabilities are not calibrated, `validation` if nothing was held out.
    """

    model: LinearModel
    landmark_indices: IntArray
    origins: Origins
    held_out: HeldOutDecisions | None
    validation: Validation | None
