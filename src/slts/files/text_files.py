"""Text files, compressed or not, and standard input; CSV as a table that is read in blocks."""

from __future__ import annotations

import bz2
import csv
import gzip
import io
import lzma
import re
import sys
import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Any, BinaryIO, cast

import numpy as np

from slts.columns import Columns, RequestedColumns, resolve_columns
from slts.columns.facts import MISSING, NOT_UTF8
from slts.columns.rows import Chunk, is_number, kind_of
from slts.errors import DataError
from slts.extras import LazyModule
from slts.files.paths import STDIN, OnePath

pa: Any = LazyModule("pyarrow", "io")
arrow_csv: Any = LazyModule("pyarrow.csv", "io")

# Bytes that are read at once; the first block determines delimiter and types.
_BLOCK = 1 << 20
# Bytes at the beginning that show whether a file is text, and whether it has a header.
_BEGINNING = 1 << 12
# Number of columns from which a file without header may have one series per row.
_LEAST_STEPS = 8
# float64 does not represent all larger integers.
_EXACT = 2**53
# Cells of boolean columns.
_TRUTH = {"true": 1.0, "1": 1.0, "false": 0.0, "0": 0.0}


class TextFile:
    """An open text file that is decompressed while it is read."""

    def __init__(self, stream: BinaryIO, name: str, raw: BinaryIO | None, size: int) -> None:
        self.stream = stream
        self.name = name
        self._raw = raw
        self._size = size

    def read(self, size: int) -> bytes:
        """Read `size` bytes, or fewer at the end of the file.

        `read` of a buffered pipe waits in C code and cannot be interrupted. `read1` returns after
        every piece of data, so that Python can handle signals.
        """
        read = getattr(self.stream, "read1", self.stream.read)
        pieces, n_missing = [], size
        while n_missing > 0 and (piece := read(n_missing)):
            pieces.append(piece)
            n_missing -= len(piece)
        return b"".join(pieces)

    @property
    def share(self) -> float | None:
        """Share of the bytes on disk that have been read; None for standard input."""
        if self._raw is None or self._size == 0:
            return None
        return min(1.0, self._raw.tell() / self._size)


@contextmanager
def open_text(path: OnePath, name: str) -> Iterator[TextFile]:
    """Open a file, or standard input for ``"-"``, and decompress it according to its suffix.

    Parameters
    ----------
    path : str or path
        The file.
    name : str
        Name for messages.

    Yields
    ------
    TextFile
        The open file. Damage that is found while it is read becomes a `DataError`.
    """
    if path == STDIN:
        yield TextFile(_stdin(), "standard input", None, 0)
        return
    path = Path(path)
    suffix = path.suffix.lower()
    with path.open("rb") as raw:
        try:
            with _decompressed(raw, suffix) as stream:
                yield TextFile(stream, name, raw, path.stat().st_size)
        except (OSError, EOFError, zlib.error, lzma.LZMAError) as error:
            if not _is_damage(error, suffix):
                raise
            raise DataError(
                f"{name} is damaged, or is not compressed as its suffix {suffix} says: {error}"
            ) from error


def _is_damage(error: Exception, suffix: str) -> bool:
    if isinstance(error, OSError) and not isinstance(error, gzip.BadGzipFile):
        # bz2 and zstd report damage as an OSError without a number.
        return error.errno is None and suffix in (".bz2", ".zst")
    return True


def _decompressed(raw: BinaryIO, suffix: str) -> Any:
    if suffix == ".zst":
        return pa.CompressedInputStream(raw, "zstd")
    readers: dict[str, Any] = {".gz": gzip.open, ".bz2": bz2.open, ".xz": lzma.open}
    return readers[suffix](raw) if suffix in readers else raw


def _stdin() -> BinaryIO:
    if sys.stdin is None or sys.stdin.closed:
        raise DataError("- means standard input, but there is none")
    # Tests and notebooks replace it by a text stream without a buffer.
    buffer = getattr(sys.stdin, "buffer", None)
    return io.BytesIO(sys.stdin.read().encode()) if buffer is None else cast(BinaryIO, buffer)


