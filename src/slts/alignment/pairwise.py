"""Public functions: align one pair, or all pairs of two collections."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import numpy.typing as npt

from slts._typing import FloatArray
from slts.alignment.aligner import Aligner, Alignment, align_pair
from slts.alignment.settings import AlignmentSettings, Band, no_path_error
from slts.errors import DataError
from slts.execution import progress_bar
from slts.quantities import count
from slts.series import SeriesBatch, as_series
from slts.series.values import leave_out_missing, observed_steps


def align(
    a: Any,
    b: Any,
    *,
    objective: str = "affinity",
    band: Band = None,
    normalize: bool = True,
) -> Alignment:
    """Align two series.

    Parameters
    ----------
    a, b
        One series each: (channels, time), or (time,) for one channel. Missing values (NaN) are
        left out, and the path skips steps at which nothing is observed.
    objective
        ``"affinity"`` maximises the sum of a_i.b_j; ``"cost"`` minimises the sum of 1 - a_i.b_j;
        ``"distance"`` minimises the sum of squared Euclidean distances.
    band
        None, a Sakoe-Chiba radius in steps, or `Itakura`.
    normalize
        Scale every step to unit length (L2 norm) first.

    Returns
    -------
    Alignment
        Path, length and similarity.

    Raises
    ------
    MemoryError
        If the path needs more memory than the process may use: 2 bits for each pair of steps.

    Examples
    --------
    >>> import slts
    >>> a = [[1.0, 0.0, 0.0], [0.0, 1.0, 1.0]]
    >>> b = [[1.0, 0.0], [0.0, 1.0]]
    >>> aligned = slts.align(a, b, objective="cost")
    >>> aligned.path.tolist(), aligned.similarity
    ([[0, 0], [1, 1], [2, 1]], 1.0)
    """
    normalize = bool(normalize)
    aligned = align_pair(a, b, objective, band, normalize=normalize)
    if aligned is not None:
        return aligned
    # The input is no array of float64, a value is missing, or something is wrong.
    settings = AlignmentSettings(objective, band, normalize)
    x, y = _one_series(a, "a"), _one_series(b, "b")
    _require_same_channels(x, "a", y, "b")
    rows = leave_out_missing(x), leave_out_missing(y)
    aligned = align_pair(rows[0][0], rows[1][0], objective, band, normalize=normalize)
    if aligned is None:
        for batch, name in zip(rows, "ab", strict=True):
            with _naming(f"'{name}' is not a usable series"):
                settings.prepare(batch)
        raise no_path_error(band, "a", rows[0].n_steps, "b", rows[1].n_steps)
    steps = (np.flatnonzero(observed_steps(batch)) for batch in (x, y))
    path = [kept[side] for kept, side in zip(steps, aligned.path.T, strict=True)]
    return aligned._replace(path=np.column_stack(path))


def similarity(
    X: Any,
    Y: Any = None,
    *,
    metric: npt.ArrayLike | None = None,
    objective: str = "affinity",
    band: Band = None,
    normalize: bool = True,
    dtype: str = "float64",
    device: str = "cpu",
    n_jobs: int | None = None,
    verbose: bool = False,
) -> npt.NDArray[np.floating[Any]]:
    """Similarity K_M of every series of X with every series of Y.

    Parameters
    ----------
    X, Y
        Anything that `as_series` accepts. Y=None means X.
    metric
        M, shape (channels, channels). None means the identity. Paths do not depend on M.
    objective, band, normalize
        See `align`.
    dtype
        Precision of the computation and of the result, ``"float64"`` or ``"float32"``.
    device
        ``"cpu"``, ``"cuda"`` (an NVIDIA GPU through CuPy, extra ``cuda``) or ``"auto"``, which uses
        a GPU if there is one and the work is large enough, and logs the choice once.
    n_jobs
        Number of CPU threads, by joblib's convention.
    verbose
        Show a progress bar.

    Returns
    -------
    ndarray
        Shape (len(X), len(Y)).

    Examples
    --------
    >>> import numpy as np, slts
    >>> X = [np.eye(2), np.eye(2)[::-1]]
    >>> slts.similarity(X, objective="cost")
    array([[1., 0.],
           [0., 1.]])
    """
    settings = AlignmentSettings(objective, band, normalize, dtype)
    x, y = _two_batches(X, Y, settings)
    aligner = Aligner(y, settings, device, n_jobs)
    with progress_bar("Aligning", show=verbose) as progress:
        if metric is None:
            return aligner.similarities(x, progress=progress)
        matrix = _checked_metric(metric, x.n_channels)
        return aligner.projected(x, matrix[np.newaxis], progress=progress)[:, :, 0]


def distance(
    X: Any,
    Y: Any = None,
    *,
    squared: bool = False,
    band: Band = None,
    normalize: bool = False,
    dtype: str = "float64",
    device: str = "cpu",
    n_jobs: int | None = None,
    verbose: bool = False,
) -> npt.NDArray[np.floating[Any]]:
    """DTW distance of every series of X from every series of Y: larger means less similar.

    The square root of the smallest sum of ``|a_i - b_j|^2`` along a path.

    Parameters
    ----------
    X, Y
        Anything that `as_series` accepts. Y=None means X.
    squared
        Return the sums themselves, without the square root.
    band
        None, a Sakoe-Chiba radius in steps, or `Itakura`.
    normalize
        Scale every step to unit length (L2 norm) first. The default compares the values.
    dtype, device, n_jobs, verbose
        See `similarity`.

    Returns
    -------
    ndarray
        Shape (len(X), len(Y)).

    Examples
    --------
    >>> import numpy as np, slts
    >>> wave = np.sin(np.arange(8))
    >>> slts.distance([wave], [wave, 2 * wave, 3 * wave]).argsort().tolist()
    [[0, 1, 2]]
    """
    settings = AlignmentSettings("distance", band, normalize, dtype)
    x, y = _two_batches(X, Y, settings)
    with progress_bar("Aligning", show=verbose) as progress:
        sums = Aligner(y, settings, device, n_jobs).distances(x, progress=progress)
    # Differences of rounded products: sums of nearly equal series can be slightly negative.
    np.maximum(sums, 0.0, out=sums)
    if Y is None:
        np.fill_diagonal(sums, 0.0)
    return sums if squared else np.sqrt(sums, out=sums)


def aligned_products(
    X: Any,
    Y: Any = None,
    *,
    objective: str = "affinity",
    band: Band = None,
    normalize: bool = True,
    dtype: str = "float64",
    device: str = "cpu",
    n_jobs: int | None = None,
    verbose: bool = False,
) -> npt.NDArray[np.floating[Any]]:
    """Aligned products T = A'YB/t of every series of X with every series of Y.

    All similarities are linear in T: K_M(A, B) = <M, T>.

    Parameters
    ----------
    X, Y
        Anything that `as_series` accepts. Y=None means X.
    objective, band, normalize
        See `align`.
    dtype
        Precision of the computation and of the result, ``"float64"`` or ``"float32"``.
    device
        ``"cpu"``, ``"cuda"`` (an NVIDIA GPU through CuPy, extra ``cuda``) or ``"auto"``, which uses
        a GPU if there is one and the work is large enough, and logs the choice once.
    n_jobs
        Number of CPU threads, by joblib's convention.
    verbose
        Show a progress bar.

    Returns
    -------
    ndarray
        Shape (len(X), len(Y), channels, channels).
    """
    settings = AlignmentSettings(objective, band, normalize, dtype)
    x, y = _two_batches(X, Y, settings)
    with progress_bar("Aligning", show=verbose) as progress:
        return Aligner(y, settings, device, n_jobs).products(x, progress=progress)


def _checked_metric(metric: npt.ArrayLike, d: int) -> FloatArray:
    try:
        matrix = np.asarray(metric, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(f"The 'metric' parameter is not an array of numbers: {error}.") from error
    if matrix.shape != (d, d):
        raise ValueError(
            f"The 'metric' parameter must be an array of shape ({d}, {d}), one row and column per "
            f"channel. Got shape {matrix.shape} instead."
        )
    if not np.isfinite(matrix).all():
        raise ValueError("The 'metric' parameter must be finite. Got NaN or infinity instead.")
    return matrix


def _two_batches(X: Any, Y: Any, settings: AlignmentSettings) -> tuple[SeriesBatch, SeriesBatch]:
    x = settings.prepare(as_series(X))
    if Y is None:
        return x, x
    with _naming("in Y"):
        y = settings.prepare(as_series(Y))
    _require_same_channels(x, "X", y, "Y")
    return x, y


def _one_series(value: Any, name: str) -> SeriesBatch:
    with _naming(f"'{name}' is not a usable series"):
        return as_series([value], layout="channels_first")


@contextmanager
def _naming(what: str) -> Iterator[None]:
    """Add the argument to the message of an error."""
    try:
        yield
    except DataError as error:
        raise DataError(f"{what}: {error}") from error


def _require_same_channels(x: SeriesBatch, one: str, y: SeriesBatch, other: str) -> None:
    if x.n_channels == y.n_channels:
        return
    for batch, name, channels in ((x, one, y.n_channels), (y, other, x.n_channels)):
        if batch.n_channels == 1 and len(batch) == channels:
            raise DataError(
                f"'{name}' is read as {len(batch)} series of one channel, but the other series "
                f"have {count(channels, 'channel')}. If '{name}' is one series x, pass [x]."
            )
    lengths = set(x.lengths.tolist()), set(y.lengths.tolist())
    time_first = lengths[0] == {y.n_channels} or lengths[1] == {x.n_channels}
    time_first = time_first or (lengths[0] == lengths[1] and len(lengths[0]) == 1)
    hint = " Is the layout time_first? Then use as_series(..., layout='time_first')."
    raise DataError(
        f"'{one}' has {count(x.n_channels, 'channel')} and '{other}' has {y.n_channels}: both must "
        f"have the same number.{hint if time_first else ''}"
    )
