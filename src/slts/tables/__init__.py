"""Tables, files and Dask collections of users: any storage becomes series in parts.

reading           `scan_series`, `read_series`, `iter_series`: the name of a source tells its form
roles             which column is id, time, label and channel; the errors that ask for them
columns           rows in Arrow's form: their place, the kinds of their columns
times             times as text; the regular time grid
assembly          rows -> `Dataset`: long, wide and list form
scan              `SeriesScan`, and parts of a table that are read in batches
text              CSV, compressed or not, and standard input
arrow             Parquet in parts; Feather; data frames
paths             suffixes, patterns and lists of files
folders           one CSV file per series; labels in a file, or a folder per class
arrays            `.npz`, `.ts` and published data sets, which are read at once
dask_collections  Dask bags and data frames, one part per partition

Tables need the extra ``io`` (pyarrow).
"""

from __future__ import annotations

from slts.series.dataset import Columns, Dataset
from slts.tables.reading import iter_series, read_series, scan_series
from slts.tables.roles import ExpectedColumns
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
