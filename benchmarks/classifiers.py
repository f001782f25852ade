"""Fit and predict time of our classifiers and of aeon's MiniRocketClassifier, in one run.

Arabic digits if `$SLTS_DATA` has them, else Japanese Vowels; or data of many classes: the
95 signs of Auslan, or 50 synthetic classes. MiniRocket needs series of equal length: padding with
zeros is not timed. Each classifier first runs on some of the series, which leaves compilation out.
"processor" is the time of all threads in fit and predict, which depends little on other load.

    python benchmarks/classifiers.py --json bench-output/classifiers.json
    python benchmarks/classifiers.py --data auslan synthetic --n-jobs 1
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path
from typing import Any

import numpy as np
from inputs import padded, paper_data, waves
from measure import describe_machine, load, usable_cores, write_json

import slts
from study import originals

_DATA = ("paper", "auslan", "synthetic")
_SIGNS = 95
# Classes, and series of each, in the run that is not timed, and of the synthetic data.
_WARM, _SYNTHETIC = (10, 12), (50, 40)


def data(name: str) -> tuple[str, tuple[Any, Any], tuple[Any, Any]]:
    """Return name, training and test data."""
    if name == "paper":
        return paper_data()
    if name == "synthetic":
        n_classes, per_class = _SYNTHETIC
        sizes = {"classes": n_classes, "channels": 6, "steps": 60}
        sets = [waves(np.random.default_rng(k), sizes, n_classes * per_class) for k in (1, 2)]
        train, test = [(slts.as_series(X), y) for X, y in sets]
        return f"{n_classes} synthetic classes", train, test
    X, y = originals.load(name, n_signs=_SIGNS)
    # Every second series of a class.
    place = np.zeros(len(y), dtype=int)
    for c in np.unique(y):
        place[y == c] = np.arange(int(np.sum(y == c)))
    first, second = np.flatnonzero(place % 2 == 0), np.flatnonzero(place % 2 == 1)
    return name, (X[first], y[first]), (X[second], y[second])


def timed_run(model: Any, train: tuple[Any, Any], test: tuple[Any, Any]) -> dict[str, float]:
    """Return accuracy, the seconds of fit and predict, and those of the processor."""
    X, y = train
    some = np.concatenate([np.flatnonzero(y == c)[: _WARM[1]] for c in np.unique(y)[: _WARM[0]]])
    model.fit(X[some], y[some]).predict(X[some])
    begin, used = time.perf_counter(), time.process_time()
    model.fit(*train)
    fitted = time.perf_counter()
    predicted = model.predict(test[0])
    end, used = time.perf_counter(), time.process_time() - used
    accuracy = float(np.mean(predicted == test[1]))
    return {
        "fit": fitted - begin, "predict": end - fitted, "processor": used, "accuracy": accuracy
    }  # fmt: skip


def compare(name: str, jobs: int) -> dict[str, Any]:
    """Run all classifiers on one data set; print a line for each."""
    from aeon.classification.convolution_based import MiniRocketClassifier

    title, train, test = data(name)
    steps = int(max(train[0].lengths.max(), test[0].lengths.max()))
    equal_length = [(padded(X, steps), y) for X, y in (train, test)]
    settings: dict[str, Any] = {"n_jobs": jobs, "random_state": 0}
    contenders = {
        "MiniRocket (aeon)": (MiniRocketClassifier(**settings), *equal_length),
        "LocalSLTSClassifier": (slts.LocalSLTSClassifier(**settings), train, test),
        "SLTSClassifierCV": (slts.SLTSClassifierCV(100, **settings), train, test),
        "BBSClassifierCV": (slts.BBSClassifierCV(100, **settings), train, test),
    }
    print(f"{title}: {len(train[0])} + {len(test[0])} series, {jobs} threads, seconds")
    print(
        f"{'classifier':<20}{'fit':>8}{'predict':>9}{'processor':>11}{'ratio':>7}{'accuracy':>10}"
    )
    base, report = None, dict[str, Any]()
    for title, contender in contenders.items():
        row = timed_run(*contender)
        base = base or row["processor"]
        report[title] = row | {"ratio_to_minirocket": row["processor"] / base, "load": load()}
        print(
            f"{title:<20}{row['fit']:>8.2f}{row['predict']:>9.2f}{row['processor']:>11.2f}"
            f"{row['processor'] / base:>7.2f}{row['accuracy']:>10.4f}",
            flush=True,
        )
    return report


def main() -> None:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", nargs="+", default=["paper"], choices=_DATA)
    parser.add_argument("--n-jobs", type=int, default=usable_cores())
    parser.add_argument("--json", type=Path, help="write the results to this file")
    options = parser.parse_args()
    report: dict[str, Any] = {"machine": describe_machine(), "n_jobs": options.n_jobs}
    for name in options.data:
        report[name] = compare(name, options.n_jobs)
    write_json(options.json, report)


if __name__ == "__main__":
    main()
