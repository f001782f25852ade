"""Models and series that commands read, and files that they write."""

from __future__ import annotations

import contextlib
import glob
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import typer

from slts.cli.options import CommonOptions
from slts.cli.terminal import CommandError, Messages
from slts.execution import memory_limit
from slts.extras import import_extra
from slts.persistence import load
from slts.quantities import format_bytes, list_first
from slts.series import SeriesBatch
from slts.tables import Dataset, ExpectedColumns, SeriesScan, scan_series
from slts.training.scans import check_scan

# Data of at most this size are read once, and all their missing values are counted.
SMALL_BYTES = 64 * 2**20


def check_output(path: Path, option: str, suffixes: Sequence[str], *inputs: object) -> None:
    """Raise an error, before any work, if a file cannot be written or is read by the command."""
    if path.suffix.lower() not in suffixes:
        raise typer.BadParameter(f"must end in {' or '.join(suffixes)}", param_hint=option)
    folder = path.absolute().parent
    if not folder.is_dir():
        raise CommandError(f"{option} {path}: there is no folder {folder}")
    if path.exists() and any(_reads(str(source), path) for source in inputs if source):
        raise CommandError(f"{option} {path} would overwrite an input: choose another name")


def _reads(source: str, path: Path) -> bool:
    """Whether a source is a file, or is a pattern or a folder of tables with it."""
    inputs = {Path(name).resolve() for name in [source, *glob.glob(source, recursive=True)]}
    is_table = path.suffix.lower() in (".csv", ".parquet")
    in_folder = is_table and not inputs.isdisjoint(path.resolve().parents)
    return path.resolve() in inputs or in_folder


def load_model(path: Path, common: CommonOptions, *, verbose: bool = False) -> Any:
    """Load a model that uses the device and the threads of the options."""
    if not path.is_file():
        raise CommandError(f"{path}: there is no such model file; slts fit writes one")
    model = load(path)
    return model.set_params(device=common.device, n_jobs=common.jobs, verbose=verbose)


class Expected(NamedTuple):
    """What a model, or training data, say about the columns of other data."""

    columns: ExpectedColumns = ExpectedColumns()
    every: str | None = None

    @classmethod
    def of_model(cls, model: Any) -> Expected:
        """Return the columns and the time grid of a model."""
        columns = ExpectedColumns(
            channels=model.channel_names_in_,
            label=model.label_column_,
            n_channels=model.n_channels_in_,
            time=model.time_column_,
            ids=model.id_columns_ or (),
        )
        return cls(columns, model.every_)


def open_scan(
    data: str, common: CommonOptions, expected: Expected | None = None, groups: str | None = None
) -> SeriesScan:
    """Open labelled data of any size, and print their columns and missing values.

    Small data are read into memory, here and once.
    """
    scan = _scan(data, common, expected, groups)
    if scan.n_bytes is not None and scan.n_bytes <= SMALL_BYTES:
        return in_memory(_said(scan.read(), common.messages))
    _said(next(scan.batches()), common.messages, " of the first series")
    return scan


def read_data(
    data: str,
    common: CommonOptions,
    expected: Expected | None = None,
    groups: str | None = None,
    limit: str | None = None,
) -> Dataset:
    """Read data into memory, and print their columns and missing values.

    Data larger than `limit` are an error; None is half of the memory of this process.
    """
    scan = _scan(data, common, expected, groups)
    size, most = scan.n_bytes or 0, memory_limit(limit, "slts")
    if size > most:
        raise CommandError(
            f"{data} needs about {format_bytes(size)} of memory, and the limit is "
            f"{format_bytes(most)}. This command reads all series into memory: use fewer series"
        )
    return _said(scan.read(), common.messages)


def read_batches(
    data: str, common: CommonOptions, model: Any, batch_size: int = 1024
) -> Iterator[Dataset]:
    """Read series for a model, some at a time and without labels."""
    scan = _scan(data, common, Expected.of_model(model), None)
    n_steps, n_missing = 0, Counter[str]()
    for batch in scan.batches(labels=False, batch_size=batch_size):
        _say_columns(batch, common.messages)
        n_steps += batch.series.n_steps
        n_missing.update(_missing_values(batch.series))
        yield batch
    _say_missing(n_steps, n_missing, common.messages)


def in_memory(dataset: Dataset) -> SeriesScan:
    """Return series in memory as a scan, from which a model learns the columns too."""
    n_bytes = dataset.series.values.nbytes
    return SeriesScan(dataset.source, dataset.columns, [dataset], n_bytes)


def _scan(
    data: str, common: CommonOptions, expected: Expected | None, groups: str | None
) -> SeriesScan:
    """Scan data with the columns of the options and, without them, those that are expected."""
    _keep_signals()
    columns = common.columns
    if expected is None:
        return scan_series(data, **columns, groups=groups)
    # Arrays have no times.
    if columns["every"] is None and not data.endswith((".ts", ".npz")):
        columns["every"] = expected.every
    scan = scan_series(data, **columns, groups=groups, expect=expected.columns)
    check_scan(scan, expected.columns.channels, expected.every)
    return scan


def _keep_signals() -> None:
    """Let Ctrl-C reach Python while Arrow reads.

    Arrow handles signals itself meanwhile, and ignores those that come too late to stop a read.
    """
    with contextlib.suppress(ImportError):
        arrow: Any = import_extra("pyarrow", "io")
        arrow.enable_signal_handlers(False)


def _said(dataset: Dataset, messages: Messages, which: str = "") -> Dataset:
    """Return a dataset of which columns, notes and missing values are printed."""
    _say_columns(dataset, messages)
    _say_missing(dataset.series.n_steps, _missing_values(dataset.series), messages, which)
    return dataset


def _say_columns(dataset: Dataset, messages: Messages) -> None:
    """Print the columns, and what the reader changed."""
    if dataset.columns is not None:
        messages.say(f"columns: {dataset.columns}")
    for note in dataset.notes:
        messages.say(f"{dataset.source}: {note}")


def _missing_values(series: SeriesBatch) -> dict[str, int]:
    """Return the number of missing values of each channel."""
    names = series.channel_names or [f"channel {c}" for c in range(series.n_channels)]
    return dict(zip(names, series.n_missing.tolist(), strict=True))


def _say_missing(
    n_steps: int, n_missing: Mapping[str, int], messages: Messages, which: str = ""
) -> None:
    """Print the number of missing values of each channel that has some."""
    parts = [f"{n:,} ({n / n_steps:.1%}) in {name}" for name, n in n_missing.items() if n]
    if parts:
        messages.say(f"missing values in {n_steps:,} steps{which}: {list_first(parts, 8)}")
