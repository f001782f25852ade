"""What people wait for: one prediction, a batch, one explanation, an import, the first command.

`LocalSLTSClassifier` with its defaults beside aeon's MiniRocketClassifier, on one thread: Japanese
Vowels, and univariate data that come with aeon. Contenders take turns, and the best turn counts,
in seconds of the processor: other work on the machine counts less than on the clock.
MiniRocket needs series of equal length: padding with zeros is not timed. Before anything is timed,
the script asserts that a series has the same decision values alone, in a batch and explained.

    python benchmarks/latency.py --json bench-output/latency.json
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
from inputs import padded
from measure import Call, describe_machine, load, write_json
from threadpoolctl import threadpool_limits

import slts

BATCH = 370
UNIVARIATE = ("GunPoint", "ItalyPowerDemand", "ArrowHead")
_PROGRAMS = {
    "import numpy": "import numpy",
    "import sklearn": "import sklearn",
    "import slts": "import slts",
    "LocalSLTSClassifier": "from slts import LocalSLTSClassifier",
    "slts --version": "from slts.cli import main; main(['--version'])",
    "slts --help": "from slts.cli import main; main(['--help'])",
}


def data(name: str) -> tuple[tuple[Any, Any], tuple[Any, Any]]:
    """Return training and test series with labels."""
    if name == "japanese_vowels":
        return slts.datasets.load(name, "train"), slts.datasets.load(name, "test")
    from aeon.datasets import load_classification

    parts = []
    for split in ("train", "test"):
        X, y = load_classification(name, split=split)
        parts.append((slts.as_series(X), y))
    return parts[0], parts[1]


def assert_agreement(model: slts.LocalSLTSClassifier, batch: slts.SeriesBatch) -> None:
    """Assert that a series has the same decision values alone, in a batch and explained."""
    expected = model.decision_function(batch)
    largest = np.abs(expected).max()
    for k in range(0, len(batch), 37):
        x = batch[k : k + 1]
        for alone in (model.decision_function(x)[0], slts.explain(model, x).decision):
            difference = np.abs(np.squeeze(alone) - expected[k]).max()
            assert difference < 1e-9 * largest, "decision values differ, so nothing is timed"


def cpu_seconds(calls: dict[str, Call], repeats: int, loops: int) -> dict[str, float]:
    """Best seconds of the processor for each call, over alternating turns of some calls each."""
    best = dict.fromkeys(calls, np.inf)
    for _ in range(repeats + 1):
        for name, call in calls.items():
            begin = time.process_time()
            for _ in range(loops):
                call()
            best[name] = min(best[name], (time.process_time() - begin) / loops)
    return best


def measure(name: str, repeats: int) -> dict[str, Any]:
    """Seconds of predictions and of an explanation, and their ratios."""
    from aeon.classification.convolution_based import MiniRocketClassifier

    (X, y), (new, truth) = data(name)
    model = slts.LocalSLTSClassifier(random_state=0).fit(X, y)
    batch = new[np.arange(BATCH) % len(new)]
    assert_agreement(model, batch)
    steps = int(max(X.lengths.max(), new.lengths.max()))
    peer = MiniRocketClassifier(random_state=0, n_jobs=1).fit(padded(X, steps), y)
    equal = padded(batch, steps)
    one, series = equal[:1], [np.ascontiguousarray(batch[0])]
    single = {
        "slts": lambda: model.predict(series),
        "MiniRocket": lambda: peer.predict(one),
        "explain": lambda: slts.explain(model, series[0]),
    }
    several = {"slts": lambda: model.predict(batch), "MiniRocket": lambda: peer.predict(equal)}
    times, batches = cpu_seconds(single, repeats, 20), cpu_seconds(several, repeats, 1)
    accuracy = [
        float(np.mean(classifier.predict(test) == truth))
        for classifier, test in ((model, new), (peer, padded(new, steps)))
    ]
    return {
        "one": times,
        "batch": batches,
        "accuracy": accuracy,
        "one_to_peer": times["slts"] / times["MiniRocket"],
        "batch_to_peer": batches["slts"] / batches["MiniRocket"],
        "explain_to_one": times["explain"] / times["slts"],
        "load": load(),
    }


def start_times(repeats: int) -> dict[str, float]:
    """Seconds of the processor in which a fresh Python imports something or runs a command."""
    best = dict.fromkeys(_PROGRAMS, np.inf)
    for _ in range(repeats):
        for name, program in _PROGRAMS.items():
            before = os.times()
            subprocess.run([sys.executable, "-c", program], check=True, stdout=subprocess.DEVNULL)
            after = os.times()
            spent = after.children_user + after.children_system
            best[name] = min(best[name], spent - before.children_user - before.children_system)
    return best


def main() -> None:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=15)
    parser.add_argument("--json", type=Path, help="write the results to this file")
    options = parser.parse_args()
    report: dict[str, Any] = {"machine": describe_machine(), "n_jobs": 1}
    print(f"milliseconds: one series, {BATCH} series, one explanation")
    print(f"{'':18}{'one':>8}{'peer':>8}{'ratio':>7}{'batch':>9}{'peer':>8}{'ratio':>7}", end="")
    print(f"{'explain':>9}{'ratio':>7}")
    for name in ("japanese_vowels", *UNIVARIATE):
        # Threads of BLAS that wait for work after a turn would count in the next one.
        with threadpool_limits(1):
            row = report[name] = measure(name, options.repeats)
        one, batch = row["one"], row["batch"]
        print(
            f"{name:18}{1e3 * one['slts']:>8.2f}{1e3 * one['MiniRocket']:>8.2f}"
            f"{row['one_to_peer']:>7.2f}{1e3 * batch['slts']:>9.1f}"
            f"{1e3 * batch['MiniRocket']:>8.1f}{row['batch_to_peer']:>7.2f}"
            f"{1e3 * one['explain']:>9.2f}{row['explain_to_one']:>7.2f}",
            flush=True,
        )
    report["start"] = start_times(max(3, options.repeats // 3))
    for name, seconds in report["start"].items():
        ratio = seconds / report["start"]["import numpy"]
        print(f"{name:26}{seconds:>8.3f} s{ratio:>7.2f} of import numpy")
    write_json(options.json, report)


if __name__ == "__main__":
    main()
