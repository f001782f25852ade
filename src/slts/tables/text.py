"""Text files, compressed or not, and standard input; CSV as a table that is read in blocks."""

from __future__ import annotations

import atexit
import csv
import io
import os
import re
import shutil
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from slts.errors import DataError
from slts.extras import LazyModule
from slts.series.dataset import Columns
from slts.tables import assembly
from slts.tables.roles import LEAST_STEPS, RequestedColumns, resolve_columns
from slts.tables.rows import INEXACT, SAMPLE_ROWS, Rows, is_number, kind_of, require_distinct

pa: Any = LazyModule("pyarrow", "io")
arrow_csv: Any = LazyModule("pyarrow.csv", "io")

# Numbers in which a mark may separate thousands.
_THOUSANDS = re.compile(r"[-+]?[1-9]\d{0,2}[.,]\d{3}")
# Bytes that are read at once; the first block determines delimiter and types.
_BLOCK = 1 << 20
_NOT_UTF8 = (
    "the text is not UTF-8. It may be Windows-1252 or Latin-1: save it in UTF-8, as with iconv -f "
    "WINDOWS-1252 -t UTF-8"
)
_COMPRESSED_SUFFIXES = (".gz", ".bz2", ".zst")
# How many times larger a compressed text file may be in memory.
_COMPRESSION = 8


def is_compressed(path: str | Path) -> bool:
    """Tell whether a name ends in the suffix of a compression format."""
    return Path(path).suffix.lower() in _COMPRESSED_SUFFIXES


def base_suffix(path: str | Path) -> str:
    """Return the suffix of the data format, without the suffix of a compression format.

    Examples
    --------
    >>> from slts.tables.text import base_suffix
    >>> base_suffix("data/train.CSV.gz"), base_suffix("train.ts")
    ('.csv', '.ts')
    """
    path = Path(path)
    return (path.with_suffix("") if is_compressed(path) else path).suffix.lower()


@contextmanager
def open_binary(path: Path, name: str) -> Iterator[Any]:
    """Open a file, decompressed according to its suffix; damage becomes a `DataError`.

    Arrow reads ahead in threads of its own. They must not read a file of Python: a thread that
    needs Python while it ends would abort the process.
    """
    try:
        with pa.input_stream(str(path), compression="detect") as stream:
            yield stream
    except OSError as error:
        # A missing file has a number; damage has none.
        if error.errno is not None:
            raise
        raise DataError(
            f"{name} is damaged, or is not compressed as its suffix {path.suffix} says: {error}"
        ) from error


def missing_cells() -> tuple[str, ...]:
    """Return the cells that Arrow reads as missing values."""
    return tuple(arrow_csv.ConvertOptions().null_values)


def saved_stdin() -> Path:
    """Save standard input to a file, which is removed when Python ends."""
    if sys.stdin is None or sys.stdin.closed:
        raise DataError("- means standard input, but there is none")
    # Tests and notebooks replace it by a text stream without a buffer.
    stream: Any = getattr(sys.stdin, "buffer", None) or io.BytesIO(sys.stdin.read().encode())
    number, path = tempfile.mkstemp(suffix=".csv")
    atexit.register(Path(path).unlink, missing_ok=True)
    with os.fdopen(number, "wb") as file:
        shutil.copyfileobj(stream, file)
    return Path(path)


