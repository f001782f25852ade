"""``slts predict``: write labels and probabilities of any number of series."""

from __future__ import annotations

import csv
import json
import math
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any, TextIO, TypeAlias

import numpy as np
import typer

from slts._typing import FloatArray
from slts.atomic_files import whole_file
from slts.cli import options
from slts.cli.data import load_model, read_batches
from slts.cli.output_paths import check_output_path
from slts.cli.terminal import plain, show_json
from slts.extras import import_extra
from slts.files import Dataset

_SUFFIXES = (".csv", ".jsonl", ".parquet")
_STDOUT = "-"
_ON_ERROR = ("raise", "skip")


@dataclass(frozen=True)
class _Rows:
    """What is written about the series of a batch; `errors` is None unless series are skipped."""

    ids: list[Any]
    labels: list[Any]
    probabilities: FloatArray | None
    errors: list[str] | None


_Write: TypeAlias = Callable[[_Rows], None]


@options.with_common_options
def predict(
    model: options.ModelFile,
    data: options.Data,
    out: Annotated[
        str,
        typer.Option(
            "--out",
            "-o",
            help=f"File that ends in {', '.join(_SUFFIXES)}; - writes CSV to standard output.",
        ),
    ] = _STDOUT,
    batch_size: Annotated[
        int, typer.Option("--batch-size", min=1, help="Number of series in memory at a time.")
    ] = 1024,
    on_error: Annotated[
        str,
        options.choice(
            "--on-error",
            _ON_ERROR,
            "If a series of a table has an infinite value, a cell that is not a number, or no "
            "value at all: stop, or skip it and give the reason in a column `error`.",
        ),
    ] = "raise",
    *,
    common: options.CommonOptions,
) -> None:
    """Predict a label and class probabilities for every series.

    CSV, Parquet and folders are read batch by batch, so memory does not grow with their size.
    """
    if out != _STDOUT:
        if Path(out).suffix.lower() not in _SUFFIXES:
            raise typer.BadParameter(
                f"must end in one of {', '.join(_SUFFIXES)}, got {out}", param_hint="--out"
            )
        check_output_path(Path(out), "predictions", [model, data])
    fitted = load_model(model, common)
    done, n_skipped, counts = 0, 0, Counter[str]()
    with (
        _prediction_writer(out, fitted.classes_.tolist(), json_lines=common.as_json) as write,
        common.messages.counting("Predicting") as progress,
    ):
        for batch in read_batches(data, common, fitted, batch_size, on_error):
            rows = _predict(fitted, batch, done)
            write(rows if on_error == "skip" else replace(rows, errors=None))
            done += len(rows.ids)
            n_skipped += len(batch.unusable)
            counts.update(str(label) for label in rows.labels if label is not None)
            progress(done, batch.share)
    if n_skipped:
        common.messages.say(f"skipped {n_skipped} of {done} series: the column error says why")
    if out == _STDOUT:
        return
    if common.as_json:
        show_json({"out": out, "n_series": done, "n_skipped": n_skipped, "predicted": counts})
    else:
        common.messages.done(f"{done - n_skipped} predictions: {out}")


def _predict(model: Any, batch: Dataset, first: int) -> _Rows:
    """Predict the series of a batch, and insert those that were skipped.

    Series without identifiers are numbered; `first` is the number of the first one.
    """
    n = len(batch) + len(batch.unusable)
    usable = np.setdiff1d(np.arange(n), [one.position for one in batch.unusable])
    ids: list[Any] = list(range(first, first + n))
    labels: list[Any] = [None] * n
    errors = [""] * n
    p = None if model.probability_scale_ is None else np.full((n, len(model.classes_)), np.nan)
    if len(batch):
        found = model.outputs(batch.series)
        if p is not None:
            p[usable] = found.probabilities
        for position, label in zip(usable, found.labels.tolist(), strict=True):
            labels[position] = label
    if batch.ids is not None:
        for position, id in zip(usable, batch.ids.tolist(), strict=True):
            ids[position] = id
    for one in batch.unusable:
        ids[one.position] = ids[one.position] if one.id is None else one.id
        errors[one.position] = one.reason
    return _Rows(ids, labels, p, errors)


def _csv_writer(file: TextIO, classes: Sequence[Any]) -> _Write:
    writer = csv.writer(file, lineterminator="\n")
    header = ["id", "prediction", *(f"p_{name}" for name in classes)]

    def write(rows: _Rows) -> None:
        columns = [] if rows.probabilities is None else rows.probabilities.T.tolist()
        errors = [] if rows.errors is None else [rows.errors]
        if header:
            writer.writerow(header[: 2 + len(columns)] + ["error"] * len(errors))
            header.clear()
        texts = [["" if math.isnan(p) else f"{p:.6g}" for p in column] for column in columns]
        writer.writerows(zip(rows.ids, rows.labels, *texts, *errors, strict=True))

    return write


def _json_lines_writer(file: TextIO, classes: Sequence[Any]) -> _Write:
    names = [str(name) for name in classes]

    def write(rows: _Rows) -> None:
        for position, (id, label) in enumerate(zip(rows.ids, rows.labels, strict=True)):
            entry = {"id": plain(id), "prediction": plain(label)}
            if rows.errors is not None and rows.errors[position]:
                entry["error"] = rows.errors[position]
            elif rows.probabilities is not None:
                row = rows.probabilities[position].tolist()
                entry["probabilities"] = dict(zip(names, row, strict=True))
            file.write(json.dumps(entry, ensure_ascii=False) + "\n")

    return write


@contextmanager
def _parquet_writer(path: Path, classes: Sequence[Any]) -> Iterator[_Write]:
    arrow: Any = import_extra("pyarrow", "io")
    parquet: Any = import_extra("pyarrow.parquet", "io")
    names = [f"p_{name}" for name in classes]
    with ExitStack() as stack:
        file: Any = None

        def write(rows: _Rows) -> None:
            nonlocal file
            labels = arrow.array(rows.labels, arrow.array(classes).type)
            columns = {"id": arrow.array(rows.ids), "prediction": labels}
            if rows.probabilities is not None:
                columns |= dict(zip(names, rows.probabilities.T, strict=True))
            if rows.errors is not None:
                columns["error"] = arrow.array(rows.errors)
            table = arrow.table(columns)
            file = file or stack.enter_context(parquet.ParquetWriter(path, table.schema))
            file.write_table(table)

        yield write


@contextmanager
def _prediction_writer(out: str, classes: Sequence[Any], *, json_lines: bool) -> Iterator[_Write]:
    """Yield a function that writes a batch; the file appears when it is complete.

    The suffix chooses the format. Standard output gets CSV or JSON lines.
    """
    if out == _STDOUT:
        stream = typer.get_text_stream("stdout")
        yield (_json_lines_writer if json_lines else _csv_writer)(stream, classes)
        stream.flush()
        return
    suffix = Path(out).suffix.lower()
    with whole_file(Path(out)) as path:
        if suffix == ".parquet":
            with _parquet_writer(path, classes) as write:
                yield write
            return
        with path.open("x", encoding="utf-8", newline="") as file:
            yield (_json_lines_writer if suffix == ".jsonl" else _csv_writer)(file, classes)
