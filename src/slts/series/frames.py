"""Data frames in long form: `as_series` reads their columns as series."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from slts._typing import AnyArray, Missing
from slts.columns import RequestedColumns, resolve_columns
from slts.columns.rows import NUMERIC, SAMPLE_ROWS, Chunk, arrow_table, kind_of
from slts.errors import DataError, warn
from slts.series.batch import SeriesBatch, check_values
from slts.series.dataset import checked
from slts.series.long_tables import assemble, checked_rows

# Name for messages.
_FRAME = "the data frame"


def read_frame(
    X: Any, requested: RequestedColumns, missing: Missing
) -> tuple[SeriesBatch, AnyArray | None]:
    """Read a long frame; warn if roles were guessed that are not clear."""
    if getattr(getattr(X, "index", None), "nlevels", 1) > 1:
        raise DataError(
            "X has an index of several levels, such as (instance, time): use X.reset_index(), and "
            "name its columns with id= and time="
        )
    table = arrow_table(X, _FRAME)
    if not table.num_rows:
        raise DataError("X has 0 sample(s) (rows) while a minimum of 1 is required.")
    columns = resolve_columns(Chunk(table.slice(0, SAMPLE_ROWS), _FRAME), requested)
    if not columns.long:
        raise DataError(
            "every row of the data frame is one series: use slts.scan_series(X), or for one "
            "channel pass the values, X[columns].to_numpy()"
        )
    if requested.label is None and columns.label is not None:
        ignored = (*columns.ignored, columns.label)
        columns = replace(columns, label=None, ignored=ignored, guessed=columns.guessed - {"label"})
    numbers = (n for n in columns.ignored if kind_of(table.schema.field(n).type) in NUMERIC)
    if columns.guessed - {"channels"} or ("channels" in columns.guessed and any(numbers)):
        warn(
            f"the columns of the data frame were guessed: {columns}. Name them with id=, time=, "
            f"label= and channels= if this is wrong, or to silence this warning"
        )
    rows = checked_rows(Chunk(table, _FRAME), columns, labels=True).rows
    dataset = assemble(rows, columns, _FRAME, labels=True)
    check_values(dataset.series, missing)
    dataset = checked(dataset, columns.channels)
    return dataset.series, dataset.labels
