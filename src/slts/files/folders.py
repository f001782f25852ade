"""A folder with one CSV per series, and a file that gives their labels."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from slts.errors import DataError
from slts.extras import import_extra
from slts.files.chunks import BATCH_BYTES, check_chunk
from slts.files.columns import Wanted, resolve_columns
from slts.files.csv_tables import CsvTable
from slts.files.dataset import Dataset, join
from slts.files.opening import base_suffix, open_source
from slts.series import SeriesBatch, as_series

__all__ = ["LABEL_FILE", "iter_folder", "series_files"]

LABEL_FILE = "labels.csv"
_FILE_NAMES = ("file", "filename", "path", "name", "id", "series")
_LABEL_NAMES = ("label", "class", "target", "category", "y")
# Stands for the column of identifiers that a file of one series does not have.
_FILE = "(file)"


def series_files(folder: Path) -> list[Path]:
    """Return the CSV files of a folder, sorted by name, without the file of labels."""
    return sorted(
        path
        for path in folder.iterdir()
        if base_suffix(path) in (".csv", ".tsv")
        and path.name != LABEL_FILE
        and not path.name.startswith(".")
    )


def iter_folder(
    folder: Path, wanted: Wanted, *, labels: bool, batch_size: int
) -> Iterator[Dataset]:
    """Read a folder batch by batch.

    Parameters
    ----------
    folder : Path
        One CSV per series, a row per step; `labels.csv` has columns file and label.
    wanted : Wanted
        Columns of the CSV files; `id` and `label` are columns of `labels.csv`.
    labels : bool
        Whether to read labels; without, every CSV of the folder is a series.
    batch_size : int
        Series in a batch, at most.

    Yields
    ------
    Dataset
        The next series, in the order of `labels.csv`, or of the names without one.
    """
    given = _labels(folder, wanted) if labels else None
    files = {path.name: path for path in series_files(folder)}
    if not files:
        raise DataError(f"{folder} holds no CSV file")
    if given is not None:
        files = _in_order(folder, files, list(given))
    columns = None
    wanted = replace(wanted, id=None, label=None)
    names = list(files)
    start = 0
    while start < len(names):
        parts: list[Dataset] = []
        n_bytes = 0
        for name in names[start : start + batch_size]:
            part = _read_one(files[name], wanted)
            if columns is None:
                columns = part.columns
                assert columns is not None
                wanted = Wanted(time=columns.time, channels=columns.channels)
            parts.append(part)
            n_bytes += part.series.values.nbytes
            if n_bytes >= BATCH_BYTES:
                break
        whole = join(parts)
        chosen = names[start : start + len(parts)]
        start += len(parts)
        yield Dataset(
            whole.series,
            None if given is None else np.array([given[name] for name in chosen]),
            np.array(chosen),
            str(folder),
            columns,
            whole.notes,
            start / len(names),
        )


def _read_one(path: Path, wanted: Wanted) -> Dataset:
    pa: Any = import_extra("pyarrow", "io")
    with open_source(path) as source:
        table = CsvTable(source, base_suffix(path), needs_header=False)
        if not table.has_header:
            # Columns are numbers then, which no model knows.
            wanted = replace(wanted, expect=None)
        columns = resolve_columns(
            table.sample, wanted, table.name, place=table.place, one_series=True
        )
        names = [*([] if columns.time is None else [columns.time]), *columns.channels]
        chunks = [check_chunk(c, columns, names).rows for c in table.chunks(columns, names, 0)]
        named = table.has_header
    rows = pa.concat_tables(chunks) if chunks else None
    if rows is None or rows.num_rows == 0:
        raise DataError(f"{path} has no rows: a series has at least one step")
    notes: tuple[str, ...] = ()
    if columns.time is not None and _falls(rows[columns.time].to_numpy()):
        notes = (f"steps were sorted by {columns.time!r}: some files have them out of order",)
    rows = rows.append_column(_FILE, pa.array([path.name] * rows.num_rows))
    try:
        series = as_series(rows, id=_FILE, time=columns.time, channels=columns.channels)
    except DataError as error:
        raise DataError(f"{path}: {error}") from error
    if not named:
        series = SeriesBatch.from_checked(series.values, series.offsets, None)
    return Dataset(series, columns=columns, notes=notes)


def _falls(times: Any) -> bool:
    return bool((times[1:] < times[:-1]).any())


def _labels(folder: Path, wanted: Wanted) -> dict[str, str] | None:
    """Read which file has which label; None without a file of labels."""
    path = folder / LABEL_FILE
    if not path.exists():
        if wanted.label is not None:
            raise DataError(f"{folder} has no {LABEL_FILE}, whose column {wanted.label!r} is asked")
        return None
    try:
        text = path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise DataError(f"{path} is not text in UTF-8: {error}") from error
    delimiter = max(",;\t", key=text.split("\n", 1)[0].count)
    rows = [row for row in csv.reader(io.StringIO(text), delimiter=delimiter) if row]
    if not rows or len(rows[0]) < 2:
        raise DataError(f"{path} must have two columns, file and label")
    header = [name.strip() for name in rows[0]]
    file_column = _position(header, wanted.id, _FILE_NAMES, 0, path)
    label_column = _position(header, wanted.label, _LABEL_NAMES, 1 - min(file_column, 1), path)
    found: dict[str, str] = {}
    for number, row in enumerate(rows[1:], start=2):
        if len(row) != len(header):
            raise DataError(f"{path}, line {number}: {len(row)} columns, expected {len(header)}")
        name, label = row[file_column].strip(), row[label_column].strip()
        if not name or not label:
            raise DataError(f"{path}, line {number}: file or label is missing")
        if name in found:
            raise DataError(f"{path}, line {number}: {name!r} stands there twice")
        found[name] = label
    return found


def _position(
    header: Sequence[str], given: str | None, names: Sequence[str], default: int, path: Path
) -> int:
    if given is not None:
        if given not in header:
            raise DataError(f"{path} has no column {given!r}; it has {', '.join(header)}")
        return header.index(given)
    return next((header.index(name) for name in names if name in header), default)


def _in_order(folder: Path, files: dict[str, Path], names: list[str]) -> dict[str, Path]:
    """Return the files in the order of the labels; every one must have exactly one label."""
    without_suffix = {name.split(".", 1)[0]: path for name, path in files.items()}
    chosen = {}
    for name in names:
        path = files.get(name, without_suffix.get(name))
        if path is None:
            raise DataError(f"{folder / LABEL_FILE} names {name!r}, which is not in the folder")
        chosen[name] = path
    without = sorted({path.name for path in files.values()} - {p.name for p in chosen.values()})
    if without:
        raise DataError(
            f"{without[0]!r} has no label in {folder / LABEL_FILE}"
            + (f", nor have {len(without) - 1} more files" if len(without) > 1 else "")
        )
    return chosen
