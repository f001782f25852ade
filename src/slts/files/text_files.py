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

from slts.errors import DataError
from slts.extras import LazyModule
from slts.files.columns import MISSING, is_number, kind_of
from slts.files.dataset import Columns
from slts.files.paths import STDIN, OnePath
from slts.files.tables import Chunk

pa: Any = LazyModule("pyarrow", "io")
arrow_csv: Any = LazyModule("pyarrow.csv", "io")

# Bytes that are read at once; the first block determines delimiter and types.
_BLOCK = 1 << 20
# float64 does not represent all larger integers.
_EXACT = 2**53


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
    if suffix == ".gz":
        return gzip.GzipFile(fileobj=raw)
    if suffix == ".bz2":
        return bz2.BZ2File(raw)
    if suffix == ".xz":
        return lzma.LZMAFile(raw)
    if suffix == ".zst":
        return pa.CompressedInputStream(raw, "zstd")
    return raw


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
    needs_header
        Whether a first line of numbers is an error. If not, it is data, and the columns are named
        "0", "1", ...
    """

    def __init__(self, file: TextFile, suffix: str, *, needs_header: bool = True) -> None:
        self._file = file
        begin = file.read(_BLOCK)
        self._is_cut = len(begin) == _BLOCK
        begin = begin.removeprefix(b"\xef\xbb\xbf").lstrip(b"\r\n")
        first, _, self._data = begin.partition(b"\n")
        try:
            line = first.decode().strip("\r")
        except UnicodeDecodeError as error:
            raise DataError(f"{file.name} is not UTF-8 text: {error}") from error
        if not line.strip():
            raise DataError(f"{file.name} is empty, expected a CSV file")
        self._delimiter = "\t" if suffix == ".tsv" else max(",;\t|", key=line.count)
        cells = next(csv.reader([line], delimiter=self._delimiter))
        self.has_header = not all(map(is_number, cells))
        if self.has_header:
            self._names = [cell.strip() for cell in cells]
        elif needs_header:
            raise DataError(
                f"{file.name} begins with numbers, {line.strip()[:60]!r}: its first line must name "
                f"the columns"
            )
        else:
            self._names = [str(c) for c in range(len(cells))]
            self._data = begin
        comma = rb"(?:^|[;\t|])\s*-?\d*,\d+\s*(?:[;\t|\r]|$)"
        decimal_comma = self._delimiter != "," and re.search(comma, self._data, re.MULTILINE)
        self._decimal = "," if decimal_comma else "."

    @cached_property
    def sample(self) -> Chunk:
        """The first block, with inferred types."""
        end = self._data.rfind(b"\n") + 1 if self._is_cut else None
        return self._parse(self._data[:end], 1 + self.has_header, self._names, {})

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
            numbers = [self._number(cell) for cell in rows[name].to_pylist()]
            rows = rows.set_column(names.index(name), name, pa.array(numbers, pa.float64()))
        return replace(chunk, rows=rows)

    def _number(self, cell: str) -> float:
        if cell.strip() in MISSING:
            return np.nan
        return float(cell.replace(self._decimal, ".")) if is_number(cell) else np.inf

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
                read_options=arrow_csv.ReadOptions(use_threads=False, column_names=self._names),
                parse_options=arrow_csv.ParseOptions(delimiter=self._delimiter),
                convert_options=arrow_csv.ConvertOptions(
                    column_types=types, decimal_point=self._decimal
                ),
            )
        except pa.ArrowInvalid as error:
            problem = _describe(str(error), line - 1, self._names)
            raise DataError(f"{self._file.name}{problem}") from error
        if len(names) < len(self._names):
            table = table.select(list(names))
        return Chunk(table, self._file.name, line, "line", self._file.share)

    def _type(self, name: str, columns: Columns) -> Any:
        """Return the type of a column, which must fit later blocks too."""
        if name in columns.channels:
            return pa.float64()
        if name != columns.time:
            # Text, as in .ts files: 007 is not 7.
            return pa.string()
        found = self.sample.rows.schema.field(name).type
        if kind_of(found) == "integer":
            largest = np.abs(self.sample.rows[name].drop_null().to_numpy()).max(initial=0)
            return pa.int64() if largest >= _EXACT else pa.float64()
        return found


def _describe(message: str, n_before: int, names: Sequence[str]) -> str:
    """Translate an error of Arrow's CSV reader; `n_before` lines precede the block."""
    conversion = re.search(
        r"In CSV column #(\d+): (?:Row #(\d+): )?CSV conversion error to (\w+)[^:]*: (.*)", message
    )
    if conversion:
        column, line, type_name, problem = conversion.groups()
        name = names[int(column)] if int(column) < len(names) else column
        expected = "UTF-8 text" if type_name == "string" else "a number"
        problem = f"column {name!r} holds a value that is not {expected}: {problem}"
    elif parse := re.search(r"CSV parse error: (?:Row #(\d+): )?(.*)", message, re.DOTALL):
        line, problem = parse.groups()
        problem = problem.strip()[:200]
    else:
        return f" cannot be read as CSV: {message}"
    return f", line {n_before + int(line)}: {problem}" if line else f": {problem}"
