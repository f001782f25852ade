"""`.npz`: arrays of NumPy, read without unpickling anything."""

from __future__ import annotations

import zipfile
import zlib
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from slts._typing import AnyArray
from slts.errors import DataError
from slts.files.chunks import first_missing
from slts.files.dataset import Dataset
from slts.series import SeriesBatch, as_series

__all__ = ["read_npz"]

_FORMS = (
    "expected X of shape (n, channels, time) or (n, time), with lengths if series are padded; or, "
    "for series of different lengths, values of shape (all steps, channels) and offsets"
)


def read_npz(path: Path, *, labels: bool) -> Dataset:
    """Read series and labels from named arrays.

    Parameters
    ----------
    path : Path
        A file with `X`, or `values` and `offsets`; perhaps `y`, `ids` and `channel_names`.
    labels : bool
        Whether to read `y`.

    Returns
    -------
    Dataset
        All series.
    """
    try:
        loaded = np.load(path, allow_pickle=False)
        if not hasattr(loaded, "files"):
            raise DataError(f"{path} is a single array, not an .npz file: {_FORMS}")
        with loaded as file:
            arrays = {name: _array(file, name, path) for name in file.files}
    except (zipfile.BadZipFile, zlib.error, EOFError, ValueError) as error:
        if isinstance(error, DataError):
            raise
        # What NumPy does not know it takes for a pickle, and advises to allow that.
        reason = "" if "pickle" in str(error) else f": {error}"
        raise DataError(f"{path} is not an .npz file, or damaged{reason}") from error
    try:
        series = _series(arrays, path)
    except (DataError, TypeError) as error:
        text = str(error)
        if " is NaN" in text:
            text += ". Of padded series, save the numbers of steps too, as lengths"
        raise DataError(text if text.startswith(str(path)) else f"{path}: {text}") from error
    return Dataset(
        series,
        _one_per_series(arrays, "y", series, path) if labels else None,
        _one_per_series(arrays, "ids", series, path),
        str(path),
        share=1.0,
    )


def _array(file: Mapping[str, AnyArray], name: str, path: Path) -> AnyArray:
    try:
        return file[name]
    except ValueError as error:
        if "allow_pickle" not in str(error):
            raise
        raise DataError(
            f"{path}: {name!r} is an array of Python objects, which could run code when it is "
            f"read. Save series of different lengths as two arrays instead: batch = "
            f"slts.as_series(X); np.savez(path, values=batch.values, offsets=batch.offsets, y=y)"
        ) from error


def _series(arrays: Mapping[str, AnyArray], path: Path) -> SeriesBatch:
    names = arrays["channel_names"].tolist() if "channel_names" in arrays else None
    if "values" in arrays and "offsets" in arrays:
        return SeriesBatch(arrays["values"], arrays["offsets"], names)
    if "X" not in arrays:
        raise DataError(f"{path} holds {', '.join(arrays) or 'nothing'}: {_FORMS}")
    X = arrays["X"]
    batch = _padded(X, arrays["lengths"]) if "lengths" in arrays else as_series(X)
    return batch if names is None else SeriesBatch(batch.values, batch.offsets, names)


def _padded(X: AnyArray, lengths: AnyArray) -> SeriesBatch:
    X = X[:, np.newaxis, :] if X.ndim == 2 else X
    fits = X.ndim == 3 and lengths.shape == X.shape[:1] and lengths.dtype.kind in "iu"
    if not fits or (lengths < 1).any() or (lengths > X.shape[-1]).any():
        raise DataError(
            f"lengths must be {len(X)} integers from 1 to {X.shape[-1]}, one per series of X"
        )
    return as_series([x[:, :length] for x, length in zip(X, lengths.tolist(), strict=True)])


def _one_per_series(
    arrays: Mapping[str, AnyArray], name: str, series: SeriesBatch, path: Path
) -> AnyArray | None:
    found = arrays.get(name)
    if found is not None and found.shape != (len(series),):
        raise DataError(
            f"{path}: {name} has shape {found.shape}, expected ({len(series)},), one per series"
        )
    gap = None if found is None else first_missing(found.tolist())
    if gap is not None:
        raise DataError(f"{path}: {name}[{gap}] is missing; fill it in or drop the series")
    return found
