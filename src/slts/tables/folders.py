"""CSV files with one series each; labels are in a file, or are the names of folders."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from slts.errors import DataError
from slts.extras import LazyModule
from slts.series.dataset import Columns
from slts.tables.assembly import checked_rows, used_columns
from slts.tables.columns import SAMPLE_ROWS, Rows
from slts.tables.paths import LABEL_FILE, Files
from slts.tables.roles import (
    FILE_LABEL,
    FOLDER_LABEL,
    ExpectedColumns,
    RequestedColumns,
    resolve_columns,
)
from slts.tables.scan import TablePart
from slts.tables.text import CsvFile, with_text_times

pa: Any = LazyModule("pyarrow", "io")

HOW_TO_LABEL = (
    f"add {LABEL_FILE} with a header and the columns file and label, or move the files of every "
    f"class to a folder of its own, whose name is the label"
)
_FILE_COLUMNS = ("file", "filename", "path", "name", "id", "series")
_LABEL_COLUMNS = ("label", "class", "target", "category", "y")
# Columns that are added to the rows of a file: its name, and its group in the file of labels.
_ID, _GROUP = "(file)", "(group)"
# Largest number of files that show what the columns are.
_SAMPLE_FILES = 50


@dataclass(frozen=True)
class FilesPart(TablePart):
    """All series of several files: one table in long form, in which the files identify the series.

    Attributes
    ----------
    name, folder
        The source as it was given, and the folder that all files are in.
    files
        The files by their names below the folder.
    columns
        Role of each column.
    requested
        What the caller says; `id`, `label` and `groups` are columns of ``labels.csv``.
    """

    name: str
    folder: Path
    files: dict[str, Path]
    columns: Columns
    requested: RequestedColumns
    whole = False

    @classmethod
    def of(cls, files: Files, requested: RequestedColumns) -> FilesPart:
        """Find the columns in the first files."""
        if len(requested.ids) > 1:
            raise DataError(
                f"{files.name} has one file per series, so id (--id) must be one column of "
                f"{LABEL_FILE}, got {list(requested.ids)}"
            )
        folder = files.root if files.root.is_dir() else files.root.parent
        paths = {path.relative_to(folder).as_posix(): path for path in files.paths}
        has_labels = (folder / LABEL_FILE).exists()
        in_folders = any("/" in name for name in paths)
        for role in ("label", "groups"):
            if getattr(requested, role) is not None and not has_labels:
                how = HOW_TO_LABEL
                if role == "groups":
                    how = f"add it, with the columns file, label and {requested.groups}"
                elif in_folders:
                    how = "the names of its folders are the labels"
                raise DataError(f"{files.name} has no {LABEL_FILE}, so it has no {role}: {how}")
        label = FILE_LABEL if has_labels else FOLDER_LABEL if in_folders else None
        group = None if requested.groups is None else _GROUP
        columns = _resolve(files, requested)
        columns = replace(columns, label=label or columns.label, groups=group)
        return cls(files.name, folder, paths, columns, requested)

    def chunks(self, names: Sequence[str], n_rows: int) -> Iterator[Rows]:
        """Read the files in the order of ``labels.csv``, or of their names without it."""
        files, labels = self.files, dict.fromkeys(self.files, ("", ""))
        if FILE_LABEL in names:
            labels = self._labels()
            files = self._labelled_files(labels)
        stored = [n for n in names if n not in (_ID, FILE_LABEL, FOLDER_LABEL, _GROUP)]
        first_names: set[str] = set()
        for number, (id, path) in enumerate(files.items(), start=1):
            table = CsvFile.at(path, str(Path(_shown(self.name), id)), one_series=True)
            first_names = first_names or {*table.names}
            self._require_columns(table, stored, first_names)
            label, group = labels[id]
            added = {_ID: id, FILE_LABEL: label, FOLDER_LABEL: path.parent.name, _GROUP: group}
            for rows in table.chunks(self.columns, stored):
                arrays = [
                    pa.array([added[name]] * len(rows)) if name in added else rows.table[name]
                    for name in names
                ]
                filled = pa.table(arrays, names=list(names))
                yield replace(rows, table=filled, share=number / len(files))

    def _require_columns(self, table: CsvFile, stored: Sequence[str], first: set[str]) -> None:
        """Raise an error if a file lacks a column, or has another one that may be a channel."""
        wrong = [name for name in stored if name not in table.names]
        if not self.requested.names_channels:
            wrong += sorted(first ^ {*table.names})
        if wrong:
            verb = "has no" if wrong[0] in first else "has another"
            raise DataError(
                f"{table.name} {verb} column {wrong[0]!r}, unlike the first file. Name the columns "
                f"to use: channels=[...] (--channels ...)"
            )

    def _labels(self) -> dict[str, tuple[str, str]]:
        """Read the label of each file, and its group where there are groups."""
        listing = str(Path(_shown(self.name), LABEL_FILE))
        table = CsvFile.at(self.folder / LABEL_FILE, listing)
        if len(table.names) < 2:
            raise DataError(f"{listing} must have two columns, file and label")
        requested = self.requested
        for role, name in {"label": requested.label, "groups": requested.groups}.items():
            if name is not None and name not in table.names:
                raise DataError(
                    f"{listing} has no column {name!r} ({role}). The columns are "
                    f"{', '.join(table.names)}"
                )
        id = requested.ids[0] if requested.ids else _usual(table.names, _FILE_COLUMNS)
        if id not in table.names or (self.folder / id).is_file():
            raise DataError(f"{listing}: the first line must name the columns, file and label")
        others = [name for name in table.names if name != id]
        label = requested.label or _usual(others, _LABEL_COLUMNS)
        columns = Columns((), id=id, label=label, groups=requested.groups)
        labels: dict[str, tuple[str, str]] = {}
        for rows in table.chunks(columns, used_columns(columns, labels=True)):
            roles = checked_rows(rows, columns, labels=True)
            cells = [[cell.strip() for cell in c.to_pylist()] for c in roles.columns]
            for row, (file, *values) in enumerate(zip(*cells, strict=True)):
                if file in labels:
                    raise DataError(f"{rows.place(row)}: {file!r} is listed twice")
                labels[file] = values[0], values[-1]
        return labels

    def _labelled_files(self, labels: dict[str, tuple[str, str]]) -> dict[str, Path]:
        """Return the files in the order of the labels; every file must have a label."""
        listing = Path(_shown(self.name), LABEL_FILE)
        without_suffix = {name.split(".", 1)[0]: path for name, path in self.files.items()}
        files: dict[str, Path] = {}
        for name in labels:
            path = self.files.get(name, without_suffix.get(name))
            if path is not None:
                files[name] = path
            elif _shown(self.name):
                # A pattern and a list may be some of the files.
                raise DataError(f"{listing} names {name!r}, which is not in the folder")
        labelled = set(files.values())
        unlabelled = [name for name, path in self.files.items() if path not in labelled]
        if unlabelled:
            more = f" (the first of {len(unlabelled)} files)" if len(unlabelled) > 1 else ""
            raise DataError(f"{unlabelled[0]!r} has no label in {listing}{more}")
        return files


def _shown(name: str) -> str:
    """Return the folder of a source for messages; a pattern or a list is left out."""
    return name if Path(name).is_dir() else ""


def _usual(names: Sequence[str], usual: Sequence[str]) -> str:
    """Return the column with the first of some usual names, else the first column."""
    return next((name for name in usual if name in names), names[0])


def _resolve(files: Files, requested: RequestedColumns) -> Columns:
    """Find the columns in the first rows of the first files."""
    samples, n_rows, first = list[Any](), 0, None
    for name, path in zip(files.names[:_SAMPLE_FILES], files.paths, strict=False):
        file = CsvFile.at(path, name, one_series=True)
        first = first or file
        # Reading a file with other columns explains how it differs.
        if n_rows < SAMPLE_ROWS and {*file.names} == {*first.names}:
            sample = file.sample.table.select(list(first.names))
            samples.append(sample.append_column(_ID, pa.array([name] * len(sample))))
            n_rows += len(sample)
    assert first is not None
    try:
        rows = Rows(pa.concat_tables(samples, promote_options="permissive"), first)
    except pa.ArrowException:
        # Reading the file with other types names the line.
        rows = Rows(samples[0], first)
    wanted = replace(requested, id=_ID, label=None, groups=None)
    if not first.has_header:
        wanted = replace(wanted, expected=ExpectedColumns())
    return with_text_times(
        resolve_columns(rows, wanted, has_header=first.has_header, one_series=True)
    )


@dataclass(frozen=True)
class CsvPart(TablePart):
    """All of a CSV file."""

    name: str
    table: CsvFile
    columns: Columns
    whole: bool

    def chunks(self, names: Sequence[str], n_rows: int) -> Iterator[Rows]:
        """Read some columns; see `TablePart.chunks`."""
        for rows in self.table.chunks(self.columns, names):
            for start in range(0, len(rows), n_rows):
                yield rows.between(start, min(len(rows), start + n_rows))
