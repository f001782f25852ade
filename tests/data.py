"""Small labelled problems that many tests share, and the same series as tables and files.

Series are lists of (channels, steps) arrays, labels are codes from 0; `NAMES[codes]` are text.
"""

import os
import subprocess
import sys
from dataclasses import replace

import numpy as np

import slts
from slts.series.dataset import Dataset, SeriesScan
from slts.solvers import solve_metric_path, solve_separator_path

CHANNELS = ("x", "y", "z")
NAMES = np.array(["low", "middle", "high"])


def waves(n=40, *, n_classes=2, channels=3, lengths=(6, 15), noise=0.5, gaps=0.0, seed=0):
    """Sines with as many periods as the class has; `gaps` is the share of missing values.

    Classes come in turn; lengths are from the first of `lengths` to one less than the second.
    """
    rng = np.random.default_rng(seed)
    codes, phases = np.arange(n) % n_classes, np.arange(channels)[:, np.newaxis]
    series = []
    for code in codes:
        time = np.linspace(0.0, 1.0, rng.integers(*lengths))
        x = np.sin(2 * np.pi * (code + 1) * time + phases)
        series.append(x + noise * rng.normal(size=x.shape))
    return with_gaps(series, gaps, seed), codes


def clusters(n=40, *, n_classes=2, channels=3, lengths=(5, 13), noise=0.6, seed=0):
    """Series whose rows scatter about a direction of their class; classes come in turn."""
    rng = np.random.default_rng(seed)
    angles = 2 * np.pi * np.arange(n_classes) / n_classes
    centres = np.zeros((n_classes, channels, 1))
    centres[:, :2, 0] = np.column_stack([np.cos(angles), np.sin(angles)])[:, :channels]
    codes = np.arange(n) % n_classes
    shapes = [(channels, rng.integers(*lengths)) for _ in codes]
    scatter = [noise * rng.normal(size=shape) for shape in shapes]
    return [centres[c] + x for c, x in zip(codes, scatter, strict=True)], codes


def with_gaps(series, share, seed=0):
    """Replace a share of the values by NaN; one value of each series stays."""
    if not share:
        return series
    rng, gappy = np.random.default_rng([seed, 1]), []
    for x in series:
        missing = rng.random(x.shape) < share
        missing[0, -1] = False
        gappy.append(np.where(missing, np.nan, x))
    return gappy


def with_copies(series, labels, every=15):
    """Let every such series occur twice, with its label: each replaces the next one."""
    series, labels = list(series), labels.copy()
    for k in range(0, len(series) - 1, every):
        series[k + 1], labels[k + 1] = series[k], labels[k]
    return series, labels


def shuffled(series, labels, seed=1):
    """The same series and labels in another order."""
    order = np.random.default_rng(seed).permutation(len(labels))
    return [series[i] for i in order], labels[order]


def run_python(program, *arguments, **environment):
    """Run a program in a process of its own, and return what it prints."""
    command = [sys.executable, "-c", program, *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, env=os.environ | environment)
    assert done.returncode == 0, done.stderr
    return done.stdout


class ScanOfRows(SeriesScan):
    """A scan whose series are assembled from rows, so that identifiers must not be repeated."""

    def __init__(self, name, parts):
        super().__init__(name, parts=parts)
        self.requires_unique_ids = True


def scan_of(*parts, kind=SeriesScan):
    """A scan of parts in memory: pairs (series, labels), or datasets."""
    datasets = [
        p if isinstance(p, Dataset) else Dataset(slts.as_series(p[0]), np.asarray(p[1]))
        for p in parts
    ]
    named = [replace(d, source=d.source or f"part {k}") for k, d in enumerate(datasets)]
    return kind("scan", parts=named)


def write_ts(path, X, y):
    """Write series and labels as a `.ts` file."""
    lines = ["@classLabel true " + " ".join(map(str, np.unique(y))), "@data"]
    for x, label in zip(X, y, strict=True):
        channels = (",".join(map(repr, channel)) for channel in np.asarray(x).tolist())
        lines.append(":".join((*channels, str(label))))
    path.write_text("\n".join(lines) + "\n")


def long_table(series, labels, ids=None, **columns):
    """One row per step; series are numbered unless they have identifiers.

    `columns` have one value per series.
    """
    import pyarrow as pa

    lengths = [x.shape[1] for x in series]
    values = np.concatenate(series, axis=1)
    per_series = {"id": np.arange(len(series)) if ids is None else ids, "label": labels, **columns}
    repeated = {name: np.repeat(column, lengths) for name, column in per_series.items()}
    steps = np.concatenate([np.arange(n) for n in lengths])
    return pa.table(repeated | {"t": steps} | dict(zip(CHANNELS, values, strict=False)))


def write_long(path, series, labels, *, first=0, rows=97):
    """One row per step; row groups end anywhere."""
    import pyarrow.parquet as pq

    ids = np.arange(first, first + len(series))
    pq.write_table(long_table(series, labels, ids), path, row_group_size=rows)
    return path


def write_lists(path, series, labels, *, rows=17):
    """One row per series, a list for each channel; no identifiers."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    channels = dict(zip(CHANNELS, ([x[c].tolist() for x in series] for c in range(3)), strict=True))
    pq.write_table(pa.table({"label": labels, **channels}), path, row_group_size=rows)
    return path


def solve_metric(Z, labels, *, gamma, lam, **options):
    return solve_metric_path(Z, labels, pairs=[(gamma, lam)], **options)[0]


def solve_separator(K, labels, *, gamma, **options):
    return solve_separator_path(K, labels, gammas=[gamma], **options)[0]
