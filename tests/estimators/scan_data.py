"""Labelled series, and the same as tables and Parquet files."""

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

CHANNELS = ("x", "y", "z")


def draw(rng, n_series, *, n_classes=3, noise=1.0):
    """Series of random length around curves of different frequency, and labels."""
    labels = np.array(["low", "middle", "high"])[rng.integers(n_classes, size=n_series)]
    frequency = {"low": 1.0, "middle": 2.0, "high": 3.0}
    series = []
    for label in labels:
        steps = np.linspace(0.0, 1.0, rng.integers(6, 15))
        curve = np.sin(2 * np.pi * frequency[label] * steps + np.arange(3)[:, np.newaxis])
        series.append(curve + noise * rng.normal(size=(3, len(steps))))
    return series, labels


def long_table(series, labels, ids=None):
    """One row per step; series are numbered unless they have identifiers."""
    lengths = [x.shape[1] for x in series]
    values = np.concatenate(series, axis=1)
    return pa.table(
        {
            "id": np.repeat(np.arange(len(series)) if ids is None else ids, lengths),
            "t": np.concatenate([np.arange(n) for n in lengths]),
            "label": np.repeat(labels, lengths),
            **dict(zip(CHANNELS, values, strict=True)),
        }
    )


def write_long(path, series, labels, *, first=0, rows=97):
    """One row per step; row groups end anywhere."""
    ids = np.arange(first, first + len(series))
    pq.write_table(long_table(series, labels, ids), path, row_group_size=rows)
    return path


def write_lists(path, series, labels, *, rows=17):
    """One row per series, a list for each channel; no identifiers."""
    columns = {name: [x[c].tolist() for x in series] for c, name in enumerate(CHANNELS)}
    pq.write_table(pa.table({"label": labels, **columns}), path, row_group_size=rows)
    return path
