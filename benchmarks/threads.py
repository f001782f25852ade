"""Fit and predict time of the classifiers by threads, and on a GPU, in one run.

Arabic digits if `$SLTS_DATA` has them, else Japanese Vowels. Each classifier first runs on
some of the series, which leaves compilation out. Every run must give the labels of the first.

    python benchmarks/threads.py --threads 1 4 16 --gpu
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path
from typing import Any

import numpy as np
from inputs import paper_data
from measure import describe_machine, load, write_json

import slts

CLASSIFIERS: dict[str, tuple[type[Any], dict[str, Any]]] = {
    "LocalSLTSClassifier()": (slts.LocalSLTSClassifier, {}),
    "SLTSClassifier()": (slts.SLTSClassifier, {}),
    "SLTSClassifierCV(cv=0.3)": (slts.SLTSClassifierCV, {"cv": 0.3}),
}
# The untimed run uses every third series: those of Arabic digits are more than the local classifier
# takes as anchors, so that it takes the same steps.
_WARM = 3


def main() -> None:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--gpu", action="store_true", help="then once more with device='cuda'")
    parser.add_argument("--json", type=Path, help="write the results to this file")
    options = parser.parse_args()
    name, (X, y), (X_test, y_test) = paper_data()
    runs = [("cpu", jobs) for jobs in options.threads]
    if options.gpu:
        runs.append(("cuda", options.threads[-1]))
    report: dict[str, Any] = {"machine": describe_machine(), "data": name}
    print(f"{name}: {len(X)} + {len(X_test)} series, seconds")
    print(f"{'classifier':<26}{'device':<7}{'threads':>7}{'fit':>8}{'predict':>9}{'accuracy':>10}")
    for title, (kind, settings) in CLASSIFIERS.items():
        first = None
        for device, jobs in runs:
            model = kind(**settings, device=device, n_jobs=jobs, random_state=0)
            model.fit(X[::_WARM], y[::_WARM]).predict(X_test[::_WARM])
            begin = time.perf_counter()
            model.fit(X, y)
            fitted = time.perf_counter()
            labels = model.predict(X_test)
            end = time.perf_counter()
            first = labels if first is None else first
            if not np.array_equal(labels, first):
                raise SystemExit(f"{title}: {device} with {jobs} threads gives other labels")
            accuracy = float(np.mean(labels == y_test))
            row = {"fit": fitted - begin, "predict": end - fitted, "accuracy": accuracy}
            report[f"{title}, {device}, {jobs}"] = row | {"load": load()}
            print(
                f"{title:<26}{device:<7}{jobs:>7}{row['fit']:>8.2f}{row['predict']:>9.2f}"
                f"{accuracy:>10.4f}",
                flush=True,
            )
    write_json(options.json, report)


if __name__ == "__main__":
    main()