@dataclass(frozen=True)
class CsvFile:
    """A CSV file: its place, and what its first line tells.

    Attributes
    ----------
    name
        Name for messages.
    path
        The file.
    names
        Names of the columns; if the file has no header, they are "0", "1", ...
    has_header
        Whether the first line names the columns. If not, every row is a series.
    delimiter, decimal
        What separates cells, and the decimal point or comma.
    n_skipped
        Number of lines before the data.
    block
        Bytes that are read at once, longer than several lines.
    """

    name: str
    path: Path
    names: tuple[str, ...]
    has_header: bool
    delimiter: str
    decimal: str
    n_skipped: int
    block: int

    @classmethod
    def at(cls, path: Path, name: str, *, one_series: bool = False) -> CsvFile:
        """Read the first line; if the file is one series, a first line of numbers is data."""
        with open_binary(path, name) as file:
            begin = file.read(_BLOCK)
        if b"\0" in begin[:4096]:
            raise DataError(
                f"{name} is not text in UTF-8: save the table as CSV. For UTF-16 text, use iconv "
                f"-f UTF-16 -t UTF-8"
            )
        # A cut character at the end of the block does not matter.
        lines = begin.decode("utf-8-sig", errors="replace").splitlines(keepends=True)
        n_blank = next((k for k, line in enumerate(lines) if line.strip()), len(lines))
        if n_blank == len(lines):
            raise DataError(f"{name} is empty, expected a CSV file")
        first = lines[n_blank]
        delimiter = "\t" if base_suffix(path) == ".tsv" else max(",;\t|", key=first.count)
        reader = csv.reader(lines[n_blank:], delimiter=delimiter)
        cells = [cell.strip() for cell in next(reader)]
        if "\ufffd" in first:
            raise DataError(f"{name}, line {n_blank + 1}: {_NOT_UTF8}")
        has_header = not all(map(_numeric, cells)) if one_series else _is_header(cells)
        if not has_header and not one_series and len(cells) <= LEAST_STEPS:
            raise DataError(
                f"{name} begins with numbers, {first.strip()[:60]!r}: its first line must name the "
                f"columns. (Only files with one series per row, of {LEAST_STEPS} steps or more, "
                f"are read without a header.)"
            )
        names = tuple(cells) if has_header else tuple(map(str, range(len(cells))))
        comma = r"(?:^|[;\t|])\s*-?\d*,\d+\s*(?:[;\t|\r]|$)"
        data = "".join(lines[n_blank + 1 :][:1000])
        decimal = "," if delimiter != "," and re.search(comma, data, re.MULTILINE) else "."
        n_skipped = n_blank + (reader.line_num if has_header else 0)
        block = max(_BLOCK, 8 * len(first))
        return cls(name, path, names, has_header, delimiter, decimal, n_skipped, block)

    def place(self, row: int) -> str:
        """Return the name and the line of a row; blank lines and line breaks in cells count."""
        for number, (line, _) in enumerate(self._records()):
            if number == row:
                return f"{self.name}, line {line}"
        raise IndexError(row)

    def _records(self) -> Iterator[tuple[int, list[str]]]:
        """Yield the number of the first line, and the cells, of every row of data."""
        with open_binary(self.path, self.name) as file:
            text = io.TextIOWrapper(file, encoding="utf-8-sig", errors="replace", newline="")
            reader = csv.reader(text, delimiter=self.delimiter)
            line = 1
            for cells in reader:
                if line > self.n_skipped and cells:
                    yield line, cells
                line = reader.line_num + 1

    @cached_property
    def schema(self) -> Any:
        """The types that the first block shows; times are text, as in other tables."""
        return self.sample.table.schema

    @property
    def sample(self) -> Rows:
        """The first rows, with the types of `schema`."""
        table = self._first_rows({})
        for field in table.schema:
            if pa.types.is_binary(field.type):
                self._raise_text_error([], pa.ArrowInvalid("invalid UTF-8"))
        times = {f.name: pa.string() for f in table.schema if pa.types.is_temporal(f.type)}
        return Rows(self._first_rows(times) if times else table, self)

    def _first_rows(self, types: Mapping[str, Any]) -> Any:
        require_distinct(self.names, self.name)
        first = next(self._batches(types, None), None)
        if first is None:
            return pa.table({name: pa.nulls(0) for name in self.names})
        return pa.Table.from_batches([first.slice(0, SAMPLE_ROWS)])

    def resolve(self, requested: RequestedColumns) -> Columns:
        """Find the role of each column of a table."""
        if len(self.names) == 1:
            raise DataError(
                f"{self.name} has one column, {self.names[0][:60]!r}. If it should have more, "
                f"separate cells by comma, semicolon, tab or bar. If the file is one series, put "
                f"the files of all series in one folder, and name the folder"
            )
        return self.clear(resolve_columns(self.sample, requested, has_header=self.has_header))

    def clear(self, columns: Columns) -> Columns:
        """Return the columns, in which times that are numbers are text too.

        Raise an error for channels such as 132 and 10,783, whose comma may separate thousands.
        """
        rows = [] if self.delimiter == "," else [row for _, row in islice(self._records(), 1000)]
        for name, *column in zip(self.names, *rows, strict=False):
            cells = {cell.strip() for cell in column}
            marked = {cell for cell in cells if self.decimal in cell}
            has_whole = any(re.fullmatch(r"[-+]?\d{1,3}", cell) for cell in cells - marked)
            if (
                name in columns.channels
                and marked
                and has_whole
                and all(map(_THOUSANDS.fullmatch, marked))
            ):
                raise DataError(
                    f"{self.name}: {name!r} holds numbers such as {min(marked)!r}: does "
                    f"{self.decimal!r} separate thousands? Convert the file; in pandas: "
                    f"read_csv({self.name!r}, sep={self.delimiter!r}, thousands={self.decimal!r})"
                    f".to_csv('clear.csv', index=False), with decimal= for thousands= if not"
                )
        is_number = columns.time is not None and columns.time_form is None
        return replace(columns, time_form="number") if is_number else columns

    def chunks(self, columns: Columns, names: Sequence[str]) -> Iterator[Rows]:
        """Read some columns block by block: channels as numbers, others as text."""
        types = {name: self._type(name, columns) for name in names}
        integers = [n for n in columns.channels if kind_of(self.schema.field(n).type) == "integer"]
        size, first = os.path.getsize(self.path), 0
        for number, batch in enumerate(self._batches(types, names), start=1):
            share = min(1.0, number * self.block / max(1, size))
            rows = Rows(pa.Table.from_batches([batch]), self, first, share)
            for name in integers:
                self._require_exact(rows, name)
            yield rows
            first += len(rows)

    def _type(self, name: str, columns: Columns) -> Any:
        if name not in columns.channels:
            # 007 is not 7.
            return pa.string()
        dtype = self.schema.field(name).type
        return dtype if kind_of(dtype) == "boolean" else pa.float64()

    def _require_exact(self, rows: Rows, name: str) -> None:
        values = np.abs(rows.table[name].to_numpy())
        inexact = (values >= INEXACT) & (values < np.inf)
        if inexact.any():
            raise DataError(
                f"{rows.place(int(np.argmax(inexact)))}: {name!r} has more digits than float64 "
                f"represents. Subtract an offset, or leave the column out"
            )

    def _batches(self, types: Mapping[str, Any], names: Sequence[str] | None) -> Iterator[Any]:
        """Yield record batches of some columns, or of all with inferred types."""
        read = arrow_csv.ReadOptions(
            use_threads=False, column_names=list(self.names), skip_rows=self.n_skipped,
            block_size=self.block,
        )  # fmt: skip
        parse = arrow_csv.ParseOptions(delimiter=self.delimiter, newlines_in_values=True)
        convert = arrow_csv.ConvertOptions(
            column_types=dict(types), decimal_point=self.decimal, include_columns=names
        )
        with open_binary(self.path, self.name) as file:
            try:
                yield from arrow_csv.open_csv(file, read, parse, convert)
            except pa.ArrowInvalid as error:
                if "Empty CSV" not in str(error):
                    self._raise_text_error([n for n, t in types.items() if t != pa.string()], error)

    def _raise_text_error(self, numbers: Sequence[str], error: Exception) -> None:
        """Find the line that Arrow could not read, and raise an error that names it."""
        types = {name: self.schema.field(name).type for name in numbers}
        for line, cells in self._records():
            where = f"{self.name}, line {line}"
            if any("\ufffd" in cell for cell in cells):
                raise DataError(f"{where}: {_NOT_UTF8}") from error
            if len(cells) != len(self.names):
                raise DataError(
                    f"{where} has {len(cells)} cells, expected {len(self.names)}. Complete the "
                    f"row. Put text that holds the delimiter in quotes, and write numbers with a "
                    f"decimal point, or separate cells by semicolons. If every row is a series, "
                    f"end short ones with empty cells"
                ) from error
            for name, dtype in types.items():
                cell = cells[self.names.index(name)].strip()
                if not self._fits(cell, dtype):
                    expected = "true or false" if pa.types.is_boolean(dtype) else "a number"
                    raise DataError(
                        f"{where}: {name!r} holds {cell!r}, expected {expected}"
                    ) from error
        raise DataError(f"{self.name} cannot be read as CSV: {error}") from error

    def _fits(self, cell: str, dtype: Any) -> bool:
        dtype = dtype if pa.types.is_boolean(dtype) else pa.float64()
        try:
            pa.scalar(cell.replace(self.decimal, ".")).cast(dtype)
        except pa.ArrowInvalid:
            return cell in missing_cells()
        return True


