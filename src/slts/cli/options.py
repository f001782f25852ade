"""Options that several commands have."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, Literal

from typer import Argument, BadParameter, Option

from slts.cli.terminal import Messages


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
