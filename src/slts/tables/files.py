"""Files of a source, and CSV files with one series each, labelled by a file or by their folders."""

from __future__ import annotations

import glob
import os
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import takewhile
from pathlib import Path
from typing import Any, TypeAlias

from slts.errors import DataError
from slts.extras import LazyModule
from slts.series.dataset import Columns, call
from slts.tables.assembly import TablePart
from slts.tables.roles import (
    FILE_LABEL,
    FOLDER_LABEL,
    ID_NAMES,
    ExpectedColumns,
    RequestedColumns,
    resolve_columns,
    without_column,
)
from slts.tables.rows import FILE_ID, SAMPLE_ROWS, Rows, checked_rows, plain_label
from slts.tables.text import CsvFile, base_suffix, is_compressed

pa: Any = LazyModule("pyarrow", "io")

OnePath: TypeAlias = str | os.PathLike[str]
# The form of a file by its suffix.
_FORM_OF = {
    ".csv": "text", ".tsv": "text", ".parquet": "parquet", ".pq": "parquet", ".feather": "feather",
    ".arrow": "feather", ".ipc": "feather", ".ts": "ts", ".npz": "npz",
}  # fmt: skip
_EXPECTED = (
    ".ts, .csv or .tsv (also compressed: .gz, .bz2 or .zst), .parquet, .feather, .npz, a "
    "folder, a pattern or list of files, or - for CSV from standard input"
)
# The labels of a folder with one CSV file per series.
LABEL_FILE = "labels.csv"
HOW_TO_LABEL = (
    f"add {LABEL_FILE} with a header and the columns file and label, or move the files of every "
    f"class to a folder of its own, whose name is the label"
)
# Columns that are added to the rows of a file: its name, and its group in the file of labels.
_ID, _GROUP = FILE_ID, "(group)"
# Largest number of files that show what the columns are.
_SAMPLE_FILES = 50


@dataclass(frozen=True)
class Files:
    """The files of a source, all of one form: Parquet is one table, CSV has one series per file.

    Attributes
    ----------
    name
        The path, folder, pattern or list, for messages.
    root
        The folder that all files are in.
    names, paths
        The files as they were given, or below the folder or pattern; and their absolute paths.
    form
        What the files are: text, parquet, feather, ts or npz.
    is_one
        Whether the source is the path of one file.
    """

    name: str
    root: Path
    names: tuple[str, ...]
    paths: tuple[Path, ...]
    form: str
    is_one: bool

    @property
    def n_bytes(self) -> int | None:
        """Size of the files, which is similar to the size in memory; None if compressed."""
        if any(is_compressed(path) for path in self.paths):
            return None
        return sum(path.stat().st_size for path in self.paths)


def find_files(source: OnePath | Sequence[OnePath]) -> Files:
    """Return the files of a path, a folder, a pattern or a list, which has its own order."""
    if not isinstance(source, str | os.PathLike):
        names = [os.fspath(path) for path in source]
        more = f" and {len(names) - 1} more" if len(names) > 1 else ""
        parents = [os.path.dirname(os.path.abspath(name)) for name in names]
        return _files(f"{names[0]}{more}", os.path.commonpath(parents), names)
    name = os.fspath(source)
    if os.path.isdir(name):
        return _files(name, name, sorted(_in_folder(Path(name)), key=_natural_order))
    if os.path.exists(name):
        return _files(name, os.path.dirname(os.path.abspath(name)), [name], is_one=True)
    if _has_wildcard(name):
        fixed = takewhile(lambda part: not _has_wildcard(part), Path(name).parts)
        return _files(name, str(Path(*fixed)), sorted(_matches(name), key=_natural_order))
    raise FileNotFoundError(
        f"{name}: there is no such file, folder or data set. (Only local files can be read: "
        f"download others, mount their storage, or use a Dask data frame.)"
    )


def _matches(pattern: str) -> list[str]:
    n_fixed = sum(1 for _ in takewhile(lambda part: not _has_wildcard(part), Path(pattern).parts))
    names = [
        name
        for name in glob.glob(pattern, recursive=True)
        if os.path.isfile(name)
        and not _is_hidden(Path(name).parts[n_fixed:])
        and os.path.basename(name) != LABEL_FILE
    ]
    if not names:
        raise FileNotFoundError(
            f"{pattern}: there is no file of this name, and no file matches it as a pattern "
            f"(*, ? and [] are wildcards; for the files of a folder, add '/*.parquet')"
        )
    return list(dict.fromkeys(names))


