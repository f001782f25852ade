"""Data sets as classification problems: rows normalised, divided into training and test part."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from sklearn.model_selection import train_test_split

from slts import datasets
from slts._typing import AnyArray, IntArray
from slts.datasets.loading import open_dataset
from slts.series import SeriesBatch, normalize_rows
from slts.study.protocol import Protocol, seed_of


@dataclass(frozen=True)
class Dataset:
    """Series with labels; the first `n_train` are the training part, if it comes divided."""

    batch: SeriesBatch
    labels: AnyArray
    n_train: int | None = None


Loader = Callable[[str], Dataset]

# What a product of a share and a count may miss an integer by.
_ROUNDING = 1e-9


@dataclass(frozen=True)
class Problem:
    """Training and test part of one split, rows of unit norm, classes as numbers."""

    train: SeriesBatch
    codes: IntArray
    test: SeriesBatch
    test_codes: IntArray
    n_classes: int


@dataclass(frozen=True)
class Parts:
    """Three parts of one set: to learn on, to tune on, to test on; rows of unit norm.

    Classes are those of the part to learn on; the code of any other is `n_classes`.
    """

    rows: SeriesBatch
    codes: IntArray
    n_classes: int
    fit: IntArray
    tuning: IntArray
    test: IntArray


def load_published(name: str) -> Dataset:
    """Load a data set of the paper by its name in `slts.datasets`."""
    batch, labels = datasets.load(name)
    return Dataset(batch, labels, datasets.info(name).n_train)


def available_datasets(names: tuple[str, ...]) -> dict[str, str | None]:
    """For every data set None if it is on this machine, else why not and how to get it."""
    found: dict[str, str | None] = {}
    for name in names:
        try:
            with open_dataset(datasets.info(name)):
                found[name] = None
        except FileNotFoundError as error:
            found[name] = str(error)
    return found


@functools.lru_cache(maxsize=8)
def load_once(loader: Loader, name: str) -> Dataset:
    """Load a data set once per process."""
    return loader(name)


def make_problem(dataset: Dataset, name: str, split: int, protocol: Protocol) -> Problem:
    """Divide a data set: as published, or at random with all classes in proportion."""
    classes, codes = np.unique(dataset.labels, return_inverse=True)
    codes = codes.astype(np.int64)
    train, test = divide(dataset, name, split, protocol.test_share)
    rows = normalize_rows(dataset.batch)
    return Problem(rows[train], codes[train], rows[test], codes[test], len(classes))


def divide(dataset: Dataset, name: str, split: int, test_share: float) -> tuple[IntArray, IntArray]:
    """Indices of training and test part of one split."""
    n = len(dataset.batch)
    if dataset.n_train is not None:
        return np.arange(dataset.n_train), np.arange(dataset.n_train, n)
    train, test = train_test_split(
        np.arange(n),
        test_size=round(test_share * n),
        stratify=dataset.labels,
        random_state=seed_of("division", name, split),
    )
    return train, test


def divide_in_three(dataset: Dataset, name: str, split: int, protocol: Protocol) -> Parts:
    """Divide a set at random, whatever the classes; shares that are not whole are rounded up."""
    n = len(dataset.batch)
    order = np.random.RandomState(seed_of("aside", name, split)).permutation(n)
    n_test = _rounded_up(protocol.test_share * n)
    n_tuning = _rounded_up(protocol.tuning_share * (n - n_test))
    test, tuning, fit = np.split(order, [n_test, n_test + n_tuning])
    classes = np.unique(dataset.labels[fit])
    known = np.isin(dataset.labels, classes)
    codes = np.where(known, np.searchsorted(classes, dataset.labels), len(classes))
    rows = normalize_rows(dataset.batch)
    return Parts(rows, codes.astype(np.int64), len(classes), fit, tuning, test)


def aside_count(share: float, n_fit: int) -> int:
    """Landmarks that a share of the series to learn on means: rounded down, at least one."""
    return max(1, math.floor(share * n_fit + _ROUNDING))


def _rounded_up(value: float) -> int:
    return math.ceil(value - _ROUNDING)
