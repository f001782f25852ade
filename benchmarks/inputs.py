"""Data of the benchmarks: the paper's, and drawn series of any number."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np

import slts

# The benchmarks are scripts, which find only modules of their own folder.
sys.path.append(str(Path(__file__).parents[1]))

from study import originals

N_CLASSES = 5
_SERIES_PER_WRITE, _ROWS_PER_GROUP = 5_000, 150_001
# Sine waves of a synthetic class.
_FREQUENCIES = 4


def paper_data() -> tuple[str, tuple[slts.SeriesBatch, Any], tuple[slts.SeriesBatch, Any]]:
    """Return name, training and test data: Arabic digits, or Japanese Vowels without them."""
    for name in ("arabic_digits", "japanese_vowels"):
        try:
            return name, originals.load(name, "train"), originals.load(name, "test")
        except FileNotFoundError:
            continue
    raise SystemExit("Set SLTS_DATA to a folder with the data, or install aeon.")


def padded(batch: slts.SeriesBatch, steps: int) -> np.ndarray:
    """Series as (n, channels, steps), zeros at the end."""
    out = np.zeros((len(batch), batch.n_channels, steps))
    for k, x in enumerate(batch):
        out[k, :, : x.shape[1]] = x
    return out


def draw(
    rng: np.random.Generator, count: int, *, n_channels: int = 6, longest: int = 60
) -> tuple[slts.SeriesBatch, np.ndarray]:
    """Draw series and labels: noisy curves, whose frequency depends on the class."""
    labels = rng.integers(N_CLASSES, size=count)
    lengths = rng.integers(longest // 3, longest + 1, size=count)
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    step = np.arange(offsets[-1]) - np.repeat(offsets[:-1], lengths)
    angle = 2 * np.pi * step * np.repeat((1 + labels) / (lengths - 1), lengths)
    curves = np.sin(angle[:, np.newaxis] + np.arange(n_channels))
    return slts.SeriesBatch(curves + 0.5 * rng.normal(size=curves.shape), offsets), labels


def waves(rng: np.random.Generator, sizes: dict[str, int], count: int) -> tuple[Any, Any]:
    """Draw series (count, channels, steps) and labels: each class has its waves, and noise.

    The waves of a class depend on its number only.
    """
    shape = sizes["classes"], sizes["channels"], _FREQUENCIES
    amplitudes = np.random.default_rng(0).normal(size=shape)
    labels = np.arange(count) % sizes["classes"]
    time = np.linspace(0.0, 2 * np.pi, sizes["steps"])
    basis = np.sin(np.outer(np.arange(1, _FREQUENCIES + 1), time))
    X = rng.normal(size=(count, sizes["channels"], sizes["steps"]))
    for c, curve in enumerate(amplitudes @ basis):
        X[labels == c] += curve
    return X, labels


def write_parquet(path: Path, count: int, *, seed: int = 0) -> Path:
    """Write drawn series in long form, unless the file exists; row groups cut through series."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    if path.exists():
        return path
    path.parent.mkdir(parents=True, exist_ok=True)
    rng, unfinished, writer = np.random.default_rng(seed), path.with_suffix(".part"), None
    for start in range(0, count, _SERIES_PER_WRITE):
        series, labels = draw(rng, min(_SERIES_PER_WRITE, count - start))
        lengths = series.lengths
        table = pa.table(
            {
                "series": np.repeat(np.arange(start, start + len(series)), lengths),
                "t": np.arange(series.n_steps) - np.repeat(series.offsets[:-1], lengths),
                "label": np.repeat(labels, lengths),
                **{f"c{c}": column for c, column in enumerate(series.values.T)},
            }
        )
        writer = writer or pq.ParquetWriter(unfinished, table.schema)
        writer.write_table(table, row_group_size=_ROWS_PER_GROUP)
    if writer is not None:
        writer.close()
    return unfinished.rename(path)


def assert_same_model(one: slts.LocalSLTSClassifier, other: slts.LocalSLTSClassifier) -> None:
    """Check that two models have the same landmarks, and objectives within 1e-6."""
    np.testing.assert_array_equal(one.landmark_indices_, other.landmark_indices_)
    for a, b in zip(one.reports_, other.reports_, strict=True):
        np.testing.assert_allclose(a.objective, b.objective, rtol=1e-6, atol=1e-6)
