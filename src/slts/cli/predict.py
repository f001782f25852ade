"""``slts predict``: write labels and probabilities of any number of series."""

from __future__ import annotations

import csv
import json
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Annotated, Any, TextIO, TypeAlias

import typer

from slts._typing import AnyArray, FloatArray
from slts.atomic_files import whole_file
from slts.cli import options
from slts.cli.data import load_model, read_batches
from slts.cli.output_paths import check_output_path
from slts.cli.terminal import plain, show_json
from slts.extras import import_extra

_SUFFIXES = (".csv", ".jsonl", ".parquet")
_STDOUT = "-"
# Writes identifiers, labels and probabilities of a batch.
_Write: TypeAlias = Callable[[Sequence[Any], AnyArray, FloatArray | None], None]


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
    done, counts = 0, Counter[str]()
    with (
        _prediction_writer(out, fitted.classes_.tolist(), json_lines=common.as_json) as write,
        common.messages.counting("Predicting") as progress,
    ):
        for batch in read_batches(data, common, fitted, batch_size):
            labels, _, probabilities = fitted.outputs(batch.series)
            numbers = range(done, done + len(batch))
            ids = numbers if batch.ids is None else batch.ids.tolist()
            write(ids, labels, probabilities)
            done += len(batch)
            counts.update(map(str, labels.tolist()))
            progress(done, batch.share)
    if out == _STDOUT:
        return
    if common.as_json:
        show_json({"out": out, "n_series": done, "predicted": counts})
    else:
        common.messages.done(f"{done} predictions: {out}")


def _csv_writer(file: TextIO, classes: Sequence[Any]) -> _Write:
    writer = csv.writer(file, lineterminator="\n")
    header = ["id", "prediction", *(f"p_{name}" for name in classes)]

    def write(ids: Sequence[Any], labels: AnyArray, probabilities: FloatArray | None) -> None:
        columns = [] if probabilities is None else probabilities.T.tolist()
        if header:
            writer.writerow(header[: 2 + len(columns)])
            header.clear()
        texts = [[f"{p:.6g}" for p in column] for column in columns]
        writer.writerows(zip(ids, labels.tolist(), *texts, strict=True))

    return write


def _json_lines_writer(file: TextIO, classes: Sequence[Any]) -> _Write:
    names = [str(name) for name in classes]

    def write(ids: Sequence[Any], labels: AnyArray, probabilities: FloatArray | None) -> None:
        for position, (id, label) in enumerate(zip(ids, labels.tolist(), strict=True)):
            entry = {"id": plain(id), "prediction": plain(label)}
            if probabilities is not None:
                row = probabilities[position].tolist()
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

        def write(ids: Sequence[Any], labels: AnyArray, probabilities: FloatArray | None) -> None:
            nonlocal file
            columns = {"id": arrow.array(list(ids)), "prediction": arrow.array(labels.tolist())}
            if probabilities is not None:
                columns |= dict(zip(names, probabilities.T, strict=True))
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
