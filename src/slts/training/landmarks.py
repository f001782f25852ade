"""Landmarks: the training series that all series are compared with, chosen without labels."""

from __future__ import annotations

import math
import numbers
from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from slts._typing import AnyArray, FloatArray, IntArray
from slts.alignment import Aligner, AlignmentSettings, Band, require_device
from slts.errors import DataError, warn
from slts.execution import Progress, progress_bar
from slts.series import SeriesBatch, as_series
from slts.series.keys import series_digests, series_keys
from slts.training.training_set import LandmarkOptions, TrainingSet

SELECTION_METHODS = ("random", "kmedoids", "dselect")
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
    [0, 2]
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
        chosen = order[_choose(aligner, count, method, seed, progress)]
    return np.sort(chosen) if method == "kmedoids" else chosen


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


def _choose(aligner: Aligner, count: int, method: str, seed: int, progress: Progress) -> IntArray:
    """Choose among the landmarks of an aligner, which are in random order.

    The order is the caller's, so rounding errors of the rows do not change it. Medoids are
    ascending, other landmarks are in order of choice.
    """
    if method == "kmedoids":
        K = aligner.similarities(aligner.landmarks, progress=progress)
        # K is symmetric except for ties, broken in favour of one of the two series.
        mean = 0.5 * (K + K.T)
        # The constant keeps costs from being negative (rows that are not normalised may have
        # similarities above 1). It does not change the medoids: it enters n - count times.
        cost = max(1.0, float(mean.max())) - mean
        np.fill_diagonal(cost, 0.0)
        return find_medoids(cost, count, check_random_state(seed))
    chosen = np.zeros(count, dtype=np.int64)
    # The sum of similarities to the chosen series has the same order as the mean.
    sums = np.zeros(len(aligner.landmarks))
    for done in range(1, count):
        newest = chosen[done - 1 : done]
        sums += aligner.similarities(aligner.landmarks[newest])[0]
        sums[newest] = np.inf
        chosen[done] = np.argmin(sums)
        progress(done, count - 1)
    return chosen


# ---- landmarks of a fit


def landmark_count(data: TrainingSet, n: int | float, owner: str) -> int:
    """Return a number of landmarks; a fraction is one of the distinct series."""
    is_fraction = isinstance(n, float | np.floating)
    count = resolve_count(n, data.n_distinct if is_fraction else data.n_series)
    count = min(count, data.n_distinct)
    if count > len(data):
        raise ValueError(
            f"The 'n_landmarks' parameter of {owner} asks for {count} landmarks, but the sample of "
            f"the scan has {len(data)} series: use fewer, or raise memory_limit."
        )
    return count


def landmark_positions(
    data: TrainingSet, rows: SeriesBatch, count: int, options: LandmarkOptions
) -> IntArray:
    """Return the positions of the landmarks in the training set: named, or chosen without labels.

    `rows` are the rows of the series. They are in the order of their keys, which is random.
    """
    if not isinstance(options.landmarks, str):
        return _positions_of_indices(data, options)
    if options.landmarks == "random":
        return np.arange(count)
    pool = min(len(rows), _MEDOID_POOL) if options.landmarks == "kmedoids" else len(rows)
    if count > pool:
        raise ValueError(
            f"The 'n_landmarks' parameter of {options.owner} asks for {count} landmarks, but they "
            f"are chosen among {pool} series: use fewer, or raise memory_limit. (Medoids are "
            f"chosen among at most {_MEDOID_POOL} series.)"
        )
    # The choice must not depend on the precision of the model.
    settings = replace(options.settings, dtype="float64")
    aligner = Aligner(rows[:pool], settings, options.device, options.n_jobs)
    # Medoids have no order; the order of the keys makes the first few a random choice of them.
    with options.bar("Choosing landmarks") as progress:
        return _choose(aligner, count, options.landmarks, options.seed, progress)


def _positions_of_indices(data: TrainingSet, options: LandmarkOptions) -> IntArray:
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


def warn_about_missing_classes(classes: AnyArray, landmark_codes: IntArray) -> None:
    """Warn if some class has no landmark."""
    missing = np.setdiff1d(np.arange(len(classes)), landmark_codes)
    if len(missing):
        names = ", ".join(map(repr, classes[missing].tolist()))
        warn(
            f"There is no landmark of class {names}: raise n_landmarks, or give landmarks= that "
            f"cover every class.",
        )


# ---- k-medoids: FasterPAM (Schubert and Rousseeuw, 2021)


# Relative gain of a swap. Rounding errors are smaller, so two equal swaps cannot alternate.
_LEAST_GAIN = 1e-12


def find_medoids(dissimilarity: FloatArray, count: int, rng: np.random.RandomState) -> IntArray:
    """Choose medoids: items that minimise the sum of dissimilarities to the nearest of them.

    The result is a local optimum: to replace a medoid by another item never lowers the sum. A swap
    is made as soon as it lowers the sum, and one pass over the candidates takes O(n^2) time.

    Parameters
    ----------
    dissimilarity
        Symmetric, non-negative, with a zero diagonal, shape (n, n).
    count
        Number of medoids, from 1 to n.
    rng
        Draws the initial medoids.

    Returns
    -------
    ndarray of int
        Medoids in ascending order.

    Examples
    --------
    >>> import numpy as np
    >>> from slts.training.landmarks import find_medoids
    >>> points = np.array([0.0, 1.0, 2.0, 10.0, 11.0, 12.0])
    >>> find_medoids(np.abs(points[:, None] - points), 2, np.random.RandomState(0))
    array([1, 4])
    """
    if count == 1:
        # Swaps need a second medoid. The column sums give the optimum directly.
        return np.array([dissimilarity.sum(axis=0).argmin()])
    n = len(dissimilarity)
    medoids = _initial_medoids(dissimilarity, count, rng)
    nearest, first, second = _nearest_two(dissimilarity[medoids])
    candidate, tried = 0, 0
    while tried < n:
        row = dissimilarity[candidate]
        # Change of the sum when each medoid is replaced by the candidate: items that are nearer to
        # the candidate move to it, others of the removed medoid to the candidate or their second.
        gain = np.minimum(row - first, 0.0)
        moved = np.minimum(row, second) - first - gain
        changes = np.bincount(nearest, weights=moved, minlength=count) + gain.sum()
        position, tried = int(np.argmin(changes)), tried + 1
        if changes[position] < -_LEAST_GAIN * first.sum():
            medoids[position], tried = candidate, 0
            nearest, first, second = _nearest_two(dissimilarity[medoids])
        candidate = (candidate + 1) % n
    return np.sort(medoids)


def _initial_medoids(dissimilarity: FloatArray, count: int, rng: np.random.RandomState) -> IntArray:
    """Draw distinct items with probabilities proportional to the distance to the nearest one."""
    chosen = [int(rng.randint(len(dissimilarity)))]
    while len(chosen) < count:
        weights = dissimilarity[chosen].min(axis=0)
        if not weights.any():
            # All remaining items are copies of chosen ones.
            weights = np.ones(len(weights))
        weights[chosen] = 0.0
        chosen.append(int(rng.choice(len(weights), p=weights / weights.sum())))
    return np.array(chosen)


def _nearest_two(to_medoids: FloatArray) -> tuple[IntArray, FloatArray, FloatArray]:
    """Return the nearest medoid of every item, and the dissimilarities to the nearest two."""
    nearest, items = to_medoids.argmin(axis=0), np.arange(to_medoids.shape[1])
    first = to_medoids[nearest, items]
    to_medoids[nearest, items] = np.inf
    return nearest, first, to_medoids.min(axis=0)