@dataclass(frozen=True)
class CsvPart(assembly.TablePart):
    """All of a CSV file."""

    table: CsvFile

    @classmethod
    def of(cls, path: Path, name: str, requested: RequestedColumns) -> CsvPart:
        """Find the columns in the first rows."""
        table = CsvFile.at(path, name)
        columns = table.resolve(requested)
        size = path.stat().st_size * (_COMPRESSION if is_compressed(path) else 1)
        return cls(name, name, columns, size <= assembly.SMALL_BYTES, table)

    def chunks(self, names: Sequence[str], n_rows: int) -> Iterator[Rows]:
        """Read some columns; see `TablePart.chunks`."""
        for rows in self.table.chunks(self.columns, names):
            yield from rows.pieces(n_rows)


def _numeric(cell: str) -> bool:
    """Tell whether text is a number, with a decimal point or a decimal comma."""
    return is_number(cell.replace(",", ".", 1))


def _is_header(cells: Sequence[str]) -> bool:
    """Tell whether the first line of a table names its columns.

    Numbers name columns if they are counted or are times at equal distances, such as 0, 1, 2. All
    but the first and the last cell of a line of data are numbers; one of these may be a label. A
    short series is padded with empty cells.
    """
    while len(cells) > LEAST_STEPS and cells[-1] in missing_cells() and _numeric(cells[1]):
        cells = cells[:-1]
    inner = cells[1:-1] if len(cells) > LEAST_STEPS else cells
    if not all(map(_numeric, inner)) or not (_numeric(cells[0]) or _numeric(cells[-1])):
        return True
    numbers = [float(cell.replace(",", ".", 1)) for cell in cells if _numeric(cell)]
    steps = np.diff(numbers)
    return len(cells) > LEAST_STEPS and bool(
        steps[0] > 0 and np.allclose(steps, steps[0], rtol=1e-3)
    )
