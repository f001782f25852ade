"""Choosing landmarks among the training series, without their labels."""

from __future__ import annotations

import math
import numbers
from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from slts._typing import IntArray
from slts.alignment import AlignmentSettings, Band, require_device
from slts.alignment.reductions import similarities
from slts.errors import DataError
from slts.execution import Progress, progress_bar
from slts.landmarks.kmedoids import find_medoids
from slts.series import SeriesBatch, as_series

METHODS = ("random", "kmedoids", "dselect")


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
        Anything `as_series` takes.
    n
        How many: an int from 1 to len(X), or a fraction of len(X); see `resolve_count`.
    method
        ``"random"`` draws without replacement and aligns nothing. ``"kmedoids"`` takes the medoids
        of 1 - K, which needs all pairs: O(len(X)^2) alignments and memory. ``"dselect"`` starts
        with a random series and adds, n - 1 times, the one whose mean similarity to those chosen
        is smallest; it aligns (n - 1) x len(X) pairs.
    objective, band, normalize
        How paths are found; see `AlignmentSettings`.
    random_state
        Seed of the draw, of the start of the medoids, of the first of "dselect".
    device
        ``"cpu"``; ``"cuda"``, an NVIDIA GPU through CuPy (extra ``cuda``); or ``"auto"``: the GPU
        if there is one and the work is large enough, which is logged once.
    n_jobs
        Threads of the CPU, by joblib's convention.
    verbose
        Show a progress bar.

    Returns
    -------
    ndarray of int
        Distinct indices into X, in order of choice: for "random" and "dselect" the first m are
        what m alone would have given. Medoids have no order and come ascending.

    Examples
    --------
    >>> import numpy as np, slts
    >>> from slts.landmarks import select_landmarks
    >>> X = [np.eye(2), np.eye(2), -np.eye(2)]
    >>> select_landmarks(X, 2, method="dselect", random_state=0).tolist()
    [0, 2]
    """
    if method not in METHODS:
        raise ValueError(
            f"The 'method' parameter of select_landmarks must be one of {METHODS}. "
            f"Got {method!r} instead."
        )
    require_device(device, "select_landmarks")
    settings = AlignmentSettings(objective, band, normalize)
    batch = as_series(X)
    count = resolve_count(n, len(batch), name="n")
    rng = check_random_state(random_state)
    if method == "random":
        return np.asarray(rng.permutation(len(batch))[:count], dtype=np.int64)
    prepared = settings.prepare(batch)
    with progress_bar("Choosing landmarks", show=verbose) as progress:
        if method == "kmedoids":
            return _medoids(prepared, count, settings, rng, device, n_jobs, progress)
        return _diverse(prepared, count, settings, rng, device, n_jobs, progress)


def resolve_count(n_landmarks: int | float, n_series: int, *, name: str = "n_landmarks") -> int:
    """Turn an int or a fraction of the series into a number of landmarks.

    Parameters
    ----------
    n_landmarks
        An int from 1 to `n_series`, kept as it is; or a float in (0, 1], a fraction of `n_series`,
        rounded to the nearest int (halves up), at least 1.
    n_series
        How many there are to choose from.
    name
        What the caller calls `n_landmarks`, for the message of an error.

    Returns
    -------
    int
        From 1 to `n_series`.

    Examples
    --------
    >>> from slts.landmarks import resolve_count
    >>> resolve_count(10, 270), resolve_count(0.1, 25), resolve_count(0.001, 25)
    (10, 3, 1)
    """
    if n_series < 1:
        raise DataError(f"'{name}' cannot be chosen from {n_series} series: at least 1 is needed.")
    if isinstance(n_landmarks, numbers.Integral):
        # True is an int to Python, and never a number of landmarks to its writer.
        if 1 <= n_landmarks <= n_series and not isinstance(n_landmarks, bool):
            return int(n_landmarks)
    elif isinstance(n_landmarks, numbers.Real) and 0.0 < n_landmarks <= 1.0:
        # The allowance lets 0.145 of 100 be 14.5, whatever the binary fraction says.
        return max(1, math.floor(float(n_landmarks) * n_series + 0.5 + 1e-9))
    raise ValueError(
        f"The '{name}' parameter must be an int from 1 to {n_series}, the number of series, or a "
        f"float in (0, 1], a fraction of them. Got {n_landmarks!r} instead."
    )


def _medoids(
    batch: SeriesBatch,
    count: int,
    settings: AlignmentSettings,
    rng: np.random.RandomState,
    device: str,
    n_jobs: int | None,
    progress: Progress | None,
) -> IntArray:
    similarity = similarities(
        batch, batch, settings, device=device, n_jobs=n_jobs, progress=progress
    )
    # Ties are broken in favour of one of the two series, so K is symmetric but for those.
    mean = 0.5 * (similarity + similarity.T)
    # Rows that are not unit rows may be more similar than 1. The constant only has to keep what is
    # left from being negative: it enters the cost n - count times whatever the medoids are.
    dissimilarity = max(1.0, float(mean.max())) - mean
    np.fill_diagonal(dissimilarity, 0.0)
    return find_medoids(dissimilarity, count, random_state=rng).indices


def _diverse(
    batch: SeriesBatch,
    count: int,
    settings: AlignmentSettings,
    rng: np.random.RandomState,
    device: str,
    n_jobs: int | None,
    progress: Progress | None,
) -> IntArray:
    chosen = np.empty(count, dtype=np.int64)
    chosen[0] = rng.randint(len(batch))
    # The mean and the sum over the chosen rank alike.
    closeness = np.zeros(len(batch))
    for done in range(1, count):
        newest = batch[chosen[done - 1 : done]]
        closeness += similarities(newest, batch, settings, device=device, n_jobs=n_jobs)[0]
        closeness[chosen[done - 1]] = np.inf
        chosen[done] = np.argmin(closeness)
        if progress is not None:
            progress(done, count - 1)
    return chosen


def check_landmarks(given: Any, n_series: int, owner: str) -> IntArray:
    """Landmarks given as indices: distinct, of training series."""
    indices = np.asarray(given)
    usable = indices.ndim == 1 and indices.size > 0 and indices.dtype.kind in "iu"
    usable = usable and indices.min() >= 0 and indices.max() < n_series
    if not usable or len(np.unique(indices)) < len(indices):
        raise ValueError(
            f"The 'landmarks' parameter of {owner} must be 'random', 'kmedoids', 'dselect', or "
            f"distinct indices of training series between 0 and {n_series - 1}. "
            f"Got {given!r} instead."
        )
    return indices.astype(np.int64)


def draw_stratified(codes: IntArray, count: int, rng: np.random.RandomState) -> IntArray:
    """Indices of `count` series, as evenly from all classes as their sizes allow, in order."""
    if count >= len(codes):
        return np.arange(len(codes))
    # Members of each class in random order; then the first of every class, the second, and so on.
    order = rng.permutation(len(codes))
    ranks = np.empty(len(codes), dtype=np.int64)
    for c in np.unique(codes):
        members = order[codes[order] == c]
        ranks[members] = np.arange(len(members))
    by_rank = order[np.argsort(ranks[order], kind="stable")]
    return np.sort(by_rank[:count])
