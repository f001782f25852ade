"""Tables, files and Dask collections of users: any storage becomes a `SeriesScan`.

reading           `scan_series`, `read_series`, `iter_series`: the name of a source tells its form
files             paths, folders, patterns and lists of files; one CSV file per series
text              CSV, compressed or not, and standard input
arrow             Parquet in parts; Feather; data frames
dask_collections  Dask bags and data frames, one part per partition
roles             which column is id, time, label and channel; the errors that ask for them
assembly          parts of tables: rows -> `Dataset` in batches; steps on a time grid
rows              rows in Arrow's form: kinds of columns, times as text, checks, labels

Tables need the extra ``io`` (pyarrow).
"""

from __future__ import annotations

from slts.series.dataset import Columns, Dataset, SeriesScan
from slts.tables.reading import iter_series, read_series, scan_series
from slts.tables.roles import ExpectedColumns

__all__ = [
    "Columns",
    "Dataset",
    "ExpectedColumns",
    "SeriesScan",
    "iter_series",
    "read_series",
    "scan_series",
]
