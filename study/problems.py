"""Data sets as classification problems: which series a method trains, tunes and tests on."""

from __future__ import annotations

import functools
import importlib.util
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.model_selection import train_test_split

import slts
from study import originals, pool
from study.cues import make_cue
from study.protocol import POOL, SYNTHETIC, UNIVARIATE, Protocol, seed_of

Indices = npt.NDArray[np.int64]
Score = dict[str, Any]

# Rounding error of the product of a share and a count.
_ROUNDING = 1e-9


@dataclass(frozen=True)
class LabelledSeries:
    """Series with labels; the first `n_train` are the training set, if the split is published."""

    batch: slts.SeriesBatch
    labels: npt.NDArray[Any]
    n_train: int | None = None


Loader = Callable[[str], LabelledSeries]


def load_published(name: str) -> LabelledSeries:
    """Load a data set of the paper, of the pool, or one that aeon has."""
    if name in pool.POOL_SETS:
        return LabelledSeries(*pool.load(name))
    if name in UNIVARIATE:
        return _load_univariate(UNIVARIATE[name])
    batch, labels = originals.load(name)
    return LabelledSeries(batch, labels, originals.N_TRAIN.get(name))


def _load_univariate(name: str) -> LabelledSeries:
    """Read the published parts of a data set from the files in the package aeon."""
    aeon = importlib.util.find_spec("aeon")
    if aeon is None:
        raise FileNotFoundError('it comes with aeon: pip install "slts[study]"')
    folder = Path(str((aeon.submodule_search_locations or [""])[0])) / "datasets" / "data" / name
    parts = [slts.datasets.read_ts(folder / f"{name}_{part}.ts") for part in ("TRAIN", "TEST")]
    batch = slts.SeriesBatch.concatenate([series for series, _ in parts])
    labels = np.concatenate([np.asarray(labels) for _, labels in parts])
    return LabelledSeries(batch, labels, len(parts[0][0]))


def make_up(dataset: str, split: int, n_test: int) -> LabelledSeries:
    """Make a family; training sets of all sizes share their test set."""
    name, size = dataset.rsplit("-", 1)
    parts = [
        make_cue(name, int(size), seed_of("cue", dataset, split)),
        make_cue(name, n_test, seed_of("cue test", name, split)),
    ]
    series = [x for xs, _ in parts for x in xs]
    return LabelledSeries(
        slts.as_series(series), np.concatenate([labels for _, labels in parts]), int(size)
    )


@functools.lru_cache(maxsize=8)
def load_once(loader: Loader, name: str) -> LabelledSeries:
    """Load a data set once per process."""
    return loader(name)


def missing_datasets(names: Sequence[str], loader: Loader) -> dict[str, str]:
    """Return the data sets that are not on this machine, and how to get them."""
    missing = {}
    for name in names:
        if name == SYNTHETIC:
            continue
        try:
            # The data sets of the pool are in one archive.
            load_once(loader, pool.POOL_SETS[0] if name == POOL else name)
        except FileNotFoundError as error:
            missing[name] = str(error)
    return missing


def divide(
    dataset: LabelledSeries, name: str, split: int, protocol: Protocol
) -> tuple[Indices, Indices]:
    """Return the training and test set of a split: as published, or random and stratified."""
    everything = np.arange(len(dataset.batch))
    if dataset.n_train is not None:
        train, test = everything[: dataset.n_train], everything[dataset.n_train :]
    else:
        train, test = train_test_split(
            everything,
            test_size=round(protocol.test_share * len(everything)),
            stratify=dataset.labels,
            random_state=seed_of("division", name, split),
        )
    seed = seed_of("draw", name)
    return draw_at_most(protocol.most_train, train, dataset.labels, seed), test


def draw_at_most(
    most: int | None, indices: Indices, labels: npt.NDArray[Any], seed: int
) -> Indices:
    """Draw at most `most` of the indices, stratified by class."""
    if most is None or len(indices) <= most:
        return indices
    stratify = labels[indices]
    kept, _ = train_test_split(indices, train_size=most, stratify=stratify, random_state=seed)
    return np.sort(kept)


@dataclass(frozen=True)
class Problem:
    """One split of a data set.

    Parameters
    ----------
    dataset, split
        Name of the data set and number of the split.
    series, labels
        All series of the data set.
    train
        Series that the final model is trained on.
    tuning
        Series that parameters are chosen on, with models trained on the rest of `train`. They
        belong to `train`, except under the literal reading of the paper's protocol.
    test
        Series that the final model is tested on.
    heldout
        Whether this is the literal reading, with `tuning` held out of `train`.
    """

    dataset: str
    split: int
    series: slts.SeriesBatch
    labels: npt.NDArray[Any]
    train: Indices
    tuning: Indices
    test: Indices
    heldout: bool = False

    @property
    def fit(self) -> Indices:
        """Series that models are trained on while parameters are chosen."""
        return np.setdiff1d(self.train, self.tuning)

    def seed(self, purpose: str) -> int:
        """Return a seed that depends on the data set, the split and the purpose."""
        reading = ("heldout",) if self.heldout else ()
        return seed_of(purpose, *reading, self.dataset, self.split)

    def counts(self, shares: Sequence[float]) -> list[int]:
        """Return the numbers of landmarks that the shares stand for, without repetition."""
        return sorted({count_of(share, len(self.train), self.heldout) for share in shares})

    def score(self, method: str, predicted: npt.ArrayLike, **facts: Any) -> Score:
        """Return a record of the accuracy on the test set, in percent."""
        right = int(np.sum(np.asarray(predicted) == self.labels[self.test]))
        return {
            "method": method,
            "dataset": self.dataset,
            "split": self.split,
            "heldout": self.heldout,
            "n_train": len(self.train),
            "n_test": len(self.test),
            "accuracy": 100.0 * right / len(self.test),
            **facts,
        }


def make_problem(dataset: LabelledSeries, name: str, split: int, protocol: Protocol) -> Problem:
    """Split a data set; the tuning set is a stratified part of the training set."""
    train, test = divide(dataset, name, split, protocol)
    _, tuning = train_test_split(
        train,
        test_size=round(protocol.tuning_share * len(train)),
        stratify=dataset.labels[train],
        random_state=seed_of("tuning", name, split),
    )
    return Problem(name, split, dataset.batch, dataset.labels, train, tuning, test)


def make_heldout_problem(
    dataset: LabelledSeries, name: str, split: int, protocol: Protocol
) -> Problem:
    """Split a data set by the literal reading: at random, not stratified, sizes rounded up."""
    n = len(dataset.batch)
    order = np.random.RandomState(seed_of("heldout", name, split)).permutation(n)
    n_test = math.ceil(protocol.test_share * n - _ROUNDING)
    n_tuning = math.ceil(protocol.tuning_share * (n - n_test) - _ROUNDING)
    test, tuning, train = np.split(order, [n_test, n_test + n_tuning])
    # Series of other classes are wrong for all parameters and cannot influence the choice.
    tuning = tuning[np.isin(dataset.labels[tuning], dataset.labels[train])]
    return Problem(name, split, dataset.batch, dataset.labels, train, tuning, test, heldout=True)


def count_of(share: float, n_train: int, heldout: bool = False) -> int:
    """Return the number of landmarks that a share of the training set stands for, at least 1.

    It is rounded to the nearest integer, or rounded down under the literal reading.
    """
    half = 0.0 if heldout else 0.5
    return max(1, math.floor(share * n_train + half + _ROUNDING))
