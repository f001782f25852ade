"""Readers of users' data: any storage becomes series in parts.

scan              `SeriesScan`: series in parts; tables in long, list or wide form, read in batches
reading           `scan_series`, `read_series`, `iter_series`: the form of the data is chosen here
paths             suffixes, patterns, and which Parquet files form one table
text_files        compressed text, standard input, and CSV as chunks
arrow_files       Parquet and Arrow files as record batches
parquet_parts     Parquet cut into parts that can be read independently
dask_collections  Dask bags and data frames, one part per partition
folders           a folder with one CSV file per series; labels in a file, or a folder per class
arrays            `.npz`, `.ts` and published data sets, which are read at once

CSV, Parquet and Arrow need the extra ``io`` (pyarrow). This package is independent of learning.
The roles of columns are found in `slts.columns`.
"""

from __future__ import annotations

from slts.columns import Columns
from slts.files.reading import iter_series, read_series, scan_series
from slts.files.scan import SeriesScan
from slts.series.dataset import Dataset

__all__ = [
    "Columns",
    "Dataset",
    "SeriesScan",
    "iter_series",
    "read_series",
    "scan_series",
]
