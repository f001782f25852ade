"""Landmarks: the training series that all series are compared with, chosen without labels."""

from __future__ import annotations

import math
import numbers
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from slts._typing import AnyArray, FloatArray, IntArray
from slts.alignment import Aligner, AlignmentSettings, Band, require_device
from slts.errors import DataError, warn
from slts.execution import Progress, progress_bar
from slts.series import SeriesBatch, as_series
from slts.series.source import series_digests, series_keys
from slts.training.options import FitOptions
from slts.training.training_set import TrainingSet

SELECTION_METHODS = ("random", "kmedoids", "dselect")
# Relative gain of a swap. Rounding errors are smaller, so two equal swaps cannot alternate.
_LEAST_GAIN = 1e-12
# K-medoids needs all pairs: it chooses among this many series.
_MEDOID_POOL = 2_000


def select_landmarks(
    X: Any,
    n: int | float,
    *,
    method: str = "random",
    objective: str = "affinity",
    band: Band = None,
    normalize: bool = True,
    random_state: int | np.random.RandomState | None = None,
    device: str = "cpu",
    n_jobs: int | None = None,
    verbose: bool = False,
) -> IntArray:
    """Choose landmarks among the series of X.

    Parameters
    ----------
    X
        Anything that `as_series` accepts.
    n
        Number of landmarks: an int from 1 to len(X), or a fraction of len(X); see `resolve_count`.
    method
        ``"random"`` draws without replacement and needs no alignments. ``"kmedoids"`` returns the
        medoids of 1 - K, which takes O(len(X)^2) alignments and memory. ``"dselect"`` starts with a
        random series and adds n - 1 times the series with the smallest mean similarity to the
        chosen ones, which takes (n - 1) x len(X) alignments.
    objective, band, normalize
        See `AlignmentSettings`.
    random_state
        Seed for the random draw of all landmarks, of the initial medoids, or of the first landmark
        of "dselect".
    device
        ``"cpu"``, ``"cuda"`` (an NVIDIA GPU through CuPy, extra ``cuda``) or ``"auto"``, which uses
        a GPU if there is one and the work is large enough, and logs the choice once.
    n_jobs
        Number of CPU threads, by joblib's convention.
    verbose
        Show a progress bar.

    Returns
    -------
    ndarray of int
        Distinct indices into X. For "random" and "dselect" they are in order of choice: the first m
        are the result for n = m. Medoids are in ascending order. Equal series are not merged, so
        several copies of one series may be chosen.

    Examples
    --------
    >>> import numpy as np, slts
    >>> from slts.training.landmarks import select_landmarks
    >>> X = [np.eye(2), np.eye(2), -np.eye(2)]
    >>> select_landmarks(X, 2, method="dselect", random_state=0).tolist()
    [2, 0]
    """
    if method not in SELECTION_METHODS:
        raise ValueError(
            f"The 'method' parameter of select_landmarks must be one of {SELECTION_METHODS}. "
            f"Got {method!r} instead."
        )
    require_device(device, "select_landmarks")
    settings = AlignmentSettings(objective, band, normalize)
    batch = as_series(X)
    count = resolve_count(n, len(batch), name="n")
    seed = int(check_random_state(random_state).randint(2**31 - 1))
    # The order of the keys is random, and does not depend on the order of X.
    order = np.argsort(series_keys(series_digests(batch), seed), kind="stable")
    if method == "random":
        return order[:count]
    aligner = Aligner(settings.prepare(batch[order]), settings, device, n_jobs)
    with progress_bar("Choosing landmarks", show=verbose) as progress:
        chosen = order[choose_in_order(aligner, count, method, seed, progress)]
    return np.sort(chosen) if method == "kmedoids" else chosen


