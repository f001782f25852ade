"""CSV as a table: delimiter, decimal mark and types found in the first block, then streamed."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np

from slts.errors import DataError
from slts.extras import import_extra
from slts.files.chunks import Chunk
from slts.files.columns import kind_of
from slts.files.dataset import Columns
from slts.files.opening import Source

__all__ = ["CsvTable"]

# What is looked at to find delimiter and types, in bytes; also the block that is read at a time.
_BLOCK = 1 << 20
# Larger integers are not all floats.
_EXACT = 2**53


class CsvTable:
    """A CSV file, read once from front to back.

    Blocks are cut here and not by Arrow's own streaming reader: that one reads ahead in a thread,
    which nothing can interrupt while it waits for standard input.

    Parameters
    ----------
    source
        The open file.
    suffix
        ``".tsv"`` stands for tabs; otherwise the header tells the delimiter.
    needs_header
        Whether a first line of numbers is an error; else it is data, and the columns are named
        "0", "1", ...
    """

    def __init__(self, source: Source, suffix: str = ".csv", *, needs_header: bool = True) -> None:
        self._source = source
        begin = source.read(_BLOCK)
        self._ends_in_line = len(begin) == _BLOCK
        begin = begin.removeprefix(b"\xef\xbb\xbf").lstrip(b"\r\n")
        first, _, self._data = begin.partition(b"\n")
        try:
            line = first.decode().strip("\r")
        except UnicodeDecodeError as error:
            raise DataError(f"{self.name} is not text in UTF-8: {error}") from error
        if not line.strip():
            raise DataError(f"{self.name} is empty: it is not a CSV file")
        self._delimiter = "\t" if suffix == ".tsv" else max(",;\t|", key=line.count)
        cells = next(csv.reader([line], delimiter=self._delimiter))
        self._has_header = not all(_is_number(cell) for cell in cells)
        if self._has_header:
            self._names = [cell.strip() for cell in cells]
        elif needs_header:
            raise DataError(
                f"{self.name} begins with numbers, {line.strip()[:60]!r}: its first line must name "
                f"the columns"
            )
        else:
            self._names = [str(c) for c in range(len(cells))]
            self._data = begin
        comma = rb"(?:^|[;\t|])\s*-?\d*,\d+\s*(?:[;\t|\r]|$)"
        decimal_comma = self._delimiter != "," and re.search(comma, self._data, re.MULTILINE)
        self._decimal = "," if decimal_comma else "."

    @property
    def name(self) -> str:
        """Name of the file."""
        return self._source.name

    @property
    def has_header(self) -> bool:
        """Whether the first line names the columns."""
        return self._has_header

    @cached_property
    def sample(self) -> Any:
        """The first block, with types as they look."""
        block = self._data
        if self._ends_in_line:
            block = block[: block.rfind(b"\n") + 1]
        return self._parsed(block, 1 + self._has_header, self._names, {})

    def place(self, row: int) -> str:
        """Name a row of the sample by its line."""
        return _Lines(self.name, 1 + self._has_header)(row)

    def chunks(self, columns: Columns, names: Sequence[str], rows: int) -> Iterator[Chunk]:
        """Give the columns block by block; `rows` has no say in the size of a block."""
        types = {name: self._type(name, columns) for name in names}
        line = 1 + self._has_header
        for block in self._blocks():
            table = self._parsed(block, line, names, types)
            yield Chunk(table, _Lines(self.name, line), self._source.share)
            line += block.count(b"\n")

    def _blocks(self) -> Iterator[bytes]:
        """Cut the rest of the file between lines."""
        waiting = self._data
        while True:
            cut = waiting.rfind(b"\n") + 1
            if waiting[:cut].strip():
                yield waiting[:cut]
            waiting = waiting[cut:]
            more = self._source.read(_BLOCK)
            if not more:
                break
            waiting += more
        if waiting.strip():
            yield waiting

    def _parsed(
        self, block: bytes, line: int, names: Sequence[str], types: Mapping[str, Any]
    ) -> Any:
        """Parse lines, the first of which has number `line`."""
        pa: Any = import_extra("pyarrow", "io")
        arrow_csv: Any = import_extra("pyarrow.csv", "io")
        if not block.strip():
            return pa.table({name: [] for name in dict.fromkeys(names)})
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
            reason = _reason(str(error), line - 1, self._names)
            raise DataError(f"{self.name}{reason}") from error
        return table if len(names) == len(self._names) else table.select(list(names))

    def _type(self, name: str, columns: Columns) -> Any:
        """Type to read a column as, whatever the first block looks like."""
        pa: Any = import_extra("pyarrow", "io")
        if name in columns.channels:
            return pa.float64()
        if name != columns.time:
            # Text, as in .ts files: 007 is not 7.
            return pa.string()
        found = self.sample.schema.field(name).type
        if kind_of(found) == "integer":
            largest = np.abs(self.sample[name].drop_null().to_numpy()).max(initial=0)
            return pa.int64() if largest >= _EXACT else pa.float64()
        return found


class _Lines:
    """Names rows by their lines, counted from 1 as editors do."""

    def __init__(self, name: str, first: int) -> None:
        self._name = name
        self._first = first

    def __call__(self, row: int) -> str:
        return f"{self._name}, line {self._first + row}"


def _reason(message: str, before: int, names: Sequence[str]) -> str:
    """Put what Arrow says of a CSV file in our words."""
    conversion = re.search(
        r"In CSV column #(\d+): (?:Row #(\d+): )?CSV conversion error to (\w+)[^:]*: (.*)", message
    )
    if conversion:
        column, line, type_name, problem = conversion.groups()
        name = names[int(column)] if int(column) < len(names) else column
        place = f", line {before + int(line)}" if line else ""
        expected = "text in UTF-8" if type_name == "string" else "number"
        return f"{place}: column {name!r} holds something that is no {expected}: {problem}"
    parse = re.search(r"CSV parse error: (?:Row #(\d+): )?(.*)", message, re.DOTALL)
    if parse:
        line, problem = parse.groups()
        place = f", line {before + int(line)}" if line else ""
        return f"{place}: {problem.strip()[:200]}"
    return f" cannot be read as CSV: {message}"


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
