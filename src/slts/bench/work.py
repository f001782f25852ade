"""From a unit to its result, in whatever process it runs."""

from __future__ import annotations

import time
import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.model_selection import StratifiedKFold, train_test_split
from threadpoolctl import threadpool_limits

from slts._typing import IntArray
from slts.bench.makers import MAKERS, warm_up
from slts.bench.methods import Method
from slts.bench.protocol import Protocol, is_choice, method_of
from slts.series import SeriesBatch
from slts.study.problems import Dataset, Loader, divide, load_once, load_published
from slts.study.protocol import Unit, seed_of

Score = dict[str, Any]


@dataclass(frozen=True)
class Worker:
    """Does units of one protocol; can be sent to another process.

    Parameters
    ----------
    protocol
        How many splits of what.
    loader
        Where data sets come from, by name.
    """

    protocol: Protocol
    loader: Loader = load_published

    def __call__(self, unit: Unit) -> Score:
        """Result of a unit: numbers and text only, and how long it took."""
        start, cpu = time.perf_counter(), time.process_time()
        dataset = load_once(self.loader, unit.dataset)
        # One core each: units run side by side, and sums do not depend on the number of threads.
        with threadpool_limits(1), warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            done = _choice if is_choice(unit) else _accuracy
            result = done(unit, dataset, self.protocol)
        return {
            "method": method_of(unit).name,
            "dataset": unit.dataset,
            **result,
            "warnings": len(caught),
            "seconds": round(time.perf_counter() - start, 3),
            "cpu_seconds": round(time.process_time() - cpu, 3),
        }


def _accuracy(unit: Unit, dataset: Dataset, protocol: Protocol) -> Score:
    """Accuracy on the test part, times, size."""
    split = unit.splits[0]
    _, codes = np.unique(dataset.labels, return_inverse=True)
    train, test = divide(dataset, unit.dataset, split, protocol.test_share)
    train = _drawn(train, codes, protocol.most_train, seed_of("draw", unit.dataset, split))
    # The same seed for all variants of a method: they differ in what is changed and nothing else.
    method = method_of(unit)
    seed = seed_of("model", method.maker, unit.dataset, split)
    batch = dataset.batch
    found = _run(method, batch[train], codes[train], batch[test], codes[test], seed)
    return {"split": split, "n_train": len(train), "n_test": len(test), **found}


def _choice(unit: Unit, dataset: Dataset, protocol: Protocol) -> Score:
    """Cross-validated accuracies inside the training part of the first split."""
    _, codes = np.unique(dataset.labels, return_inverse=True)
    train, _ = divide(dataset, unit.dataset, 0, protocol.test_share)
    seed = seed_of("choice", unit.dataset)
    train = _drawn(train, codes, protocol.choice_series, seed)
    method, folds = method_of(unit), []
    for repeat in range(protocol.choice_repeats):
        folding = StratifiedKFold(protocol.choice_folds, shuffle=True, random_state=seed + repeat)
        for inner, held_out in folding.split(train, codes[train]):
            fit, rest = train[inner], train[held_out]
            found = _run(
                method, dataset.batch[fit], codes[fit], dataset.batch[rest], codes[rest], seed
            )
            folds.append(found["accuracy"])
    return {"split": 0, "n_train": len(train), "folds": folds}


def _run(
    method: Method,
    train: SeriesBatch,
    codes: IntArray,
    test: SeriesBatch,
    test_codes: IntArray,
    seed: int,
) -> Score:
    maker = MAKERS[method.maker]
    warm_up(method.maker)
    X, X_test = maker.prepare(train, test)
    model = maker.model(dict(method.parameters), seed)
    wall, cpu = [time.perf_counter()], [time.process_time()]
    model.fit(X, codes)
    wall.append(time.perf_counter())
    cpu.append(time.process_time())
    predicted = np.asarray(model.predict(X_test))
    wall.append(time.perf_counter())
    cpu.append(time.process_time())
    return {
        "accuracy": 100.0 * int(np.sum(predicted == test_codes)) / len(test_codes),
        "fit_seconds": round(cpu[1] - cpu[0], 4),
        "predict_seconds": round(cpu[2] - cpu[1], 4),
        "fit_wall": round(wall[1] - wall[0], 4),
        "predict_wall": round(wall[2] - wall[1], 4),
        "numbers": maker.size(model),
    }


def _drawn(indices: IntArray, codes: IntArray, most: int | None, seed: int) -> IntArray:
    """At most so many of the indices, all classes in proportion."""
    if most is None or len(indices) <= most:
        return indices
    kept, _ = train_test_split(indices, train_size=most, stratify=codes[indices], random_state=seed)
    return np.sort(kept)
