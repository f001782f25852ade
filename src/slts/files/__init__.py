"""Users' files read as series: whole, or batch by batch in constant memory.

dataset      `Dataset`, what is read; `Columns`, which column was taken for what
opening      files, compressed or not, and standard input
columns      which column is id, time, label and channel: told, or guessed from names and values
chunks       pieces of a table, checked row by row; errors name the file and the line
csv_tables   CSV in long form -> chunks
arrow_tables Parquet and Arrow files, and folders of them -> chunks
long_form    chunks of rows, one row per step -> series, joined where a chunk ends inside one
list_form    chunks of rows, one row per series and a list per channel -> series
arrays       `.npz`
folders      a folder with one CSV per series and a file of labels
reading      `read_series` and `iter_series`: the form chosen by the name

CSV, Parquet and Arrow need the extra ``io`` (pyarrow, narwhals).
"""

from __future__ import annotations

from slts.files.dataset import Columns, Dataset
from slts.files.reading import iter_series, read_series

__all__ = ["Columns", "Dataset", "iter_series", "read_series"]
