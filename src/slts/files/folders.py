"""A folder with one CSV file per series, and a file with their labels."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from slts.errors import DataError
from slts.extras import LazyModule
from slts.files.columns import RequestedColumns, resolve_columns
from slts.files.dataset import Columns
from slts.files.paths import TEXT_SUFFIXES, base_suffix
from slts.files.tables import Chunk, TablePart
from slts.files.text_files import CsvTable, open_text

pa: Any = LazyModule("pyarrow", "io")

_LABEL_FILE = "labels.csv"
_FILE_COLUMNS = ("file", "filename", "path", "name", "id", "series")
_LABEL_COLUMNS = ("label", "class", "target", "category", "y")
# Columns that are added to the rows of a file.
_ID, _LABEL, _GROUP = "(file)", "(label)", "(group)"


def series_files(folder: Path) -> list[Path]:
    """Return the CSV files of a folder in the order of their names, without the labels."""
    return sorted(
        path
        for path in folder.iterdir()
        if base_suffix(path) in TEXT_SUFFIXES
        and path.name != _LABEL_FILE
        and not path.name.startswith(".")
    )


@dataclass(frozen=True)
class FolderPart(TablePart):
    """All series of a folder: one table in long form, in which the files identify the series.

    Attributes
    ----------
    given
        The folder, as it was given.
    folder
        Its absolute path.
    requested
        What is known about the columns; `id`, `label` and `groups` are columns of ``labels.csv``.
    columns
        Role of each column.
    has_header
        Whether the first file names its columns.
    """

    given: str
    folder: Path
    requested: RequestedColumns
    columns: Columns
    has_header: bool

    @classmethod
    def at(cls, given: str, folder: Path, requested: RequestedColumns) -> FolderPart:
        """Find the columns in the first file."""
        has_labels = (folder / _LABEL_FILE).exists()
        for role in ("label", "groups"):
            if getattr(requested, role) is not None and not has_labels:
                name = getattr(requested, role)
                raise DataError(f"{given} has no {_LABEL_FILE}, so it has no {role} {name!r}")
        first = series_files(folder)[0]
        with _open(first, str(Path(given, first.name))) as table:
            found = _columns_of(table, requested)
            group = None if requested.groups is None else _GROUP
            columns = replace(found, id=_ID, label=_LABEL if has_labels else None, groups=group)
            return cls(given, folder, requested, columns, table.has_header)

    @property
    def name(self) -> str:
        """Name for messages."""
        return self.given

    @property
    def channel_names(self) -> tuple[str, ...] | None:
        """Names of the channels; None if the files have no header."""
        return self.columns.channels if self.has_header else None

    def chunks(self, names: Sequence[str], n_rows: int) -> Iterator[Chunk]:
        """Read the files in the order of ``labels.csv``, or of their names without it."""
        files = {path.name: path for path in series_files(self.folder)}
        labels = dict.fromkeys(files, ("", ""))
        if _LABEL in names:
            labels = self._labels()
            files = self._labelled_files(files, labels)
        requested = RequestedColumns(
            time=self.columns.time, channels=self.columns.channels, skip=self.columns.skip
        )
        for number, (id, path) in enumerate(files.items(), start=1):
            added = dict(zip((_ID, _LABEL, _GROUP), (id, *labels[id]), strict=True))
            with _open(path, str(Path(self.given, path.name))) as table:
                columns = _columns_of(table, requested)
                stored = [name for name in names if name not in added]
                for chunk in table.chunks(columns, stored):
                    arrays = [
                        pa.array([added[name]] * len(chunk)) if name in added else chunk.rows[name]
                        for name in names
                    ]
                    rows = pa.table(arrays, names=list(names))
                    yield replace(chunk, rows=rows, share=number / len(files))

    def _labels(self) -> dict[str, tuple[str, str]]:
        """Read the label of each file, and its group where there are groups."""
        name = Path(self.given, _LABEL_FILE)
        try:
            text = (self.folder / _LABEL_FILE).read_text(encoding="utf-8-sig")
        except UnicodeDecodeError as error:
            raise DataError(f"{name} is not UTF-8 text: {error}") from error
        delimiter = max(",;\t", key=text.split("\n", 1)[0].count)
        rows = [row for row in csv.reader(io.StringIO(text), delimiter=delimiter) if row]
        if not rows or len(rows[0]) < 2:
            raise DataError(f"{name} must have two columns, file and label")
        header = [column.strip() for column in rows[0]]
        files = _position(header, self.requested.id, _FILE_COLUMNS, 0, name)
        classes = _position(header, self.requested.label, _LABEL_COLUMNS, 1 - min(files, 1), name)
        groups = None
        if self.requested.groups is not None:
            groups = _position(header, self.requested.groups, (), 0, name)
        found: dict[str, tuple[str, str]] = {}
        for line, row in enumerate(rows[1:], start=2):
            if len(row) != len(header):
                raise DataError(f"{name}, line {line}: {len(row)} columns, expected {len(header)}")
            file, label = row[files].strip(), row[classes].strip()
            group = "" if groups is None else row[groups].strip()
            if not file or not label:
                raise DataError(f"{name}, line {line}: file or label is missing")
            if groups is not None and not group:
                raise DataError(f"{name}, line {line}: {header[groups]!r} (groups) is missing")
            if file in found:
                raise DataError(f"{name}, line {line}: {file!r} is listed twice")
            found[file] = label, group
        return found

    def _labelled_files(self, files: dict[str, Path], labels: Iterable[str]) -> dict[str, Path]:
        """Return the files in the order of the labels; every file must have a label."""
        listing = Path(self.given, _LABEL_FILE)
        without_suffix = {name.split(".", 1)[0]: path for name, path in files.items()}
        found: dict[str, Path] = {}
        for name in labels:
            path = files.get(name, without_suffix.get(name))
            if path is None:
                raise DataError(f"{listing} names {name!r}, which is not in the folder")
            found[name] = path
        unlabelled = sorted(files.keys() - {path.name for path in found.values()})
        if unlabelled:
            more = f", nor have {len(unlabelled) - 1} more files" if len(unlabelled) > 1 else ""
            raise DataError(f"{unlabelled[0]!r} has no label in {listing}{more}")
        return found


@contextmanager
def _open(path: Path, name: str) -> Iterator[CsvTable]:
    with open_text(path, name) as file:
        yield CsvTable(file, base_suffix(path), needs_header=False)


def _columns_of(table: CsvTable, requested: RequestedColumns) -> Columns:
    # Without a header, the names of columns are numbers, which no model knows.
    expect = requested.expect if table.has_header else None
    requested = replace(requested, id=None, label=None, groups=None, expect=expect)
    return resolve_columns(table.sample, requested, one_series=True)


def _position(
    header: Sequence[str], requested: str | None, names: Sequence[str], default: int, file: Path
) -> int:
    if requested is None:
        return next((header.index(name) for name in names if name in header), default)
    if requested not in header:
        raise DataError(f"{file} has no column {requested!r}; its columns are {', '.join(header)}")
    return header.index(requested)
