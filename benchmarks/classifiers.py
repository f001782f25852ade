"""Fit and predict time of our classifiers against aeon's MiniRocketClassifier, in one run.

Arabic digits where `slts.datasets` finds them, else Japanese Vowels. MiniRocket needs series of
equal length: they are padded with zeros, which is not timed. Each classifier runs twice and the
second run counts, so that compilation is left out.

    python benchmarks/classifiers.py --json bench-output/classifiers.json
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path
from typing import Any

import numpy as np
from measure import describe_machine, load, usable_cores

import slts


def padded(batch: slts.SeriesBatch, steps: int) -> np.ndarray:
    """Series as (n, channels, steps), zeros at the end."""
    out = np.zeros((len(batch), batch.n_channels, steps))
    for k, x in enumerate(batch):
        out[k, :, : x.shape[1]] = x
    return out


def timed_run(make: Any, train: tuple[Any, Any], test: tuple[Any, Any]) -> dict[str, float]:
    """Seconds to fit and to predict, second of two runs, and accuracy."""
    result = {}
    for _ in range(2):
        model = make()
        begin = time.perf_counter()
        model.fit(*train)
        fitted = time.perf_counter()
        predicted = model.predict(test[0])
        result = {
            "fit": fitted - begin,
            "predict": time.perf_counter() - fitted,
            "accuracy": float(np.mean(predicted == test[1])),
        }
    return result


def main() -> None:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--n-jobs", type=int, default=usable_cores())
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    name = "arabic_digits"
    try:
        X, y = slts.datasets.load(name, "train")
    except FileNotFoundError:
        name = "japanese_vowels"
        X, y = slts.datasets.load(name, "train")
    X_test, y_test = slts.datasets.load(name, "test")
    jobs = options.n_jobs

    from aeon.classification.convolution_based import MiniRocketClassifier

    steps = int(max(X.lengths.max(), X_test.lengths.max()))
    contenders = {
        "MiniRocket (aeon)": (
            lambda: MiniRocketClassifier(n_jobs=jobs, random_state=0),
            (padded(X, steps), y),
            (padded(X_test, steps), y_test),
        ),
        "LocalSLTSClassifier": (
            lambda: slts.LocalSLTSClassifier(n_jobs=jobs, random_state=0),
            (X, y),
            (X_test, y_test),
        ),
        "SLTSClassifierCV": (
            lambda: slts.SLTSClassifierCV(100, n_jobs=jobs, random_state=0),
            (X, y),
            (X_test, y_test),
        ),
        "BBSClassifierCV": (
            lambda: slts.BBSClassifierCV(100, n_jobs=jobs, random_state=0),
            (X, y),
            (X_test, y_test),
        ),
    }
    report: dict[str, Any] = {"machine": describe_machine(), "data": name, "n_jobs": jobs}
    print(f"{name}: {len(X)} + {len(X_test)} series, {jobs} threads, seconds")
    print(f"{'classifier':<20}{'fit':>8}{'predict':>9}{'ratio':>7}{'accuracy':>10}")
    base = None
    for title, contender in contenders.items():
        row = timed_run(*contender)
        total = row["fit"] + row["predict"]
        base = base or total
        report[title] = row | {"ratio_to_minirocket": total / base, "load": load()}
        print(
            f"{title:<20}{row['fit']:>8.2f}{row['predict']:>9.2f}{total / base:>7.2f}"
            f"{row['accuracy']:>10.4f}"
        )
    if options.json:
        options.json.parent.mkdir(parents=True, exist_ok=True)
        options.json.write_text(json.dumps(report, indent=2) + "\n")


if __name__ == "__main__":
    main()
