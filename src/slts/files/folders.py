"""A folder with one CSV file per series; labels are in a file, or are the names of folders."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from slts.columns import Columns, RequestedColumns, resolve_columns
from slts.columns.rows import SAMPLE_ROWS, Chunk
from slts.errors import DataError
from slts.extras import LazyModule
from slts.files.paths import TEXT_SUFFIXES, base_suffix
from slts.files.scan import TablePart
from slts.files.text_files import CsvTable, open_text
from slts.series.long_tables import role_columns

pa: Any = LazyModule("pyarrow", "io")

_LABEL_FILE = "labels.csv"
HOW_TO_LABEL = (
    f"add {_LABEL_FILE} with a header and the columns file and label, or move the files of every "
    f"class to a folder of its own, whose name is the label"
)
_FILE_COLUMNS = ("file", "filename", "path", "name", "id", "series")
_LABEL_COLUMNS = ("label", "class", "target", "category", "y")
# Columns that are added to the rows of a file: its name, its label and group in the file of labels,
# and the name of its folder.
_ID, _LABEL, _GROUP, _FOLDER = "(file)", "(label)", "(group)", "(folder)"
# Largest number of files from which the columns are guessed.
_SAMPLE_FILES = 50


def series_files(folder: Path) -> list[Path]:
    """Return the CSV files of a folder, or of its folders, in the order of their names."""
    found = [path for pattern in ("*", "*/*") for path in folder.glob(pattern)]
    files = sorted(
        path
        for path in found
        if base_suffix(path) in TEXT_SUFFIXES
        and path.name != _LABEL_FILE
        and not any(part.startswith(".") for part in path.relative_to(folder).parts)
        and path.is_file()
    )
    return [path for path in files if path.parent == folder] or files


@dataclass(frozen=True)
class FolderPart(TablePart):
    """All series of a folder: one table in long form, in which the files identify the series.

    Attributes
    ----------
    name
        The folder, as it was given.
    folder
        Its absolute path.
    requested
        What is known about the columns; `id`, `label` and `groups` are columns of ``labels.csv``.
        Without this file, files in folders are labelled by the names of their folders.
    columns
        Role of each column.
    """

    name: str
    folder: Path
    requested: RequestedColumns
    columns: Columns

    @classmethod
    def at(cls, given: str, folder: Path, requested: RequestedColumns) -> FolderPart:
        """Find the columns in the first files."""
        if not isinstance(requested.id, str | None):
            raise DataError(
                f"{given} has one file per series, so --id (id=) must be one column of "
                f"{_LABEL_FILE}, got {list(requested.id)}"
            )
        has_labels, files = (folder / _LABEL_FILE).exists(), series_files(folder)
        label = None if files[0].parent == folder else _FOLDER
        for role in ("label", "groups"):
            name = getattr(requested, role)
            if name is not None and not has_labels:
                how = HOW_TO_LABEL if label is None else "the names of its folders are the labels"
                if role == "groups":
                    how = f"add it, with the columns file, label and {name}"
                raise DataError(
                    f"{given} has no {_LABEL_FILE}, so it has no {role} {name!r}: {how}"
                )
        sample, has_header = _sample(given, folder, files)
        known = requested if has_header else requested.without_names()
        found = resolve_columns(sample, replace(known, id=_ID, label=None, groups=None))
        columns = replace(
            found,
            label=_LABEL if has_labels else label,
            groups=None if requested.groups is None else _GROUP,
            guessed=found.guessed - {"label"},
            label_candidates=(),
            has_header=has_header,
        )
        return cls(given, folder, requested, columns)

    def chunks(self, names: Sequence[str], n_rows: int) -> Iterator[Chunk]:
        """Read the files in the order of ``labels.csv``, or of their names without it."""
        paths = series_files(self.folder)
        files = {path.relative_to(self.folder).as_posix(): path for path in paths}
        labels = dict.fromkeys(files, ("", ""))
        if _LABEL in names:
            labels = self._labels()
            files = self._labelled_files(files, labels)
        stored = [name for name in names if name not in (_ID, _LABEL, _GROUP, _FOLDER)]
        values = (*self.columns.channels, *self.columns.constant)
        requested = RequestedColumns(
            time=self.columns.time, channels=values, skip=self.columns.skip
        )
        for number, (id, path) in enumerate(files.items(), start=1):
            label, group = labels[id]
            added = {_ID: id, _LABEL: label, _GROUP: group, _FOLDER: path.parent.name}
            with _open(path, self.name, self.folder) as table:
                columns = resolve_columns(table.sample, requested, one_series=True)
                for chunk in table.chunks(columns, stored):
                    arrays = [
                        pa.array([added[name]] * len(chunk)) if name in added else chunk.rows[name]
                        for name in names
                    ]
                    rows = pa.table(arrays, names=list(names))
                    yield replace(chunk, rows=rows, share=number / len(files))

    def _labels(self) -> dict[str, tuple[str, str]]:
        """Read the label of each file, and its group where there are groups."""
        found: dict[str, tuple[str, str]] = {}
        with open_text(self.folder / _LABEL_FILE, str(Path(self.name, _LABEL_FILE))) as text:
            table = CsvTable(text, ".csv")
            if len(table.names) < 2:
                raise DataError(f"{text.name} must have two columns, file and label")
            given = self.requested
            wanted = RequestedColumns(given.id, label=given.label, groups=given.groups)
            resolve_columns(table.sample, wanted, one_series=True)  # they exist
            known = [name for name in _FILE_COLUMNS if name in table.names]
            id = given.id or next(iter(known), table.names[0])
            if (self.folder / str(id)).is_file():
                raise DataError(
                    f"{text.name}: the first line must name the columns, file and label"
                )
            others = [name for name in table.names if name != id]
            known = [name for name in _LABEL_COLUMNS if name in others]
            label = given.label or next(iter(known), others[0])
            columns = Columns(str(id), None, label, (), groups=given.groups)
            for chunk in table.chunks(columns, columns.used(labels=True)):
                roles = role_columns(chunk, columns, labels=True)
                cells = [[cell.strip() for cell in c.to_pylist()] for c in roles.values()]
                for row, (file, *labels) in enumerate(zip(*cells, strict=True)):
                    if file in found:
                        raise DataError(f"{chunk.place(row)}: {file!r} is listed twice")
                    found[file] = labels[0], labels[-1]
        return found

    def _labelled_files(self, files: dict[str, Path], labels: Iterable[str]) -> dict[str, Path]:
        """Return the files in the order of the labels; every file must have a label."""
        listing = Path(self.name, _LABEL_FILE)
        without_suffix = {name.split(".", 1)[0]: path for name, path in files.items()}
        found: dict[str, Path] = {}
        for name in labels:
            path = files.get(name, without_suffix.get(name))
            if path is None:
                raise DataError(f"{listing} names {name!r}, which is not in the folder")
            found[name] = path
        labelled = set(found.values())
        unlabelled = sorted(name for name, path in files.items() if path not in labelled)
        if unlabelled:
            more = f" (the first of {len(unlabelled)} files)" if len(unlabelled) > 1 else ""
            raise DataError(f"{unlabelled[0]!r} has no label in {listing}{more}")
        return found


@contextmanager
def _open(path: Path, given: str, folder: Path) -> Iterator[CsvTable]:
    with open_text(path, str(Path(given, path.relative_to(folder)))) as file:
        yield CsvTable(file, base_suffix(path), one_series=True)


@dataclass(frozen=True)
class _Samples(Chunk):
    """First rows of several files."""

    parts: tuple[Chunk, ...] = ()

    def place(self, row: int) -> str:
        for part in self.parts:
            if row < len(part):
                return part.place(row)
            row -= len(part)
        raise IndexError(row)


def _sample(given: str, folder: Path, files: Sequence[Path]) -> tuple[Chunk, bool]:
    """Read the first rows of the first files; return them, and whether the first has a header."""
    parts: list[Chunk] = []
    n_rows, has_header, rows = 0, False, None
    for number, path in enumerate(files[:_SAMPLE_FILES]):
        with _open(path, given, folder) as table:
            sample = table.sample
        if number == 0:
            has_header = table.has_header
            if not len(sample):
                raise DataError(f"{sample.file} has no rows")
        try:
            named = sample.rows.append_column(_ID, pa.array([str(path)] * len(sample)))
            if rows is not None:
                named = pa.concat_tables(
                    [rows, named.select(rows.column_names)], promote_options="permissive"
                )
        except (KeyError, pa.ArrowException):
            # Reading this file explains how it differs.
            break
        rows, n_rows = named, n_rows + len(sample)
        parts.append(sample)
        if n_rows >= SAMPLE_ROWS:
            break
    return _Samples(rows, parts[0].file, parts=tuple(parts)), has_header
