"""Ragged batches of multivariate series: the one form of data the rest of slts sees.

checks    what may be in a series: real, finite numbers; the messages when it is not
flatten   lists and arrays of series -> flat values + offsets
batch     `SeriesBatch`, the container: values (steps x channels) and offsets
preview   the HTML table that notebooks show for a batch
frames    pandas, polars and pyarrow frames -> `SeriesBatch`
convert   `as_series`, the public edge: anything above -> `SeriesBatch`
rows      `normalize_rows`: unit L2 norm for every step; `append_constant`: keeps the amplitude
channels  maps of the channels fitted on training series: scales, levels, components, differences
stream    series too many for memory: what a source of them looks like

Data are checked once, in `as_series` or in the constructor of `SeriesBatch`; code that receives a
batch may rely on finite float64 values and on every series having at least one step.
"""

from __future__ import annotations

from slts.series.batch import SeriesBatch
from slts.series.convert import as_series
from slts.series.rows import append_constant, normalize_rows, rms_row_norm

__all__ = ["SeriesBatch", "append_constant", "as_series", "normalize_rows", "rms_row_norm"]