def choose_in_order(
    aligner: Aligner, count: int, method: str, seed: int, progress: Progress
) -> IntArray:
    """Choose among the landmarks of an aligner, which are in random order.

    The order is the caller's, so rounding errors of the rows do not change it. Medoids are
    ascending, other landmarks are in order of choice.
    """
    if method == "random":
        return np.arange(count)
    if method == "kmedoids":
        return _medoids(aligner, count, seed, progress)
    return _diverse(aligner, count, progress)


def resolve_count(n_landmarks: int | float, n_series: int, *, name: str = "n_landmarks") -> int:
    """Convert an int or a fraction of the series to a number of landmarks.

    Parameters
    ----------
    n_landmarks
        An int from 1 to `n_series`, or a float in (0, 1]: a fraction of `n_series`, rounded to the
        nearest int (halves up), at least 1.
    n_series
        Number of series to choose from.
    name
        Name of the parameter in error messages.

    Returns
    -------
    int
        From 1 to `n_series`.

    Examples
    --------
    >>> from slts.training.landmarks import resolve_count
    >>> resolve_count(10, 270), resolve_count(0.1, 25), resolve_count(0.001, 25)
    (10, 3, 1)
    """
    if n_series < 1:
        raise DataError(f"'{name}' cannot be chosen from {n_series} series: at least 1 is needed.")
    if isinstance(n_landmarks, numbers.Integral):
        # bool is a subclass of int, but True is not a number of landmarks.
        if 1 <= n_landmarks <= n_series and not isinstance(n_landmarks, bool):
            return int(n_landmarks)
    elif isinstance(n_landmarks, numbers.Real) and 0.0 < n_landmarks <= 1.0:
        # The tolerance makes 0.145 * 100 count as 14.5 in spite of rounding.
        return max(1, math.floor(float(n_landmarks) * n_series + 0.5 + 1e-9))
    raise ValueError(
        f"The '{name}' parameter must be an int from 1 to {n_series}, the number of series, or a "
        f"float in (0, 1], a fraction of them. Got {n_landmarks!r} instead."
    )


def _medoids(aligner: Aligner, count: int, seed: int, progress: Progress) -> IntArray:
    K = aligner.similarities(aligner.landmarks, progress=progress)
    # K is symmetric except for ties, which are broken in favour of one of the two series.
    mean = 0.5 * (K + K.T)
    # Rows that are not normalised may have similarities above 1. The constant keeps dissimilarities
    # from being negative and does not change the medoids: it enters the cost n - count times.
    dissimilarity = max(1.0, float(mean.max())) - mean
    np.fill_diagonal(dissimilarity, 0.0)
    return find_medoids(dissimilarity, count, random_state=seed).indices


def _diverse(aligner: Aligner, count: int, progress: Progress) -> IntArray:
    """Start with the first series, which are in random order."""
    series = aligner.landmarks
    chosen = np.zeros(count, dtype=np.int64)
    # The sum of similarities to the chosen series has the same order as the mean.
    sums = np.zeros(len(series))
    for done in range(1, count):
        newest = chosen[done - 1 : done]
        sums += aligner.similarities(series[newest])[0]
        sums[newest] = np.inf
        chosen[done] = np.argmin(sums)
        progress(done, count - 1)
    return chosen


# ---- landmarks of a fit


def landmark_positions(
    data: TrainingSet,
    rows: SeriesBatch,
    settings: AlignmentSettings,
    count: int,
    options: FitOptions,
) -> IntArray:
    """Return the positions of the landmarks in the training set: given, or chosen without labels.

    `rows` are the rows of the series. They are in the order of their keys, which is random.
    """
    if not isinstance(options.landmarks, str):
        return _positions_of_indices(data, options)
    pool = min(len(rows), _MEDOID_POOL) if options.landmarks == "kmedoids" else len(rows)
    if count > pool:
        raise ValueError(
            f"The 'n_landmarks' parameter of {options.owner} asks for {count} landmarks, but they "
            f"are chosen among {pool} series: use fewer, or raise memory_limit. (Medoids are "
            f"chosen among at most {_MEDOID_POOL} series.)"
        )
    # The choice must not depend on the precision of the model.
    settings = replace(settings, dtype="float64")
    aligner = Aligner(rows[:pool], settings, options.device, options.n_jobs)
    # Medoids have no order; the order of the keys makes the first few a random choice of them.
    with options.bar("Choosing landmarks") as progress:
        return choose_in_order(aligner, count, options.landmarks, options.seed, progress)


