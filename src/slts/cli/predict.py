"""``slts predict``: write labels, probabilities and prediction sets of any number of series."""

from __future__ import annotations

import csv
import json
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import Annotated, Any, TextIO, TypeAlias

import typer
from typer import Option

from slts.atomic_files import atomic_file
from slts.cli import options
from slts.cli.data import check_output, load_model, read_batches
from slts.cli.terminal import plain, show_json
from slts.execution import progress_bar
from slts.extras import import_extra
from slts.files import Dataset
from slts.guarantees.prediction_sets import FLAGS, PredictionSets, prediction_sets
from slts.quantities import count

_STDOUT = "-"
# What is written about each series of a batch, as in JSON lines.
_Records: TypeAlias = list[dict[str, Any]]


_OUT = "File that ends in .csv, .jsonl or .parquet; - writes CSV to standard output."
_ALPHA = (
    "Also write the prediction set, which contains the true class with probability 1 - ALPHA. The "
    "columns are the set, its size, and whether it has no class, a single one or several."
)
Out = Annotated[str, Option("--out", "-o", help=_OUT)]
BatchSize = Annotated[int, Option(min=1, help="Number of series in memory at a time.")]
Alpha = Annotated[float | None, Option(callback=options.check_share, help=_ALPHA)]


@options.with_common_options
def predict(
    model: options.ModelFile,
    data: options.Data,
    out: Out = _STDOUT,
    batch_size: BatchSize = 1024,
    alpha: Alpha = None,
    *,
    common: options.CommonOptions,
) -> None:
    """Predict a label and class probabilities for every series.

    CSV files, Parquet files and folders are read batch by batch, so memory does not grow with their
    size.
    """
    if out != _STDOUT:
        check_output(Path(out), "--out", (".csv", ".jsonl", ".parquet"), model, data)
    fitted = load_model(model, common)
    columns = ["id", "prediction"]
    if fitted.probability_scale_ is not None:
        columns += [f"p_{name}" for name in fitted.classes_.tolist()]
    sets = None
    if alpha is not None:
        sets = prediction_sets(fitted)
        common.messages.say(f"alpha = {alpha:g}: {sets.guarantee}")
        columns += ["set", "set_size", "set_flag"]
    predicted, flags = Counter[str](), Counter[str]()

    def records() -> Iterator[_Records]:
        with progress_bar("Predicting", show=not common.quiet) as progress:
            for batch in read_batches(data, common, fitted, batch_size):
                of_batch = _predict(fitted, batch, predicted.total(), sets, alpha)
                predicted.update(str(record["prediction"]) for record in of_batch)
                flags.update(record["set_flag"] for record in of_batch if sets is not None)
                yield of_batch
                if batch.share is not None:
                    progress(batch.share, 1.0)

    if out == _STDOUT:
        stream = typer.get_text_stream("stdout")
        if common.as_json:
            _write_json_lines(stream, records())
        else:
            _write_csv(stream, columns, records())
        stream.flush()
        return
    _write_file(Path(out), columns, records(), fitted.classes_)
    if common.as_json:
        result = {"out": out, "n_series": predicted.total(), "predicted": predicted}
        show_json(result if sets is None else result | {"sets": flags})
        return
    common.messages.done(f"{count(predicted.total(), 'prediction')}: {out}")
    if sets is not None:
        common.messages.done(", ".join(f"{flags[flag]} {flag}" for flag in FLAGS))


def _predict(
    model: Any, batch: Dataset, first: int, sets: PredictionSets | None, alpha: float | None
) -> _Records:
    """Predict the series of a batch; those without identifiers are numbered from `first`."""
    outputs, ids = model.outputs(batch.series), batch.ids
    columns: dict[str, Sequence[Any]] = {
        "id": range(first, first + len(batch)) if ids is None else ids.tolist(),
        "prediction": outputs.labels.tolist(),
    }
    if outputs.probabilities is not None:
        names = list(map(str, model.classes_.tolist()))
        rows = outputs.probabilities.tolist()
        columns["probabilities"] = [dict(zip(names, row, strict=True)) for row in rows]
    if sets is not None and alpha is not None:
        label_sets = sets.from_decisions(outputs.decisions, alpha)
        columns["set"] = [row.tolist() for row in label_sets.labels]
        columns["set_size"] = label_sets.sizes.tolist()
        columns["set_flag"] = list(label_sets.flags)
    return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]


def _cells(record: dict[str, Any]) -> dict[str, Any]:
    """Return the values of a record by column, with one column for each probability."""
    probabilities = record.get("probabilities", {})
    return record | {f"p_{name}": p for name, p in probabilities.items()}


def _write_file(path: Path, columns: list[str], batches: Iterator[_Records], classes: Any) -> None:
    """Write a file, which appears when it is complete; its suffix chooses the format."""
    suffix = path.suffix.lower()
    with atomic_file(path) as temporary:
        if suffix == ".parquet":
            _write_parquet(temporary, columns, batches, classes)
            return
        with temporary.open("w", encoding="utf-8", newline="") as file:
            if suffix == ".jsonl":
                _write_json_lines(file, batches)
            else:
                _write_csv(file, columns, batches)


def _write_json_lines(file: TextIO, batches: Iterator[_Records]) -> None:
    for batch in batches:
        for record in batch:
            file.write(json.dumps(record, ensure_ascii=False, default=plain) + "\n")


def _write_csv(file: TextIO, columns: list[str], batches: Iterator[_Records]) -> None:
    table = csv.DictWriter(file, columns, extrasaction="ignore", lineterminator="\n")
    # If the first batch fails, nothing is written.
    first = next(batches)
    table.writeheader()
    for batch in chain([first], batches):
        for record in batch:
            cells = _cells(record)
            cells |= {c: f"{cells[c]:.6g}" for c in columns if c.startswith("p_")}
            if "set" in cells:
                cells["set"] = "|".join(map(str, cells["set"]))
            table.writerow(cells)


def _write_parquet(
    path: Path, columns: list[str], batches: Iterator[_Records], classes: Any
) -> None:
    arrow: Any = import_extra("pyarrow", "io")
    parquet: Any = import_extra("pyarrow.parquet", "io")
    first = next(batches)
    label = arrow.array(classes.tolist()).type
    types = dict.fromkeys(columns, arrow.float64())
    types |= {"id": arrow.array([record["id"] for record in first]).type, "prediction": label}
    if "set" in types:
        types |= {"set": arrow.list_(label), "set_size": arrow.int64()}
        types |= {"set_flag": arrow.string()}
    schema = arrow.schema(list(types.items()))
    with parquet.ParquetWriter(path, schema) as file:
        for batch in chain([first], batches):
            file.write_table(arrow.Table.from_pylist(list(map(_cells, batch)), schema))
