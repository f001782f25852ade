"""Data sets as classification problems: rows normalised, divided into training and test part."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from sklearn.model_selection import train_test_split

from slts import datasets
from slts._typing import AnyArray, IntArray
from slts.datasets.locate import data_store
from slts.series import SeriesBatch, normalize_rows
from slts.study.protocol import Protocol, seed_of


@dataclass(frozen=True)
class Dataset:
    """Series with labels; the first `n_train` are the training part, if it comes divided."""

    batch: SeriesBatch
    labels: AnyArray
    n_train: int | None = None


Loader = Callable[[str], Dataset]


@dataclass(frozen=True)
class Problem:
    """Training and test part of one split, rows of unit norm, classes as numbers."""

    train: SeriesBatch
    codes: IntArray
    test: SeriesBatch
    test_codes: IntArray
    n_classes: int


def load_published(name: str) -> Dataset:
    """Load a data set of the paper by its name in `slts.datasets`."""
    batch, labels = datasets.load(name)
    return Dataset(batch, labels, datasets.info(name).n_train)


def available_datasets(names: tuple[str, ...]) -> dict[str, str | None]:
    """For every data set None if it is on this machine, else why not and how to get it."""
    found: dict[str, str | None] = {}
    for name in names:
        try:
            with data_store(datasets.info(name)):
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
    n = len(dataset.batch)
    if dataset.n_train is not None:
        train, test = np.arange(dataset.n_train), np.arange(dataset.n_train, n)
    else:
        train, test = train_test_split(
            np.arange(n),
            test_size=round(protocol.test_share * n),
            stratify=codes,
            random_state=seed_of("division", name, split),
        )
    rows = normalize_rows(dataset.batch)
    return Problem(rows[train], codes[train], rows[test], codes[test], len(classes))
