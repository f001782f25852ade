"""The data sets of the paper, and `.ts` files.

catalogue   published facts about each data set: counts, licence, origin; `info`, `list_datasets`
loading     `load`, `fetch`: find or download the files, compare them with the published counts
originals   the published files of each data set -> series and labels
archives    files in folders, zips and tar archives, read without unpacking to disk
ts_format   `read_ts`, `write_ts`: text of the UEA and UCR archives

`list` is an alias of `list_datasets`, for ``slts.datasets.list()``. It is not in `__all__`, so that
a star import does not replace the builtin.
"""

from __future__ import annotations

from slts.datasets.catalogue import DatasetInfo, info, list_datasets
from slts.datasets.loading import fetch, load
from slts.datasets.ts_format import read_ts, write_ts

__all__ = ["DatasetInfo", "fetch", "info", "list_datasets", "load", "read_ts", "write_ts"]

list = list_datasets
