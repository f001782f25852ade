"""The data sets of the paper, and `.ts` files: where series come from.

catalogue   what is published of each set: counts, licence, origin; `info`, `list_datasets`
stores      files in folders, zips and tar archives, read without unpacking to disk
blocks      rows of numbers, and blocks of rows between blank lines
originals   the donors' files of each set -> series and labels
locate      `$SLTS_DATA`, the cache, the aeon package: where the files are
loading     `load`: a set, checked against the published counts
resume      downloads over HTTP that go on where they broke off
download    `fetch`: from the UCI repository into the cache
ts_header   the header of `.ts` files
ts_format   `read_ts`: text of the UEA and UCR archives -> series and labels
ts_writer   `write_ts`: the way back

`list` is another name of `list_datasets`, so that one can write ``slts.datasets.list()``; a star
import leaves the builtin of that name alone.
"""

from __future__ import annotations

from slts.datasets.catalogue import DatasetInfo, info, list_datasets
from slts.datasets.download import fetch
from slts.datasets.loading import load
from slts.datasets.ts_format import read_ts
from slts.datasets.ts_writer import write_ts

__all__ = ["DatasetInfo", "fetch", "info", "list_datasets", "load", "read_ts", "write_ts"]

list = list_datasets
