"""Tables, files and Dask collections of users: any storage becomes series in parts.

reading           `scan_series`, `read_series`, `iter_series`: the name of a source tells its form
files             paths, folders, patterns and lists of files; one CSV file per series
text              CSV, compressed or not, and standard input
arrow             Parquet in parts; Feather; data frames
dask_collections  Dask bags and data frames, one part per partition
roles             which column is id, time, label and channel; the errors that ask for them
scan              `SeriesScan`, and parts of a table that are read in batches
assembly          rows -> `Dataset`: long, wide and list form
columns           what is said about columns; rows in Arrow's form, kinds, and times on a grid

Tables need the extra ``io`` (pyarrow).
"""

from __future__ import annotations

from slts.series.dataset import Columns, Dataset
from slts.tables.columns import ExpectedColumns
from slts.tables.reading import iter_series, read_series, scan_series
from slts.tables.scan import SeriesScan

__all__ = [
    "Columns",
    "Dataset",
    "ExpectedColumns",
    "SeriesScan",
    "iter_series",
    "read_series",
    "scan_series",
]
