"""``slts predict``: write labels, probabilities and prediction sets of any number of series."""

from __future__ import annotations

import csv
import json
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Annotated, Any, TextIO, TypeAlias

import typer

from slts.atomic_files import atomic_file, is_stream
from slts.cli import options
from slts.cli.data import check_output_path, load_model, read_batches
from slts.cli.terminal import plain, show_json
from slts.extras import import_extra
from slts.guarantees.prediction_sets import FLAGS, PredictionSets, prediction_sets
from slts.quantities import count
from slts.tables import Dataset

_SUFFIXES = (".csv", ".jsonl", ".parquet")
_STDOUT = "-"
# What is written about one series, as in JSON lines; files with columns get `_cells` of it.
_Record: TypeAlias = dict[str, Any]
_Write: TypeAlias = Callable[[list[_Record]], None]


@options.command
def predict(
    model: options.ModelFile,
    data: options.Data,
    out: Annotated[str, typer.Option("--out", "-o")] = _STDOUT,
    batch_size: Annotated[int, typer.Option(min=1)] = 1024,
    alpha: Annotated[float | None, options.share()] = None,
    *,
    common: options.CommonOptions,
) -> None:
    """Predict a label and class probabilities for every series.

    CSV files, Parquet files and folders are read batch by batch, so memory does not grow with their
    size.

    Parameters
    ----------
    out
        File that ends in .csv, .jsonl or .parquet; - writes CSV to standard output.
    batch_size
        Number of series in memory at a time.
    alpha
        Also write the prediction set, which contains the true class with probability 1 - ALPHA. The
        columns are the set, its size, and whether it has no class, a single one or several.
    """
    if out == "/dev/stdout":
        out = _STDOUT
    if out != _STDOUT:
        endings = (Path(out).suffix.lower(),) if is_stream(out) else _SUFFIXES
        check_output_path(Path(out), "predictions", "--out", endings, [model, data])
    fitted = load_model(model, common)
    sets = None
    if alpha is not None:
        sets = prediction_sets(fitted)
        share = f"{100 * (1 - alpha):.4g}%"
        common.messages.say(sets.guarantee.replace("1 - alpha", share))
    columns = ["id", "prediction"]
    if fitted.probability_scale_ is not None:
        columns += [f"p_{name}" for name in fitted.classes_.tolist()]
    columns += ["set", "set_size", "set_flag"] if sets is not None else []
    done, counts, flags = 0, Counter[str](), Counter[str]()
    with (
        _prediction_writer(out, columns, fitted.classes_, json_lines=common.as_json) as write,
        common.messages.counting("Predicting") as progress,
    ):
        for batch in read_batches(data, common, fitted, batch_size):
            records = _predict(fitted, batch, done, sets, alpha)
            write(records)
            done += len(records)
            counts.update(str(record["prediction"]) for record in records)
            flags.update(record["set_flag"] for record in records if "set_flag" in record)
            progress(done, batch.share)
    if out == _STDOUT:
        return
    if common.as_json:
        result = {"out": out, "n_series": done, "predicted": counts}
        show_json(result if sets is None else result | {"sets": flags})
    else:
        common.messages.done(f"{count(done, 'prediction')}: {out}")
        if sets is not None:
            common.messages.done(", ".join(f"{flags[flag]} {flag}" for flag in FLAGS))


def _predict(
    model: Any, batch: Dataset, first: int, sets: PredictionSets | None, alpha: float | None
) -> list[_Record]:
    """Predict the series of a batch.

    Series without identifiers are numbered; `first` is the number of the first one.
    """
    records: list[_Record] = []
    if len(batch):
        outputs = model.outputs(batch.series)
        columns: dict[str, list[Any]] = {
            "id": [None] * len(batch) if batch.ids is None else batch.ids.tolist(),
            "prediction": outputs.labels.tolist(),
        }
        if outputs.probabilities is not None:
            names, rows = list(map(str, model.classes_.tolist())), outputs.probabilities.tolist()
            columns["probabilities"] = [dict(zip(names, row, strict=True)) for row in rows]
        if sets is not None and alpha is not None:
            label_sets = sets.from_decisions(outputs.decisions, alpha)
            columns["set"] = [row.tolist() for row in label_sets.labels]
            columns |= {"set_size": label_sets.sizes.tolist(), "set_flag": label_sets.flags}
        rows = zip(*columns.values(), strict=True)
        records = [dict(zip(columns, row, strict=True)) for row in rows]
    for number, record in enumerate(records, start=first):
        if record["id"] is None:
            record["id"] = number
    return records


def _cells(record: _Record) -> dict[str, Any]:
    """Return the values of a record by column, with one column for each probability."""
    chances = record.get("probabilities", {})
    return record | {f"p_{name}": p for name, p in chances.items()}


def _csv_writer(file: TextIO, columns: Sequence[str]) -> _Write:
    table = csv.writer(file, lineterminator="\n")
    is_first = True

    def text(value: Any) -> Any:
        """Shorten a probability; bars separate the labels of a set."""
        if isinstance(value, list):
            return "|".join(map(str, value))
        return f"{value:.6g}" if isinstance(value, float) else value

    def write(records: list[_Record]) -> None:
        nonlocal is_first
        # The first batch may fail: then nothing is written.
        if is_first:
            table.writerow(columns)
        is_first = False
        for record in records:
            cells = _cells(record)
            row = [record["id"], record["prediction"], *(text(cells.get(c)) for c in columns[2:])]
            table.writerow(row)

    return write


def _json_lines_writer(file: TextIO, columns: Sequence[str]) -> _Write:
    def write(records: list[_Record]) -> None:
        for record in records:
            file.write(json.dumps(record, ensure_ascii=False, default=plain) + "\n")

    return write


@contextmanager
def _parquet_writer(path: Path, columns: Sequence[str], classes: Any) -> Iterator[_Write]:
    arrow: Any = import_extra("pyarrow", "io")
    parquet: Any = import_extra("pyarrow.parquet", "io")
    # Types do not depend on the rows: all series of a batch may be skipped.
    label = arrow.array(classes.tolist()).type
    types = dict.fromkeys(columns, arrow.float64())
    types |= {"id": None, "prediction": label, "set": arrow.list_(label), "set_size": arrow.int64()}
    types |= {"set_flag": arrow.string(), "error": arrow.string()}
    with ExitStack() as stack:
        file: Any = None

        def write(records: list[_Record]) -> None:
            nonlocal file
            rows = [{"error": "", **_cells(record)} for record in records]
            columns_of_batch = {
                name: arrow.array([row.get(name) for row in rows], types[name]) for name in columns
            }
            table = arrow.table(columns_of_batch)
            file = file or stack.enter_context(parquet.ParquetWriter(path, table.schema))
            file.write_table(table)

        yield write


@contextmanager
def _prediction_writer(
    out: str, columns: Sequence[str], classes: Any, *, json_lines: bool
) -> Iterator[_Write]:
    """Yield a function that writes a batch; the file appears when it is complete.

    The suffix chooses the format; a FIFO or device without one gets CSV. Standard output gets CSV
    or JSON lines.
    """
    if out == _STDOUT:
        stream = typer.get_text_stream("stdout")
        yield (_json_lines_writer if json_lines else _csv_writer)(stream, columns)
        stream.flush()
        return
    suffix = Path(out).suffix.lower()
    with atomic_file(Path(out)) as path:
        if suffix == ".parquet":
            with _parquet_writer(path, columns, classes) as write:
                yield write
            return
        with path.open("w", encoding="utf-8", newline="") as file:
            yield (_json_lines_writer if suffix == ".jsonl" else _csv_writer)(file, columns)