class CsvTable:
    """A CSV file that is read once, from beginning to end.

    Blocks are cut here and not by Arrow's streaming reader, which reads ahead in a thread that
    cannot be interrupted while it waits for standard input.

    Parameters
    ----------
    file
        The open file.
    suffix
        ``".tsv"`` means tabs; otherwise the header determines the delimiter.
    one_series
        Whether the file is one series. A first line of numbers is then data.

    Attributes
    ----------
    names
        Names of the columns.
    has_header
        Whether the first line names the columns. If not, they are named "0", "1", ..., and every
        row is a series, unless the file is one.
    """

    def __init__(self, file: TextFile, suffix: str, *, one_series: bool = False) -> None:
        self._file = file
        begin = file.read(_BLOCK)
        self._is_cut = len(begin) == _BLOCK
        # Its mark, or characters of two bytes.
        if begin[:2] in (b"\xff\xfe", b"\xfe\xff") or b"\0" in begin[:2]:
            raise DataError(
                f"{file.name} is UTF-16 text: save it in UTF-8, as with iconv -f UTF-16 -t UTF-8"
            )
        if b"\0" in begin[:_BEGINNING]:
            raise DataError(f"{file.name} is not text: save the table as CSV")
        begin = begin.removeprefix(b"\xef\xbb\xbf").lstrip(b"\r\n")
        first, _, self._data = begin.partition(b"\n")
        try:
            line = first.decode().strip("\r")
        except UnicodeDecodeError as error:
            raise DataError(f"{file.name}, line 1: the text {NOT_UTF8}") from error
        if not line.strip():
            raise DataError(f"{file.name} is empty, expected a CSV file")
        self._delimiter = "\t" if suffix == ".tsv" else max(",;\t|", key=line.count)
        try:
            cells = next(csv.reader([line], delimiter=self._delimiter))
        except csv.Error as error:
            # A carriage return, as the only end of lines or by chance, or a cell without end.
            why: object = error
            if "\r" in line:
                why = "lines must end with a line feed, not with a carriage return"
            raise DataError(f"the first line of {file.name} is not CSV: {why}") from error
        is_names = not all(map(is_number, cells))
        self.has_header = is_names if one_series else _is_header(cells)
        if self.has_header:
            self.names = [cell.strip() for cell in cells]
            self._raise_if_names_are_data()
        elif not one_series and len(cells) < _LEAST_STEPS:
            raise DataError(
                f"{file.name} begins with numbers, {line.strip()[:60]!r}: its first line must name "
                f"the columns. (Only files with one series per row, of {_LEAST_STEPS - 1} steps or "
                f"more, are read without a header.)"
            )
        else:
            self.names = [str(c) for c in range(len(cells))]
            self._data = begin
        comma = rb"(?:^|[;\t|])\s*-?\d*,\d+\s*(?:[;\t|\r]|$)"
        decimal_comma = self._delimiter != "," and re.search(comma, self._data, re.MULTILINE)
        self._decimal = "," if decimal_comma else "."

    def _raise_if_names_are_data(self) -> None:
        """Raise an error if the first line has numbers, and text as in the lines after it."""
        if not any(map(is_number, self.names)):
            return
        lines = self._data[:_BEGINNING].decode(errors="replace").splitlines()[:20]
        for cells in csv.reader(lines, delimiter=self._delimiter):
            for name, cell in zip(self.names, cells, strict=False):
                if name and name == cell.strip() and not is_number(name):
                    raise DataError(
                        f"{self._file.name}: the first line must name the columns, but it holds "
                        f"values: {name!r} is also in the same column of other lines"
                    )

    @cached_property
    def sample(self) -> Chunk:
        """The first block, with inferred types; timestamps are text, as in other tables."""
        end = self._data.rfind(b"\n") + 1 if self._is_cut else None
        block, line = self._data[:end], 1 + self.has_header
        found = self._parse(block, line, self.names, {})
        timestamps = [
            field.name for field in found.rows.schema if kind_of(field.type) == "timestamp"
        ]
        if not timestamps:
            return found
        return self._parse(block, line, self.names, dict.fromkeys(timestamps, pa.string()))

    def resolve(self, requested: RequestedColumns) -> Columns:
        """Find the role of each column of a table."""
        if not self.has_header:
            requested = requested.without_names()
        sample = self.sample
        if len(self.names) == 1:
            by = (
                "tabs in a .tsv file" if self._delimiter == "\t" else "comma, semicolon, tab or bar"
            )
            raise DataError(
                f"{self._file.name} has one column, {self.names[0][:60]!r}. If it should have "
                f"more, separate cells by {by}. If the file is one series, put the files of all "
                f"series in one folder, and name the folder"
            )
        return resolve_columns(sample, requested, has_header=self.has_header)

    def chunks(self, columns: Columns, names: Sequence[str]) -> Iterator[Chunk]:
        """Read some columns block by block."""
        types = {name: self._type(name, columns) for name in names}
        line = 1 + self.has_header
        for block in self._blocks():
            try:
                yield self._parse(block, line, names, types)
            except DataError:
                if not columns.skip:
                    raise
                yield self._parse_cells(block, line, names, types, columns.channels)
            line += block.count(b"\n")

    def _parse_cells(
        self,
        block: bytes,
        line: int,
        names: Sequence[str],
        types: Mapping[str, Any],
        channels: Sequence[str],
    ) -> Chunk:
        """Parse lines in which a cell is not a number: it becomes infinity, which is unusable."""
        texts = {**types, **dict.fromkeys(channels, pa.string())}
        chunk = self._parse(block, line, names, texts)
        rows = chunk.rows
        for name in channels:
            numbers = [self._number(cell, types[name]) for cell in rows[name].to_pylist()]
            rows = rows.set_column(names.index(name), name, pa.array(numbers, pa.float64()))
        return replace(chunk, rows=rows)

    def _number(self, cell: str, dtype: Any) -> float:
        cell = cell.strip()
        if cell in MISSING:
            return np.nan
        if pa.types.is_boolean(dtype):
            return _TRUTH.get(cell.lower(), np.inf)
        try:
            return float(cell.replace(self._decimal, "."))
        except ValueError:
            return np.inf

    def _blocks(self) -> Iterator[bytes]:
        """Cut the file between lines."""
        waiting = self._data
        while True:
            end = waiting.rfind(b"\n") + 1
            if waiting[:end].strip():
                yield waiting[:end]
            more = self._file.read(_BLOCK)
            waiting = waiting[end:] + more
            if not more:
                break
        if waiting.strip():
            yield waiting

    def _parse(
        self, block: bytes, line: int, names: Sequence[str], types: Mapping[str, Any]
    ) -> Chunk:
        """Parse lines, the first of which has number `line`."""
        if not block.strip():
            empty = pa.table({name: [] for name in dict.fromkeys(names)})
            return Chunk(empty, self._file.name, line, "line", self._file.share)
        try:
            table = arrow_csv.read_csv(
                io.BytesIO(block),
                read_options=arrow_csv.ReadOptions(use_threads=False, column_names=self.names),
                parse_options=arrow_csv.ParseOptions(delimiter=self._delimiter),
                convert_options=arrow_csv.ConvertOptions(
                    column_types=types, decimal_point=self._decimal
                ),
            )
        except pa.ArrowInvalid as error:
            problem = _describe(str(error), line - 1, self.names)
            if len(self.names) == 1:
                problem += f". The first line, {self.names[0][:60]!r}, must name the columns"
            elif found := re.search(r"Expected (\d+) columns, got (\d+)", problem):
                problem += self._advice(*map(int, found.groups()))
            raise DataError(f"{self._file.name}{problem}") from error
        if len(names) < len(self.names):
            table = table.select(list(names))
        return Chunk(table, self._file.name, line, "line", self._file.share)

    def _advice(self, expected: int, got: int) -> str:
        """Return what to do about a row with a wrong number of cells."""
        if got > expected and self.has_header:
            decimals = ", and write numbers with a decimal point" * (self._delimiter == ",")
            return f". Put text that holds the delimiter in quotes{decimals}"
        if expected < _LEAST_STEPS:
            return ". Complete the row, or drop it"
        return (
            ". If every row is a series, all rows must have the same number of cells: end short "
            "ones with empty cells, or save the table with one row per step"
        )

    def _type(self, name: str, columns: Columns) -> Any:
        """Return the type of a column, which must fit later blocks too."""
        found = self.sample.rows.schema.field(name).type
        kind = kind_of(found)
        if name in (*columns.channels, *columns.constant):
            return found if kind == "boolean" else pa.float64()
        if name != columns.time or kind == "text":
            # Text, as in .ts files: 007 is not 7.
            return pa.string()
        if kind == "integer":
            largest = np.abs(self.sample.rows[name].drop_null().to_numpy()).max(initial=0)
            return pa.int64() if largest >= _EXACT else pa.float64()
        return found


