"""Parquet in parts that can be read independently; Feather files and data frames in memory.

Parts end between row groups, and row groups end inside series. In long form, a part therefore owns
the series that start in it: it skips the rows of the series that started before, and reads beyond
its end until its last series is complete.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from slts._typing import AnyArray
from slts.errors import DataError
from slts.extras import LazyModule
from slts.series.dataset import Columns, Dataset, SeriesScan, join
from slts.tables import assembly
from slts.tables.assembly import BATCH_BYTES, TablePart
from slts.tables.files import Files
from slts.tables.roles import RequestedColumns, resolve_columns, without_column
from slts.tables.rows import (
    NUMERIC,
    SAMPLE_ROWS,
    Named,
    Rows,
    arrow_table,
    identifiers,
    kind_of,
    plain_type,
    require_distinct,
)

pa: Any = LazyModule("pyarrow", "io")
compute: Any = LazyModule("pyarrow.compute", "io")
feather: Any = LazyModule("pyarrow.feather", "io")
parquet: Any = LazyModule("pyarrow.parquet", "io")

_FRAME = "the data frame"
# Number of steps in a part; smaller if there would be fewer parts than `_PARTS`.
_PART_STEPS, _PARTS = 1 << 20, 16
# Row groups after its end that a part knows, in which its last series may go on.
_AFTER = 64
# Bytes that are read at once: less than a batch, because lists differ in length.
_READ_BYTES = BATCH_BYTES * 3 // 4
# Read-ahead per column. Without a limit, Arrow holds a whole row group in memory.
_BUFFER_BYTES = 1 << 18


class RowGroup(NamedTuple):
    """A row group of a file.

    `first` is its first row in the file, and `n_values` the number of values of a column, lists
    counted by their values.
    """

    path: Path
    name: str
    number: int
    first: int
    n_rows: int
    n_values: int

    def batches(
        self, names: Sequence[str], n_rows: int, share: float | None = None
    ) -> Iterator[Rows]:
        """Read some columns in batches of at most `n_rows` rows, smaller if rows are large."""
        size = 8 * max(1, self.n_values // self.n_rows) * max(1, len(names))
        first = self.first
        with open_parquet(self.path, self.name) as file:
            if (
                file.num_row_groups <= self.number
                or file.metadata.row_group(self.number).num_rows != self.n_rows
            ):
                raise DataError(f"{self.name} changed after it was scanned: scan it again")
            with _read_errors(f"{self.name}, row group {self.number}"):
                for batch in file.iter_batches(
                    max(1, min(n_rows, _READ_BYTES // size)),
                    row_groups=[self.number],
                    columns=list(names),
                ):
                    table = pa.Table.from_batches([batch]).select(list(names))
                    yield Rows(table, Named(self.name), first, share)
                    first += batch.num_rows


@contextmanager
def open_parquet(path: Path, name: str) -> Iterator[Any]:
    """Open a Parquet file; its pages are checked while they are read."""
    with _read_errors(name):
        file = parquet.ParquetFile(
            # Arrow reads a relative path with a colon as a URL.
            path.absolute(),
            buffer_size=_BUFFER_BYTES,
            pre_buffer=False,
            page_checksum_verification=True,
        )
    with closing(file):
        yield file


@contextmanager
def _read_errors(where: str) -> Iterator[None]:
    """Turn errors of Arrow into a `DataError` that names the place."""
    try:
        yield
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
        if isinstance(error, OSError) and error.errno is not None:
            raise
        raise DataError(f"{where} cannot be read, the file may be damaged: {error}") from error


@dataclass(frozen=True)
class ParquetPart(TablePart):
    """Consecutive row groups of a table, perhaps in several files.

    Attributes
    ----------
    groups
        The row groups.
    before
        The row group before them; None at the beginning of the table.
    after
        Some row groups after them.
    share
        Share of the table that ends with this part.
    """

    groups: tuple[RowGroup, ...]
    before: RowGroup | None
    after: tuple[RowGroup, ...]
    share: float

    def chunks(self, names: Sequence[str], n_rows: int) -> Iterator[Rows]:
        """Read the rows that the part owns; see `TablePart.chunks`."""
        groups, share = self.groups, self.share
        own = (rows for group in groups for rows in group.batches(names, n_rows, share))
        if self.columns.form != "long" or self.whole:
            yield from own
            return
        last = self._last_of_before()
        owns_rows = self.before is None
        for rows in own:
            if not owns_rows:
                n_skipped = _n_leading(rows, self.columns, last)
                if n_skipped == len(rows):
                    continue
                rows = rows.between(n_skipped, len(rows))
                owns_rows = True
            last = identifiers(rows.table, self.columns)[-1]
            yield rows
        if owns_rows:
            yield from self._rest_of_series(names, last)

    def _last_of_before(self) -> Any:
        """Return the identifier of the row before the part."""
        last = None
        if self.before is not None:
            ids = self.columns.id_columns or (str(self.columns.id),)
            for rows in self.before.batches(ids, self.before.n_rows):
                last = identifiers(rows.table, self.columns)[-1]
        return last

    def _rest_of_series(self, names: Sequence[str], last: Any) -> Iterator[Rows]:
        """Read the rows after the part that continue its last series."""
        for group in self.after:
            # Most series end soon.
            for rows in group.batches(names, 1 << 12, self.share):
                n_owned = _n_leading(rows, self.columns, last)
                if n_owned:
                    yield rows.between(0, n_owned)
                if n_owned < len(rows):
                    return
        if len(self.after) == _AFTER:
            raise DataError(
                f"{self.name}: series {last.as_py()!r} goes on over more than {_AFTER} row groups. "
                f"Write the table with larger row groups"
            )


def _n_leading(rows: Rows, columns: Columns, value: Any) -> int:
    """Count the rows at the beginning that have the identifier `value`."""
    same = compute.equal(identifiers(rows.table, columns), value).fill_null(False)
    mask: AnyArray = same.to_numpy()
    return len(mask) if mask.all() else int(np.argmin(mask))


class ParquetScan(SeriesScan):
    """Parquet files with one schema, in order; only their footers are read here."""

    columns: Columns

    def __init__(self, files: Files, requested: RequestedColumns) -> None:
        self._files = files
        self._schemas: dict[str, Any] = {}
        self._groups: list[RowGroup] = []
        for path, name in zip(files.paths, files.names, strict=True):
            _require_no_columns_in(path.relative_to(files.root).parts[:-1], name)
            self._add(path, name)
        sample = self._sample()
        self._all_columns_matter = not requested.names_channels
        columns = resolve_columns(sample, requested)
        self._check_schemas(columns, labels=False)
        n_values = sum(group.n_values for group in self._groups)
        super().__init__(files.name, columns, n_bytes=8 * n_values * len(columns.channels))

    def _add(self, path: Path, name: str) -> None:
        """Read the footer of a file."""
        with open_parquet(path, name) as file:
            schema, metadata = file.schema_arrow, file.metadata
            require_distinct(schema.names, name)
            self._schemas[name] = schema
            first = 0
            for number in range(file.num_row_groups):
                group = metadata.row_group(number)
                n_values = max(
                    (group.column(c).num_values for c in range(group.num_columns)), default=0
                )
                if group.num_rows:
                    self._groups.append(
                        RowGroup(path, name, number, first, group.num_rows, n_values)
                    )
                first += group.num_rows

    def _sample(self) -> Rows:
        """Read the first rows of the first file with rows."""
        name = self._groups[0].name if self._groups else self._files.names[0]
        schema, n_rows = self._schemas[name], 0
        tables = [schema.empty_table()]
        groups = (group for group in self._groups if group.name == name)
        for rows in (rows for g in groups for rows in g.batches(schema.names, SAMPLE_ROWS)):
            tables.append(rows.table)
            n_rows += len(rows)
            if n_rows >= SAMPLE_ROWS or sum(t.nbytes for t in tables) > BATCH_BYTES:
                break
        return Rows(pa.concat_tables(tables), Named(self._files.name))

    def _check_schemas(self, columns: Columns, *, labels: bool) -> None:
        """Raise an error if a file differs from the first one in columns that matter."""
        first_name = self._groups[0].name
        first = self._schemas[first_name]
        used = columns.used(labels=labels)
        for name, schema in self._schemas.items():
            every = {*first.names, *schema.names} if self._all_columns_matter else used
            absent = [c for c in sorted(every) if (c in first.names) != (c in schema.names)]
            if absent:
                has, lacks = (name, first_name) if absent[0] in schema.names else (first_name, name)
                raise DataError(
                    f"{lacks} has no column {absent[0]!r}, but {has} has it. "
                    f"{without_column(columns, absent[0], schema.names)}"
                )
            for column in used:
                dtype, other = schema.field(column).type, first.field(column).type
                # Numbers of any type are read as float64.
                is_number = column in columns.channels and kind_of(dtype) in NUMERIC
                if plain_type(dtype) != plain_type(other) and not is_number:
                    raise DataError(
                        f"{name}: column {column!r} has type {dtype}, but {other} in {first_name}: "
                        f"files that are read as one table must have the same schema"
                    )

    def parts(self, *, labels: bool = True) -> list[ParquetPart]:
        """Return the parts, which depend on the footers only."""
        self._check_schemas(self.columns, labels=labels)
        whole = self.columns.form == "long" and (self.n_bytes or 0) <= assembly.SMALL_BYTES
        starts = np.cumsum([0, *(group.n_values for group in self._groups)])
        n_steps = int(starts[-1])
        target = max(1, n_steps if whole else min(_PART_STEPS, -(-n_steps // _PARTS)))
        # A part starts with the first row group of each stretch of `target` steps.
        cuts = np.flatnonzero(np.diff(starts[:-1] // target, prepend=-1)).tolist()
        stops = [*cuts[1:], len(self._groups)]
        return [self._part(*bounds, whole) for bounds in zip(cuts, stops, strict=True)]

    def _part(self, start: int, stop: int, whole: bool) -> ParquetPart:
        groups = self._groups
        return ParquetPart(
            name=f"{groups[start].name}, from row {groups[start].first}",
            source=self.name,
            columns=self.columns,
            whole=whole,
            groups=tuple(groups[start:stop]),
            before=groups[start - 1] if start else None,
            after=tuple(groups[stop : stop + _AFTER]),
            share=stop / len(groups),
        )


def _require_no_columns_in(folders: Sequence[str], name: str) -> None:
    """Raise an error for folders such as ``label=a``: without them, series could be merged."""
    for folder in folders:
        column, equals, _ = folder.partition("=")
        if equals:
            raise DataError(
                f"{name}: columns in names of folders, such as {folder!r}, are not read. Write "
                f"{column!r} as a column of every file"
            )


# -- In memory


@dataclass(frozen=True)
class FramePart(TablePart):
    """A data frame in memory, as an Arrow table."""

    table: Any

    @classmethod
    def of(cls, frame: object, requested: RequestedColumns) -> FramePart:
        """Find the columns in the first rows."""
        return cls._of_table(arrow_table(frame, _FRAME), _FRAME, requested)

    @classmethod
    def of_feather(cls, path: Path, name: str, requested: RequestedColumns) -> FramePart:
        """Read a file in Arrow's own format."""
        with _read_errors(name):
            table = feather.read_table(path.absolute())
        return cls._of_table(table, name, requested)

    @classmethod
    def _of_table(cls, table: Any, name: str, requested: RequestedColumns) -> FramePart:
        rows = Rows(table.slice(0, SAMPLE_ROWS), Named(name))
        return cls(name, name, resolve_columns(rows, requested), True, table)

    def chunks(self, names: Sequence[str], n_rows: int) -> Iterator[Rows]:
        """Read some columns; see `TablePart.chunks`."""
        yield from Rows(self.table.select(list(names)), Named(self.name), share=1.0).pieces(n_rows)


def read_frame(
    frame: Any,
    *,
    id: str | Sequence[str] | None,
    time: str | None,
    label: str | None,
    channels: str | Sequence[str] | None,
) -> Dataset:
    """Read a data frame in long form; labels only if their column is named."""
    if getattr(getattr(frame, "index", None), "nlevels", 1) > 1:
        raise DataError(
            f"X has an index of several levels, {list(frame.index.names)}: use X.reset_index(), "
            f"and name its columns with id= and time="
        )
    if not len(arrow_table(frame, "X")):
        raise DataError("X has 0 sample(s) (rows) while a minimum of 1 is required.")
    part = FramePart.of(frame, RequestedColumns(id, time, label, channels))
    if part.columns.form != "long":
        raise DataError(
            "every row of the data frame is one series: use slts.scan_series(X), or for one "
            "channel pass the values, X[columns].to_numpy()"
        )
    return join(part.batches(labels=label is not None, batch_size=len(part.table)))
