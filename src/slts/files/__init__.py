"""Users' files read as series: whole, or batch by batch in constant memory.

dataset      `Dataset`, what is read; `Columns`, which column was taken for what
opening      files, compressed or not, and standard input
columns      which column is id, time, label and channel: told, or guessed from names and values
chunks       pieces of a table, checked row by row; errors name the file and the line
csv_tables   CSV in long form -> chunks
arrow_tables Parquet and Arrow files -> chunks
sources      which Parquet files are one table: those of a folder, a pattern or a list
long_form    chunks of rows, one row per step -> series, joined where a chunk ends inside one
list_form    chunks of rows, one row per series and a list per channel -> series
arrays       `.npz`
folders      a folder with one CSV per series and a file of labels
forms        the form of the data chosen by the name
reading      `read_series` and `iter_series`
row_groups   Parquet cut between row groups into parts that can be read apart
dask_collections  bags and data frames of dask, a part per partition
scan         `scan_series`: nothing read yet, everything as often as needed

CSV, Parquet and Arrow need the extra ``io`` (pyarrow, narwhals).
"""

from __future__ import annotations

from slts.files.dask_collections import is_collection
from slts.files.dataset import Columns, Dataset
from slts.files.reading import iter_series, read_series
from slts.files.scan import SeriesScan, scan_series

__all__ = [
    "Columns",
    "Dataset",
    "SeriesScan",
    "is_collection",
    "is_path_like",
    "iter_series",
    "read_series",
    "scan_series",
]


def is_path_like(X: object) -> bool:
    """Whether X is a path or a list of paths."""
    import os

    from slts.files.sources import is_list_of_paths

    return isinstance(X, str | os.PathLike) or is_list_of_paths(X)