def _is_header(cells: Sequence[str]) -> bool:
    """Tell whether the first line of a table names its columns.

    Numbers name columns if they are counted or are times at equal distances, such as 0, 1, 2. All
    but the first and the last cell of a line of data are numbers; one of these may be a label. A
    short series is padded with empty cells.
    """
    if not is_number(cells[-1]) and sum(map(is_number, cells)) >= _LEAST_STEPS - 1:
        cells = [cell for cell in cells if cell.strip()]
    inner = cells[1:-1] if len(cells) >= _LEAST_STEPS else cells
    if not all(map(is_number, inner)) or not (is_number(cells[0]) or is_number(cells[-1])):
        return True
    numbers = [float(cell.replace(",", ".", 1)) for cell in cells if is_number(cell)]
    steps = np.diff(numbers)
    return len(cells) >= _LEAST_STEPS and bool(
        steps[0] > 0 and np.allclose(steps, steps[0], rtol=1e-3)
    )


def _describe(message: str, n_before: int, names: Sequence[str]) -> str:
    """Translate an error of Arrow's CSV reader; `n_before` lines precede the block."""
    conversion = re.search(
        r"In CSV column #(\d+): (?:Row #(\d+): )?CSV conversion error to (\w+)[^:]*: (.*)", message
    )
    if conversion:
        column, line, type_name, problem = conversion.groups()
        name = names[int(column)] if int(column) < len(names) else column
        expected = "true or false" if type_name == "bool" else "a number"
        problem = f"column {name!r} holds a value that is not {expected}: {problem}"
        if type_name == "string":
            problem = f"column {name!r} holds text that {NOT_UTF8}"
    elif parse := re.search(r"CSV parse error: (?:Row #(\d+): )?(.*)", message, re.DOTALL):
        line, problem = parse.groups()
        problem = problem.strip()[:200]
    else:
        return f" cannot be read as CSV: {message}"
    return f", line {n_before + int(line)}: {problem}" if line else f": {problem}"
