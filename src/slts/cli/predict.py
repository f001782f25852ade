"""``slts predict``: write labels, probabilities and prediction sets of any number of series."""

from __future__ import annotations

import csv
import json
from collections import Counter
from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import Annotated, Any, TextIO, TypeAlias

import typer
from typer import Option

from slts.atomic_files import atomic_file
from slts.cli import options
from slts.cli.options import check_output, load_model, read_batches
from slts.cli.terminal import plain, show_json
from slts.execution import progress_bar
from slts.extras import import_extra
from slts.guarantees.prediction_sets import FLAGS, PredictionSets, prediction_sets
from slts.quantities import count
from slts.tables import Dataset

_STDOUT = "-"
# What is written about a batch: the values of each column.
_Columns: TypeAlias = dict[str, list[Any]]


_OUT = "File that ends in .csv, .jsonl or .parquet; - writes CSV to standard output."
_ALPHA = (
    "Also write the prediction set, which contains the true class with probability 1 - ALPHA. The "
    "columns are the set, its size, and whether it has a single class or several."
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
    sets = None
    if alpha is not None:
        sets = prediction_sets(fitted)
        common.messages.say(f"alpha = {alpha:g}: {sets.guarantee}")
    predicted, flags = Counter[str](), Counter[str]()

    def batches() -> Iterator[_Columns]:
        with progress_bar("Predicting", show=not common.quiet) as progress:
            for batch in read_batches(data, common, fitted, batch_size):
                columns = _predict(fitted, batch, predicted.total(), sets, alpha)
                predicted.update(map(str, columns["prediction"]))
                flags.update(columns.get("set_flag", ()))
                yield columns
                if batch.share is not None:
                    progress(batch.share, 1.0)

    if out == _STDOUT:
        stream = typer.get_text_stream("stdout")
        write = _write_json_lines if common.as_json else _write_csv
        write(stream, batches())
        stream.flush()
        return
    _write_file(Path(out), batches())
    if common.as_json:
        result = {"out": out, "n_series": predicted.total(), "predicted": predicted}
        show_json(result if sets is None else result | {"sets": flags})
        return
    common.messages.done(f"{count(predicted.total(), 'prediction')}: {out}")
    if sets is not None:
        common.messages.done(", ".join(f"{flags[flag]} {flag}" for flag in FLAGS))


def _predict(
    model: Any, batch: Dataset, first: int, sets: PredictionSets | None, alpha: float | None
) -> _Columns:
    """Predict the series of a batch; those without identifiers are numbered from `first`."""
    outputs, ids = model.outputs(batch.series), batch.ids
    columns: _Columns = {
        "id": list(range(first, first + len(batch))) if ids is None else ids.tolist(),
        "prediction": outputs.labels.tolist(),
    }
    if outputs.probabilities is not None:
        names = [f"p_{name}" for name in model.classes_.tolist()]
        columns |= zip(names, outputs.probabilities.T.tolist(), strict=True)
    if sets is not None and alpha is not None and outputs.probabilities is not None:
        label_sets = sets.from_probabilities(outputs.probabilities, alpha)
        columns["set"] = [row.tolist() for row in label_sets.labels]
        columns["set_size"] = label_sets.sizes.tolist()
        columns["set_flag"] = label_sets.flags.tolist()
    return columns


def _write_file(path: Path, batches: Iterator[_Columns]) -> None:
    """Write a file, which appears when it is complete; its suffix chooses the format."""
    suffix = path.suffix.lower()
    if suffix == ".parquet":
        import_extra("pyarrow.parquet", "io")
    with atomic_file(path) as temporary:
        if suffix == ".parquet":
            _write_parquet(temporary, batches)
            return
        with temporary.open("w", encoding="utf-8", newline="") as file:
            write = _write_json_lines if suffix == ".jsonl" else _write_csv
            write(file, batches)


def _write_csv(file: TextIO, batches: Iterator[_Columns]) -> None:
    table = csv.writer(file, lineterminator="\n")
    for number, columns in enumerate(batches):
        # Nothing is written if the first batch fails.
        if number == 0:
            table.writerow(columns)
        for id, label, *others in zip(*columns.values(), strict=True):
            table.writerow([id, label, *map(_text, others)])


def _text(value: Any) -> Any:
    """Shorten a probability, and join the labels of a set."""
    if isinstance(value, list):
        return "|".join(map(str, value))
    return f"{value:.6g}" if isinstance(value, float) else value


def _write_json_lines(file: TextIO, batches: Iterator[_Columns]) -> None:
    for columns in batches:
        for values in zip(*columns.values(), strict=True):
            row = dict(zip(columns, values, strict=True))
            probabilities = {name[2:]: row.pop(name) for name in columns if name.startswith("p_")}
            record = row | ({"probabilities": probabilities} if probabilities else {})
            file.write(json.dumps(record, ensure_ascii=False, default=plain) + "\n")


def _write_parquet(path: Path, batches: Iterator[_Columns]) -> None:
    arrow: Any = import_extra("pyarrow", "io")
    parquet: Any = import_extra("pyarrow.parquet", "io")
    tables = (arrow.table({n: arrow.array(v) for n, v in one.items()}) for one in batches)
    first = next(tables)
    with parquet.ParquetWriter(path, first.schema) as file:
        for table in chain([first], tables):
            file.write_table(table)
