"""``slts predict``: write labels, probabilities and prediction sets of any number of series."""

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

from slts._typing import FloatArray, IntArray
from slts.atomic_files import is_stream, whole_file
from slts.cli import options
from slts.cli.data import load_model, read_batches
from slts.cli.output_paths import check_output_path
from slts.cli.terminal import plain, show_json
from slts.extras import import_extra
from slts.files import Dataset
from slts.guarantees.prediction_sets import FLAGS, PredictionSets, prediction_sets

_SUFFIXES = (".csv", ".jsonl", ".parquet")
_STDOUT = "-"
_ON_ERROR = ("raise", "skip")
_SET_COLUMNS = ("set", "set_size", "set_flag")
# Columns about prediction sets, by name; None for a series that is skipped.
_Sets: TypeAlias = dict[str, list[Any]]


@dataclass(frozen=True)
class _Rows:
    """What is written about the series of a batch; `errors` is None unless series are skipped."""

    ids: list[Any]
    labels: list[Any]
    probabilities: FloatArray | None
    sets: _Sets
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
    alpha: Annotated[
        float | None,
        typer.Option(
            "--alpha",
            help="Also write the set of classes that has the true one with probability 1 - ALPHA: "
            "the set, its size, and whether it is empty, a single class or several.",
        ),
    ] = None,
    on_error: Annotated[
        str,
        options.choice(
            "--on-error",
            _ON_ERROR,
            "If a series has an infinite value, a cell that is not a number, or no "
            "value at all: stop, or skip it and give the reason in a column `error`.",
        ),
    ] = "raise",
    *,
    common: options.CommonOptions,
) -> None:
    """Predict a label and class probabilities for every series.

    CSV, Parquet and folders are read batch by batch, so memory does not grow with their size.
    """
    if out == "/dev/stdout":
        out = _STDOUT
    if out != _STDOUT:
        if Path(out).suffix.lower() not in _SUFFIXES and not is_stream(out):
            raise typer.BadParameter(
                f"must end in one of {', '.join(_SUFFIXES)}, got {out}", param_hint="--out"
            )
        check_output_path(Path(out), "predictions", [model, data])
    if alpha is not None and not 0.0 < alpha < 1.0:
        raise typer.BadParameter(f"must be between 0 and 1, got {alpha:g}", param_hint="--alpha")
    fitted = load_model(model, common)
    sets = None if alpha is None else prediction_sets(fitted)
    if sets is not None:
        common.messages.say(sets.guarantee)
    flags = Counter[str]()
    done, n_skipped, counts = 0, 0, Counter[str]()
    with (
        _prediction_writer(out, fitted.classes_.tolist(), json_lines=common.as_json) as write,
        common.messages.counting("Predicting") as progress,
    ):
        for batch in read_batches(data, common, fitted, batch_size, on_error):
            rows = _predict(fitted, batch, done, sets, alpha)
            write(rows if on_error == "skip" else replace(rows, errors=None))
            done += len(rows.ids)
            n_skipped += len(batch.unusable)
            counts.update(str(label) for label in rows.labels if label is not None)
            flags.update(flag for flag in rows.sets.get("set_flag", ()) if flag is not None)
            progress(done, batch.share)
    if n_skipped:
        common.messages.say(f"skipped {n_skipped} of {done} series: the column error says why")
    if out == _STDOUT:
        return
    if common.as_json:
        found = {"out": out, "n_series": done, "n_skipped": n_skipped, "predicted": counts}
        show_json(found if sets is None else found | {"sets": flags})
    else:
        common.messages.done(f"{done - n_skipped} predictions: {out}")
        if sets is not None:
            common.messages.done(", ".join(f"{flags[flag]} {flag}" for flag in FLAGS))


