"""Accuracy with missing values: ``python -m study.missing --markdown docs/missing.md``.

Values of training and test series are removed at random or in blocks. Each classifier is trained
on the series with gaps, and on series whose gaps were interpolated first.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

import slts
from study.markdown import Element, Grid, number, to_markdown
from study.problems import LabelledSeries, Loader, divide, load_published
from study.protocol import DATASET_TITLES, FULL, seed_of

DATASETS = (
    "japanese_vowels", "auslan", "robot_lp1", "robot_lp2", "robot_lp3", "robot_lp4", "robot_lp5",
)  # fmt: skip
SHARES = (0.1, 0.3, 0.5)
_FEWER_SPLITS = {"auslan": 2}

Batch = slts.SeriesBatch
Values = npt.NDArray[np.float64]
CLASSIFIERS: dict[str, Callable[[int], Any]] = {
    "LocalSLTS": lambda seed: slts.LocalSLTSClassifier(random_state=seed),
    "1NN of scaled channels": lambda seed: slts.OneNNClassifier(
        scale="standard", calibration_size=None, random_state=seed
    ),
}

_TEXT = """# Missing values

This page compares the accuracy of classifiers if values are missing in training and in prediction.
The user guide describes [how missing values are handled](guide.md#missing-values). This command
writes the page:

```
{command}
```

- *Random*: every value is missing with the given probability.
- *Blocks*: every channel of every series has a gap at a random position. The gap has the given
  share of the steps.

The tables show percentages of correct predictions on test series. They are means over {splits}
splits ({fewer} for Auslan; different seeds of the published split for Japanese Vowels). In every
cell, the first number is for series with gaps (`missing="ignore"`, the default of `as_series`).
The second number is for series that were interpolated first (`missing="interpolate"`)."""


def remove(values: Values, share: float, how: str, rng: np.random.Generator) -> Values:
    """Remove a share of the values of one series, shape (channels, time); one is always kept."""
    n_channels, n = values.shape
    if how == "random":
        gone = rng.random(values.shape) < share
    else:
        size = round(share * n)
        starts = rng.integers(0, n - size + 1, n_channels)[:, np.newaxis]
        gone = (np.arange(n) >= starts) & (np.arange(n) < starts + size)
    if gone.all():
        gone[rng.integers(n_channels), rng.integers(n)] = False
    return np.where(gone, np.nan, values)


def accuracies(data: LabelledSeries, name: str, split: int) -> dict[tuple[str, str, bool], float]:
    """Return percentages by method, condition, and whether gaps were interpolated first."""
    train, test = divide(data, name, split, FULL)
    everything, found = list(data.batch), {}
    conditions = [("complete", 0.0, "")] + [
        (f"{how} {share:.0%}", share, how) for how in ("random", "blocks") for share in SHARES
    ]
    for condition, share, how in conditions:
        rng = np.random.default_rng(seed_of("missing", name, split, condition))
        X = [remove(x, share, how, rng) for x in everything] if how else everything
        for filled in (False, True) if how else (False,):
            series = slts.as_series(X, missing="interpolate" if filled else "ignore")
            for method, make in CLASSIFIERS.items():
                model = make(seed_of("model", name, split)).fit(series[train], data.labels[train])
                right = model.predict(series[test]) == data.labels[test]
                found[method, condition, filled] = 100.0 * float(right.mean())
    return found


def document(
    datasets: Sequence[str], n_splits: int, command: str, loader: Loader = load_published
) -> list[Element]:
    """Measure, and build the document."""
    found: dict[str, list[dict[tuple[str, str, bool], float]]] = {}
    for name in datasets:
        data = loader(name)
        for split in range(min(n_splits, _FEWER_SPLITS.get(name, n_splits))):
            sys.stderr.write(f"{name}, split {split}\n")
            found.setdefault(name, []).append(accuracies(data, name, split))
    fewer = min(n_splits, _FEWER_SPLITS["auslan"])
    elements: list[Element] = [_TEXT.format(command=command, splits=n_splits, fewer=fewer)]
    conditions = list(dict.fromkeys(key[1] for key in next(iter(found.values()))[0]))

    def cell(names: Sequence[str], method: str, condition: str) -> str:
        """Means over splits and data sets, with gaps and interpolated."""
        return " / ".join(
            number(float(np.mean([np.mean([s[key] for s in found[name]]) for name in names])))
            for key in ((method, condition, filled) for filled in (False, True))
            if key in found[names[0]][0]
        )

    for method in CLASSIFIERS:
        groups = {DATASET_TITLES[name]: [name] for name in found} | {"mean": list(found)}
        rows = tuple(
            (title, *(cell(names, method, condition) for condition in conditions))
            for title, names in groups.items()
        )
        caption = "With gaps / interpolated first."
        elements += [f"## {method}", Grid("missing", caption, ("data set", *conditions), rows)]
    return elements


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line."""
    parser = argparse.ArgumentParser(prog="python -m study.missing", description=__doc__)
    parser.add_argument("--only", help="data sets, separated by commas")
    parser.add_argument("--splits", type=int, default=5, help="number of splits (default: 5)")
    parser.add_argument("--markdown", type=Path, required=True, help="file to write")
    options = parser.parse_args(arguments)
    datasets = DATASETS if options.only is None else tuple(options.only.split(","))
    words = [f"--splits {options.splits}", f"--markdown {options.markdown}"]
    words += [] if options.only is None else [f"--only {options.only}"]
    command = f"python -m study.missing {' '.join(words)}"
    options.markdown.write_text(to_markdown(document(datasets, options.splits, command)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