def _in_folder(root: Path) -> list[str]:
    """Return the Parquet files of a folder, or its CSV files with one series each."""
    data = [
        path
        for path in root.rglob("*")
        if path.is_file()
        and base_suffix(path) in _FORM_OF
        and not _is_hidden(path.relative_to(root).parts)
    ]
    if not any(_FORM_OF[base_suffix(path)] == "parquet" for path in data):
        texts = [path for path in data if _FORM_OF[base_suffix(path)] == "text"]
        data = [path for path in texts if path.name != LABEL_FILE]
        depths = [len(path.relative_to(root).parts) for path in data]
        data = [path for path, d in zip(data, depths, strict=True) if d == min(depths) <= 2]
    if not data:
        raise DataError(
            f"{root} has neither Parquet files nor CSV files with series, nor folders with CSV "
            f"files, one folder per class. Text files must end in .csv or .tsv; give a file of "
            f"another form by its name"
        )
    return [str(path) for path in data]


def _files(name: str, root: str, names: Iterable[str], *, is_one: bool = False) -> Files:
    """Check that all files have one form that can be read, and that none is listed twice."""
    names = tuple(names)
    paths = tuple(Path(os.path.abspath(file)) for file in names)
    form = _FORM_OF.get(base_suffix(names[0]), "")
    seen: dict[str, str] = {}
    for file in names:
        suffix = base_suffix(file)
        if suffix not in _FORM_OF:
            raise DataError(f"{file} has an unknown suffix; expected {_EXPECTED}")
        if is_compressed(file) and form not in ("text", "ts"):
            raise DataError(
                f"{file}: compressed {suffix} files cannot be read: decompress it first"
            )
        if len(names) > 1 and (_FORM_OF[suffix] != form or form not in ("text", "parquet")):
            raise DataError(
                f"{name}: {file} cannot be read together with {names[0]}. Several files must be "
                f"all Parquet (one table), or all CSV (one series per file): give a pattern such "
                f"as '*.parquet'"
            )
        real = os.path.realpath(file)
        if real in seen:
            raise DataError(
                f"{file} is in {name} twice, also as {seen[real]}: its series would be counted "
                f"twice. Remove one"
            )
        seen[real] = file
    return Files(name, Path(os.path.abspath(root)), names, paths, form, is_one)


def _has_wildcard(path: str) -> bool:
    return any(character in path for character in "*?[")


def _is_hidden(parts: Sequence[str]) -> bool:
    """Tell whether a file is hidden, or was written beside the data, such as ``_SUCCESS``."""
    return any(part.startswith((".", "_")) for part in parts)


def _natural_order(path: str) -> tuple[list[str | int], str]:
    """Sort key that puts part-2 before part-10."""
    split = re.split(r"([0-9]+)", path)
    return [int(text) if k % 2 else text for k, text in enumerate(split)], path


# -- One CSV file per series