def _predict(
    model: Any, batch: Dataset, first: int, sets: PredictionSets | None, alpha: float | None
) -> _Rows:
    """Predict the series of a batch, and insert those that were skipped.

    Series without identifiers are numbered; `first` is the number of the first one.
    """
    n = len(batch) + len(batch.unusable)
    usable = np.setdiff1d(np.arange(n), [one.position for one in batch.unusable])
    ids: list[Any] = list(range(first, first + n))
    labels: list[Any] = [None] * n
    errors = [""] * n
    p = None if model.probability_scale_ is None else np.full((n, len(model.classes_)), np.nan)
    columns: _Sets = {} if sets is None else {name: [None] * n for name in _SET_COLUMNS}
    if len(batch):
        found = model.outputs(batch.series)
        if p is not None:
            p[usable] = found.probabilities
        _insert(labels, usable, found.labels.tolist())
        for name, values in _set_columns(sets, found.decisions, alpha).items():
            _insert(columns[name], usable, values)
    if batch.ids is not None:
        _insert(ids, usable, batch.ids.tolist())
    for one in batch.unusable:
        ids[one.position] = ids[one.position] if one.id is None else one.id
        errors[one.position] = one.reason
    return _Rows(ids, labels, p, columns, errors)


def _insert(into: list[Any], positions: IntArray, values: Sequence[Any]) -> None:
    for position, value in zip(positions, values, strict=True):
        into[position] = value


def _set_columns(sets: PredictionSets | None, decisions: FloatArray, alpha: float | None) -> _Sets:
    if sets is None or alpha is None:
        return {}
    found = sets.from_decisions(decisions, alpha)
    labels = [[plain(label) for label in row.tolist()] for row in found.labels]
    columns = labels, found.sizes.tolist(), found.flags
    return dict(zip(_SET_COLUMNS, columns, strict=True))


def _csv_writer(file: TextIO, classes: Sequence[Any]) -> _Write:
    writer = csv.writer(file, lineterminator="\n")
    header = ["id", "prediction", *(f"p_{name}" for name in classes)]

    def write(rows: _Rows) -> None:
        columns = [] if rows.probabilities is None else rows.probabilities.T.tolist()
        errors = [] if rows.errors is None else [rows.errors]
        if header:
            names = [*header[: 2 + len(columns)], *rows.sets]
            writer.writerow(names + ["error"] * len(errors))
            header.clear()
        texts = [["" if math.isnan(p) else f"{p:.6g}" for p in column] for column in columns]
        texts += [[_as_text(value) for value in column] for column in rows.sets.values()]
        writer.writerows(zip(rows.ids, rows.labels, *texts, *errors, strict=True))

    return write


def _as_text(value: Any) -> str:
    """Return a cell of CSV; the labels of a set are separated by bars."""
    if value is None:
        return ""
    return "|".join(map(str, value)) if isinstance(value, list) else str(value)


def _json_lines_writer(file: TextIO, classes: Sequence[Any]) -> _Write:
    names = [str(name) for name in classes]

    def write(rows: _Rows) -> None:
        for position, (id, label) in enumerate(zip(rows.ids, rows.labels, strict=True)):
            entry = {"id": plain(id), "prediction": plain(label)}
            if rows.errors is not None and rows.errors[position]:
                entry["error"] = rows.errors[position]
            else:
                if rows.probabilities is not None:
                    row = rows.probabilities[position].tolist()
                    entry["probabilities"] = dict(zip(names, row, strict=True))
                entry |= {name: column[position] for name, column in rows.sets.items()}
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
            # Types do not depend on the rows: all series of a batch may be skipped.
            types = arrow.list_(labels.type), arrow.int64(), arrow.string()
            for (name, column), kind in zip(rows.sets.items(), types, strict=False):
                columns[name] = arrow.array(column, kind)
            if rows.errors is not None:
                columns["error"] = arrow.array(rows.errors)
            table = arrow.table(columns)
            file = file or stack.enter_context(parquet.ParquetWriter(path, table.schema))
            file.write_table(table)

        yield write


@contextmanager
def _prediction_writer(out: str, classes: Sequence[Any], *, json_lines: bool) -> Iterator[_Write]:
    """Yield a function that writes a batch; the file appears when it is complete.

    The suffix chooses the format; a FIFO or device without one gets CSV. Standard output gets CSV
    or JSON lines.
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
        with path.open("w", encoding="utf-8", newline="") as file:
            yield (_json_lines_writer if suffix == ".jsonl" else _csv_writer)(file, classes)
