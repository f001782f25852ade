"""Batches of multivariate series of different lengths: the only form of data in the rest of slts.

batch          `SeriesBatch`, the container: values (steps x channels) and offsets; checks of values
convert        `as_series`, the public entry: arrays, lists and data frames -> `SeriesBatch`
values         missing values, interpolation; unit rows, and maps of rows that a metric defines
dataset        `Dataset`, a batch with labels, identifiers and groups; `SeriesScan`, series in parts
keys           digests and keys of series, digests of identifiers; distinct series

Data are checked once, in `as_series` or in the constructor of `SeriesBatch`. Code that receives a
batch can rely on float64 values that are finite or, if missing, NaN, and on at least one value in
every series.
"""

from __future__ import annotations

from slts.series.batch import SeriesBatch
from slts.series.convert import as_series
from slts.series.values import normalize_rows

__all__ = ["SeriesBatch", "as_series", "normalize_rows"]