def _positions_of_indices(data: TrainingSet, options: FitOptions) -> IntArray:
    indices = np.asarray(options.landmarks, dtype=np.int64)
    if data.positions is None:
        raise ValueError(
            f"The 'landmarks' parameter of {options.owner} can hold indices only if the series "
            f"are in memory: use 'random', 'kmedoids' or 'dselect', or read the scan: scan.read()."
        )
    if indices.max() >= data.n_series:
        raise ValueError(
            f"The 'landmarks' parameter of {options.owner} must be indices of training series "
            f"between 0 and {data.n_series - 1}. Got {options.landmarks!r} instead."
        )
    positions = data.positions[indices]
    if (positions < 0).any():
        raise ValueError(
            f"The 'landmarks' parameter of {options.owner} must be series that are learned from: "
            f"series {indices[np.argmin(positions)]} has no weight, or exceeds memory_limit."
        )
    return np.asarray(positions)


def landmark_indices(data: TrainingSet, positions: IntArray, options: FitOptions) -> IntArray:
    """Return the numbers of landmarks in the data, as the user gave them if they did."""
    if isinstance(options.landmarks, str):
        return data.indices[positions]
    return np.asarray(options.landmarks, dtype=np.int64)[: len(positions)]


def warn_about_missing_classes(classes: AnyArray, landmark_codes: IntArray) -> None:
    """Warn if some class has no landmark."""
    missing = np.setdiff1d(np.arange(len(classes)), landmark_codes)
    if len(missing):
        names = ", ".join(map(repr, classes[missing].tolist()))
        warn(
            f"There is no landmark of class {names}: raise n_landmarks, or give landmarks= that "
            f"cover every class.",
        )


# ---- k-medoids of a dissimilarity matrix: FasterPAM (Schubert and Rousseeuw, 2021)


@dataclass(frozen=True, slots=True, eq=False)
class Medoids:
    """A local optimum: replacing one medoid by another item never lowers `cost`.

    Parameters
    ----------
    indices
        Medoids in ascending order.
    cost
        Sum of the dissimilarities of all items to their nearest medoids.
    """

    indices: IntArray
    cost: float


def find_medoids(
    dissimilarity: FloatArray,
    n_medoids: int,
    *,
    random_state: int | np.random.RandomState | None = None,
) -> Medoids:
    """Choose medoids: items that minimise the sum of dissimilarities to the nearest of them.

    Initial medoids are drawn as in k-means++, with probabilities proportional to the
    dissimilarity to the nearest medoid. A swap is made as soon as it lowers the cost. One pass over
    the candidates takes O(n^2) time.

    Parameters
    ----------
    dissimilarity
        Symmetric, non-negative, with a zero diagonal, shape (n, n).
    n_medoids
        From 1 to n.
    random_state
        Seed of the initial medoids.

    Returns
    -------
    Medoids
        Indices and cost.

    Examples
    --------
    >>> import numpy as np
    >>> from slts.training.landmarks import find_medoids
    >>> points = np.array([0.0, 1.0, 2.0, 10.0, 11.0, 12.0])
    >>> find_medoids(np.abs(points[:, None] - points), 2, random_state=0).indices
    array([1, 4])
    """
    n = len(dissimilarity)
    if dissimilarity.shape != (n, n):
        raise ValueError(
            f"The 'dissimilarity' parameter must be a square matrix. "
            f"Got shape {dissimilarity.shape} instead."
        )
    if not 1 <= n_medoids <= n:
        raise ValueError(
            f"The 'n_medoids' parameter must be an int from 1 to {n}, the number of items. "
            f"Got {n_medoids!r} instead."
        )
    if n_medoids == 1:
        # Swaps need a second medoid. The column sums give the optimum directly.
        medoids = np.argmin(dissimilarity.sum(axis=0), keepdims=True)
    else:
        start = _initial_medoids(dissimilarity, n_medoids, check_random_state(random_state))
        medoids = np.sort(_swap_until_optimal(dissimilarity, start))
    return Medoids(medoids, float(dissimilarity[medoids].min(axis=0).sum()))


