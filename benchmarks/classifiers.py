"""Fit and predict time of our classifiers and of aeon's MiniRocketClassifier, in one run.

Arabic digits where `slts.datasets` finds them, else Japanese Vowels. MiniRocket needs series of
equal length: padding with zeros is not timed. Each classifier runs twice and the second run counts,
which leaves compilation out.

    python benchmarks/classifiers.py --json bench-output/classifiers.json
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path
from typing import Any

import numpy as np
from inputs import padded, paper_data
from measure import describe_machine, load, usable_cores, write_json

import slts


def timed_run(model: Any, train: tuple[Any, Any], test: tuple[Any, Any]) -> dict[str, float]:
    """Return accuracy and the seconds of fit and predict, second of two runs."""
    for _ in range(2):
        begin = time.perf_counter()
        model.fit(*train)
        fitted = time.perf_counter()
        predicted = model.predict(test[0])
        end = time.perf_counter()
    accuracy = float(np.mean(predicted == test[1]))
    return {"fit": fitted - begin, "predict": end - fitted, "accuracy": accuracy}


def main() -> None:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--n-jobs", type=int, default=usable_cores())
    parser.add_argument("--json", type=Path, help="write the results to this file")
    options = parser.parse_args()
    name, train, test = paper_data()
    jobs = options.n_jobs

    from aeon.classification.convolution_based import MiniRocketClassifier

    steps = int(max(train[0].lengths.max(), test[0].lengths.max()))
    equal_length = [(padded(X, steps), y) for X, y in (train, test)]
    settings = {"n_jobs": jobs, "random_state": 0}
    contenders = {
        "MiniRocket (aeon)": (MiniRocketClassifier(**settings), *equal_length),
        "LocalSLTSClassifier": (slts.LocalSLTSClassifier(**settings), train, test),
        "SLTSClassifierCV": (slts.SLTSClassifierCV(100, **settings), train, test),
        "BBSClassifierCV": (slts.BBSClassifierCV(100, **settings), train, test),
    }
    report: dict[str, Any] = {"machine": describe_machine(), "data": name, "n_jobs": jobs}
    print(f"{name}: {len(train[0])} + {len(test[0])} series, {jobs} threads, seconds")
    print(f"{'classifier':<20}{'fit':>8}{'predict':>9}{'ratio':>7}{'accuracy':>10}")
    base = None
    for title, contender in contenders.items():
        row = timed_run(*contender)
        total = row["fit"] + row["predict"]
        base = base or total
        report[title] = row | {"ratio_to_minirocket": total / base, "load": load()}
        print(
            f"{title:<20}{row['fit']:>8.2f}{row['predict']:>9.2f}{total / base:>7.2f}"
            f"{row['accuracy']:>10.4f}",
            flush=True,
        )
    write_json(options.json, report)


if __name__ == "__main__":
    main()
