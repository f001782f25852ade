"""The role of each column of a table: files, data frames and commands find it here.

roles        `Columns`: which column is id, time, label and channel; `RequestedColumns` and
             `ExpectedColumns`: what the caller and a model say
resolve      `resolve_columns`: the roles, requested or guessed from names and the first rows
identifiers  which column identifies the series, or whether every row is one
times        which column is the time: by name, or because it increases in every series
facts        what names and rows show about columns: distinct values, blocks, order within series
rows         chunks of Arrow tables, kinds of columns, times as text

Reading needs the extra ``io`` (pyarrow).
"""

from __future__ import annotations

from slts.columns.resolve import resolve_columns
from slts.columns.roles import Columns, ExpectedColumns, RequestedColumns

__all__ = ["Columns", "ExpectedColumns", "RequestedColumns", "resolve_columns"]
