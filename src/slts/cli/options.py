"""Options that several commands have, and the models, series and files that they name."""

from __future__ import annotations

import contextlib
import functools
import glob
import inspect
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple

import typer
from typer import Argument, BadParameter, Option

from slts.cli.terminal import CommandError, Messages
from slts.execution import memory_limit
from slts.extras import import_extra
from slts.persistence import load
from slts.quantities import format_bytes, list_first
from slts.series import SeriesBatch
from slts.tables import Dataset, ExpectedColumns, SeriesScan, scan_series
from slts.training.scans import check_scan


def check_share(value: float | None) -> float | None:
    """Raise an error if the value of an option is not strictly between 0 and 1."""
    if value is not None and not 0.0 < value < 1.0:
        raise BadParameter(f"must be between 0 and 1, got {value}")
    return value


def _check_jobs(value: int) -> int:
    if value == 0:
        raise BadParameter("must be a number of threads, or -1 for all processors, got 0")
    return value


_DATA = (
    "A .ts, .csv, .tsv, .parquet, .feather or .npz file; a folder of Parquet files; a pattern in "
    "quotes such as 'part-*.parquet'; a folder with one CSV file per series and labels.csv; a "
    "folder with a folder of CSV files per class; - for CSV from standard input."
)
_GROUPS = "Column with the group of a series, such as the subject. Groups are held out as a whole."
_QUIET = "Print only warnings, errors, and results that are not written to a file."
_DEVICE = "Where series are aligned; auto uses a GPU if there is one and the work is large enough."
_ID = "Column that identifies a series. Repeat it if several columns identify a series together."
_CHANNELS = "Columns with the values: names separated by commas, or a range such as c1..c12."
_EVERY = "Resample series on a regular time grid: 20ms, 1s, 5min, or a number for numeric times."

ModelFile = Annotated[Path, Argument(metavar="MODEL", help="Model saved by `slts fit`.")]
Data = Annotated[str, Argument(metavar="DATA", help=_DATA)]
OptionalData = Annotated[str | None, Argument(metavar="[DATA]", help=_DATA, show_default=False)]
Groups = Annotated[str | None, Option(metavar="COLUMN", help=_GROUPS)]
RandomState = Annotated[int, Option(min=0, help="Seed.")]
Json = Annotated[bool, Option("--json", help="Print JSON on standard output.")]
Quiet = Annotated[bool, Option("--quiet", "-q", help=_QUIET)]
_Jobs = Annotated[int, Option("--jobs", "-j", callback=_check_jobs, help="Threads; -1 uses all.")]
_Device = Annotated[Literal["cpu", "cuda", "auto"], Option(help=_DEVICE)]
_Id = Annotated[list[str] | None, Option(help=_ID, show_default="by usual name")]
_Time = Annotated[str | None, Option(help="Column with the time.", show_default="by usual name")]
_Label = Annotated[str | None, Option(help="Column with the label.", show_default="by usual name")]
_Channels = Annotated[str | None, Option(help=_CHANNELS, show_default="those of the model")]
_Every = Annotated[str | None, Option(help=_EVERY, show_default="that of the model")]


@dataclass(frozen=True)
class CommonOptions:
    """Options of all commands that read series: threads, device, columns of tables, output."""

    jobs: _Jobs = -1
    device: _Device = "cpu"
    id: _Id = None
    time: _Time = None
    label: _Label = None
    channels: _Channels = None
    every: _Every = None
    as_json: Json = False
    quiet: Quiet = False

    @property
    def columns(self) -> dict[str, Any]:
        """The columns that are named, as arguments of `slts.scan_series`."""
        names = ("time", "label", "channels", "every")
        id = self.id[0] if self.id is not None and len(self.id) == 1 else self.id
        return {"id": id, **{name: getattr(self, name) for name in names}}

    @cached_property
    def messages(self) -> Messages:
        """What the command prints beside its result."""
        return Messages(self.quiet)


def with_common_options(command: Callable[..., None]) -> Callable[..., None]:
    """Add the fields of `CommonOptions` to the options of a command; it gets them as `common`."""
    parameters = dict(inspect.signature(command, eval_str=True).parameters)
    del parameters["common"]
    shared = inspect.signature(CommonOptions, eval_str=True).parameters
    parameters |= shared

    @functools.wraps(command)
    def run(**values: Any) -> None:
        common = CommonOptions(**{name: values.pop(name) for name in shared})
        command(**values, common=common)

    # typer reads both.
    run.__signature__ = inspect.Signature(list(parameters.values()))  # type: ignore[attr-defined]
    run.__annotations__ = {name: one.annotation for name, one in parameters.items()}
    return run


# ---- models and series that commands read, files that they write


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