@dataclass(frozen=True)
class FilesPart(TablePart):
    """All series of several files: one table in long form, in which the files identify the series.

    Attributes
    ----------
    folder
        The folder that all files are in.
    files
        The files by their names below the folder.
    requested
        What the caller says; `id`, `label` and `groups` are columns of ``labels.csv``.
    """

    folder: Path
    files: dict[str, Path]
    requested: RequestedColumns

    @classmethod
    def of(cls, files: Files, requested: RequestedColumns) -> FilesPart:
        """Find the columns in the first files."""
        if len(requested.ids) > 1:
            raise DataError(
                f"{files.name} has one file per series, so id (--id) must be one column of "
                f"{LABEL_FILE}, got {list(requested.ids)}"
            )
        paths = {path.relative_to(files.root).as_posix(): path for path in files.paths}
        has_labels = (files.root / LABEL_FILE).exists()
        in_folders = any("/" in name for name in paths)
        for role in ("label", "groups"):
            if getattr(requested, role) is not None and not has_labels:
                how = " (the names of its folders are the labels)" if in_folders else ""
                raise DataError(
                    f"{files.name} has no {LABEL_FILE}, so it has no {role}{how}: {HOW_TO_LABEL}"
                )
        label = FILE_LABEL if has_labels else FOLDER_LABEL if in_folders else None
        group = None if requested.groups is None else _GROUP
        columns = _resolve(files, requested)
        columns = replace(columns, label=label or columns.label, groups=group)
        return cls(files.name, files.name, columns, False, files.root, paths, requested)

    def chunks(self, names: Sequence[str], n_rows: int) -> Iterator[Rows]:
        """Read the files in the order of ``labels.csv``, or of their names without it."""
        files, labels = self.files, dict.fromkeys(self.files, ("", ""))
        if FILE_LABEL in names:
            labels = self._labels()
            files = self._labelled_files(labels)
        stored = [n for n in names if n not in (_ID, FILE_LABEL, FOLDER_LABEL, _GROUP)]
        first_names: set[str] = set()
        for number, (id, path) in enumerate(files.items(), start=1):
            table = CsvFile.at(path, str(self._shown / id), one_series=True)
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

    @property
    def _shown(self) -> Path:
        """The folder of the source for messages; a pattern or a list is left out."""
        return Path(self.name if Path(self.name).is_dir() else "")

    def _require_columns(self, table: CsvFile, stored: Sequence[str], first: set[str]) -> None:
        """Raise an error if a file lacks a column, or has another one that may be a channel."""
        wrong = [name for name in stored if name not in table.names]
        if not self.requested.names_channels:
            wrong += sorted(first ^ {*table.names})
        if wrong:
            verb = "has no" if wrong[0] in first else "has another"
            raise DataError(
                f"{table.name} {verb} column {wrong[0]!r}, unlike the first file. "
                f"{without_column(self.columns, wrong[0], table.names)}"
            )

    def _labels(self) -> dict[str, tuple[str, str]]:
        """Read the label of each file, and its group where there are groups."""
        table = CsvFile.at(self.folder / LABEL_FILE, str(self._shown / LABEL_FILE))
        columns = self._label_columns(table)
        labels: dict[str, tuple[str, str]] = {}
        for rows in table.chunks(columns, columns.used(labels=True)):
            roles = checked_rows(rows, columns, labels=True)
            cells = zip(*(column.to_pylist() for column in roles.columns), strict=True)
            for row, (file, *values) in enumerate(cells):
                if file in labels:
                    raise DataError(f"{rows.place(row)}: {file!r} is listed twice")
                labels[file] = values[0], values[-1]
        return labels

    def _label_columns(self, table: CsvFile) -> Columns:
        """Return the columns of ``labels.csv``: file and label, unless others are requested."""
        requested = self.requested
        (id,) = requested.ids or ("file",)
        columns = Columns((), id, label=requested.label or "label", groups=requested.groups)
        for role in ("id", "label", "groups"):
            name = getattr(columns, role)
            if name is not None and name not in table.names:
                raise DataError(
                    f"{table.name} has no column {name!r} ({role}). The columns are "
                    f"{', '.join(table.names)}. Rename one, or use {role}='...' (--{role} ...)"
                )
        return columns

    def _labelled_files(self, labels: dict[str, tuple[str, str]]) -> dict[str, Path]:
        """Return the files in the order of the labels; every file must have a label."""
        listing = self._shown / LABEL_FILE
        by_form = {plain_label(name.split(".", 1)[0]): path for name, path in self.files.items()}
        by_form |= {plain_label(name): path for name, path in self.files.items()}
        files: dict[str, Path] = {}
        for name in labels:
            path = self.files.get(name, by_form.get(name))
            if path is not None:
                files[name] = path
            elif self._shown.name:
                # A pattern and a list may be some of the files.
                first = next(iter(self.files))
                pattern = "*/" * first.count("/") + f"*{Path(first).suffix}"
                raise DataError(
                    f"{listing} names {name!r}, which is not in the folder. Correct the name; or, "
                    f"to read only the files that exist, replace the folder by a pattern: "
                    f"{str(self._shown / pattern)!r}"
                )
        labelled = set(files.values())
        unlabelled = [name for name, path in self.files.items() if path not in labelled]
        if unlabelled:
            raise DataError(
                f"{unlabelled[0]!r} has no label in {listing} ({len(unlabelled)} without labels)"
            )
        return files


def _resolve(files: Files, requested: RequestedColumns) -> Columns:
    """Find the columns in the first rows of the first files."""
    first = CsvFile.at(files.paths[0], files.names[0], one_series=True)
    samples, n_rows = list[Any](), 0
    for name, path in zip(files.names[:_SAMPLE_FILES], files.paths, strict=False):
        file = CsvFile.at(path, name, one_series=True)
        # Reading a file with other columns explains how it differs.
        if n_rows < SAMPLE_ROWS and {*file.names} == {*first.names}:
            sample = file.sample.table.select(list(first.names))
            samples.append(sample.append_column(_ID, pa.array([name] * len(sample))))
            n_rows += len(sample)
    try:
        rows = Rows(pa.concat_tables(samples, promote_options="permissive"), first)
    except pa.ArrowException:
        # Reading the file with other types names the line.
        rows = Rows(samples[0], first)
    ids = [n for n in first.names if n.lower() in ID_NAMES and len(samples[0][n].unique()) > 1]
    if files.is_one and ids:
        raise DataError(
            f"{files.name}: {ids[0]!r} has several values, but the model was trained on one file "
            f"per series. If it identifies series, use {call('id', ids[0])}; else rename it"
        )
    wanted = replace(requested, id=_ID, label=None, groups=None)
    if not first.has_header:
        wanted = replace(wanted, expected=ExpectedColumns())
    return first.clear(resolve_columns(rows, wanted, has_header=first.has_header, one_series=True))
