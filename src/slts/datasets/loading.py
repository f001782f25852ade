"""`load`: series and labels of a data set, checked against the published counts."""

from __future__ import annotations

import numpy as np

from slts._typing import AnyArray
from slts.datasets.catalogue import DatasetInfo, info
from slts.datasets.locate import data_store
from slts.datasets.originals import read_part
from slts.datasets.stores import Store
from slts.errors import DataError
from slts.series import SeriesBatch

__all__ = ["load", "read_checked"]

_PARTS = ("train", "test")


def load(
    name: str, split: str | None = None, *, n_classes: int | None = None
) -> tuple[SeriesBatch, AnyArray]:
    """Load one of the data sets of the UCI repository.

    Looks in the folder `$SLTS_DATA` (of the zips, or of what they contain), in the cache that
    `fetch` fills and, for Japanese Vowels, in the aeon package.

    Parameters
    ----------
    name : str
        One of `list_datasets()`.
    split : {"train", "test"}, optional
        Part of a set that comes divided ("japanese_vowels", "arabic_digits"); all series, the
        training part first, by default.
    n_classes : int, optional
        For "auslan" only: how many signs, 2 to 95; 25 by default.

    Returns
    -------
    batch : SeriesBatch
        The series, with named channels.
    labels : ndarray of shape (n_series,)
        Integers for "arabic_digits", text for the others; see `info(name).labels`.

    Raises
    ------
    FileNotFoundError
        If the data are not on this machine.
    DataError
        If there is no such set or part, or the data found contradict the published counts.
    """
    entry = info(name, n_classes=n_classes)
    _check_split(entry, split)
    with data_store(entry) as store:
        return read_checked(entry, split, store)


def _check_split(entry: DatasetInfo, split: str | None) -> None:
    if split is None:
        return
    if split not in _PARTS:
        raise DataError(f"split must be 'train', 'test' or None, got {split!r}")
    if entry.n_train is None:
        raise DataError(
            f"{entry.name!r} does not come divided into training and test parts: load it whole and "
            "divide it, for instance with sklearn.model_selection.train_test_split"
        )


def read_checked(
    entry: DatasetInfo, split: str | None, store: Store
) -> tuple[SeriesBatch, AnyArray]:
    """Read a data set from a store and compare it with the published counts.

    Parameters
    ----------
    entry : DatasetInfo
        The counts.
    split : {"train", "test"} or None
        The part to read.
    store : Store
        Where its files are.

    Returns
    -------
    batch : SeriesBatch
        The series.
    labels : ndarray
        Their labels.

    Raises
    ------
    DataError
        If anything differs from what is published; the message names both.
    """
    if entry.n_train is None:
        parts = [read_part(entry, None, store)]
    else:
        parts = []
        for part in _PARTS if split is None else (split,):
            parts.append(read_part(entry, part, store))
            expected = entry.n_train if part == "train" else entry.n_test
            if len(parts[-1][0]) != expected:
                raise DataError(
                    f"{store.place} is not {entry.title}: its {part} part has "
                    f"{len(parts[-1][0])} series, expected {expected}"
                )
    batch = SeriesBatch.concatenate(part[0] for part in parts)
    labels = np.concatenate([part[1] for part in parts])
    _check_counts(entry, split, batch, labels, store.place)
    return batch, labels


def _check_counts(
    entry: DatasetInfo, split: str | None, batch: SeriesBatch, labels: AnyArray, place: str
) -> None:
    found = {
        "series": len(batch),
        "channels": batch.n_channels,
        "classes": len(np.unique(labels)),
    }
    expected = {
        "series": entry.n_series if split is None else len(batch),
        "channels": entry.n_channels,
        "classes": entry.n_classes,
    }
    wrong = [
        f"{found[what]} {what}, expected {expected[what]}"
        for what in found
        if found[what] != expected[what]
    ]
    shortest, longest = int(batch.lengths.min()), int(batch.lengths.max())
    low, high = entry.lengths
    # A part of a set need not hold both its shortest and its longest series.
    exact = entry.exact_lengths and split is None
    if shortest < low or longest > high or (exact and (shortest, longest) != entry.lengths):
        wrong.append(f"{shortest} to {longest} steps, expected {low} to {high}")
    if wrong:
        raise DataError(f"{place} is not {entry.title} as published: it has {'; '.join(wrong)}")