def _initial_medoids(
    dissimilarity: FloatArray, n_medoids: int, rng: np.random.RandomState
) -> IntArray:
    """Draw distinct items with probabilities proportional to the distance to the nearest one."""
    n = len(dissimilarity)
    chosen = np.empty(n_medoids, dtype=np.int64)
    chosen[0] = rng.randint(n)
    nearest = dissimilarity[chosen[0]].copy()
    free = np.ones(n, dtype=bool)
    for count in range(1, n_medoids):
        free[chosen[count - 1]] = False
        weights = np.where(free, nearest, 0.0)
        if not weights.any():
            # All remaining items are copies of chosen ones.
            weights = free.astype(np.float64)
        chosen[count] = rng.choice(n, p=weights / weights.sum())
        np.minimum(nearest, dissimilarity[chosen[count]], out=nearest)
    return chosen


class _Assignment:
    """The nearest medoid of every item, and the dissimilarities to the nearest two."""

    def __init__(self, dissimilarity: FloatArray, medoids: IntArray) -> None:
        self.medoids = medoids.copy()
        self._to_medoids = dissimilarity[medoids]
        self._refresh()

    def _refresh(self) -> None:
        columns = np.arange(self._to_medoids.shape[1])
        self.nearest = self._to_medoids.argmin(axis=0)
        self.first = self._to_medoids[self.nearest, columns]
        self._to_medoids[self.nearest, columns] = np.inf
        self.second = self._to_medoids.min(axis=0)
        self._to_medoids[self.nearest, columns] = self.first
        # Increase of the cost when a medoid is removed and not replaced.
        self.loss = self._per_medoid(self.second - self.first)
        self.cost = float(self.first.sum())

    def _per_medoid(self, amounts: FloatArray) -> FloatArray:
        sums: FloatArray = np.bincount(
            self.nearest, weights=amounts, minlength=len(self.medoids)
        ).astype(np.float64, copy=False)
        return sums

    def changes(self, row: FloatArray) -> FloatArray:
        """Change of the cost when each medoid is replaced by the candidate with this row."""
        gain = np.minimum(row - self.first, 0.0)
        # Items of the removed medoid move to the candidate or to their second medoid. Subtract
        # what `gain` already counts for them.
        moved = np.minimum(row, self.second) - self.second - gain
        changes: FloatArray = self.loss + self._per_medoid(moved) + gain.sum()
        return changes

    def swap(self, position: int, candidate: int, row: FloatArray) -> None:
        """Replace one medoid by the candidate."""
        self.medoids[position] = candidate
        self._to_medoids[position] = row
        self._refresh()


def _swap_until_optimal(dissimilarity: FloatArray, start: IntArray) -> IntArray:
    """Try all candidates in turn until none of them lowers the cost."""
    n = len(dissimilarity)
    state = _Assignment(dissimilarity, start)
    candidate, tried = 0, 0
    while tried < n:
        tried += 1
        if candidate not in state.medoids:
            row = dissimilarity[candidate]
            changes = state.changes(row)
            position = int(np.argmin(changes))
            if changes[position] < -_LEAST_GAIN * state.cost:
                state.swap(position, candidate, row)
                tried = 0
        candidate = (candidate + 1) % n
    return state.medoids
