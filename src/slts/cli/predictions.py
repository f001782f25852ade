"""Predictions written as they come: CSV, JSON lines or Parquet."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Protocol, TextIO

import typer

from slts._typing import AnyArray, FloatArray
from slts.atomic_files import whole_file
from slts.cli.terminal import plain
from slts.extras import import_extra

SUFFIXES = (".csv", ".jsonl", ".parquet")
STDOUT = "-"


class Writer(Protocol):
    """Takes batch after batch."""

    def write(self, ids: Sequence[Any], labels: AnyArray, chances: FloatArray | None) -> None:
        """Write the predictions of a batch."""


class _Csv:
    def __init__(self, file: TextIO, classes: Sequence[Any]) -> None:
        self._writer = csv.writer(file, lineterminator="\n")
        self._names = [f"p_{name}" for name in classes]
        self._begun = False

    def write(self, ids: Sequence[Any], labels: AnyArray, chances: FloatArray | None) -> None:
        if not self._begun:
            self._begun = True
            self._writer.writerow(
                ["id", "prediction", *(self._names if chances is not None else ())]
            )
        if chances is None:
            self._writer.writerows(zip(ids, labels.tolist(), strict=True))
            return
        for id, label, row in zip(ids, labels.tolist(), chances.tolist(), strict=True):
            self._writer.writerow([id, label, *(f"{p:.6g}" for p in row)])


class _JsonLines:
    def __init__(self, file: TextIO, classes: Sequence[Any]) -> None:
        self._file = file
        self._names = [str(name) for name in classes]

    def write(self, ids: Sequence[Any], labels: AnyArray, chances: FloatArray | None) -> None:
        for position, (id, label) in enumerate(zip(ids, labels.tolist(), strict=True)):
            entry = {"id": plain(id), "prediction": plain(label)}
            if chances is not None:
                row = chances[position].tolist()
                entry["probabilities"] = dict(zip(self._names, row, strict=True))
            self._file.write(json.dumps(entry, ensure_ascii=False) + "\n")


class _Parquet:
    def __init__(self, path: Path, classes: Sequence[Any]) -> None:
        self._pa: Any = import_extra("pyarrow", "io")
        self._parquet: Any = import_extra("pyarrow.parquet", "io")
        self._path = path
        self._names = [f"p_{name}" for name in classes]
        self._writer: Any = None

    def write(self, ids: Sequence[Any], labels: AnyArray, chances: FloatArray | None) -> None:
        columns = {"id": self._pa.array(list(ids)), "prediction": self._pa.array(labels.tolist())}
        if chances is not None:
            columns |= dict(zip(self._names, chances.T, strict=True))
        table = self._pa.table(columns)
        if self._writer is None:
            self._writer = self._parquet.ParquetWriter(self._path, table.schema)
        self._writer.write_table(table)

    def close(self) -> None:
        if self._writer is not None:
            self._writer.close()


@contextmanager
def prediction_writer(out: str, classes: Sequence[Any], *, json_lines: bool) -> Iterator[Writer]:
    """Open a writer chosen by suffix; the file appears when everything has been written.

    Parameters
    ----------
    out
        A path that ends in one of `SUFFIXES`, or ``"-"`` for standard output.
    classes
        The labels, one column of probabilities each.
    json_lines
        Whether standard output gets JSON lines rather than CSV.
    """
    if out == STDOUT:
        stream = typer.get_text_stream("stdout")
        yield _JsonLines(stream, classes) if json_lines else _Csv(stream, classes)
        stream.flush()
        return
    suffix = Path(out).suffix.lower()
    with whole_file(Path(out)) as fresh:
        if suffix == ".parquet":
            table = _Parquet(fresh, classes)
            try:
                yield table
            finally:
                table.close()
            return
        with fresh.open("x", encoding="utf-8", newline="") as file:
            yield _JsonLines(file, classes) if suffix == ".jsonl" else _Csv(file, classes)
