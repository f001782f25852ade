"""Options that several commands have."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any

import typer

from slts.bytesize import parse_bytes
from slts.cli.terminal import Messages

_DEVICES = ("cpu", "cuda", "auto")


def choice(name: str, choices: Iterable[str], help: str) -> Any:
    """Make an option that takes one of several words."""
    words = list(choices)

    def check(value: str) -> str:
        if value not in words:
            raise typer.BadParameter(f"must be one of {', '.join(words)}, got {value}")
        return value

    return typer.Option(
        name,
        metavar=name.strip("-").upper(),
        help=f"{help} One of {', '.join(words)}.",
        callback=check,
        autocompletion=lambda: words,
    )


def _parse_size(text: str) -> int:
    try:
        return parse_bytes(text)
    except ValueError as error:
        raise typer.BadParameter(
            f"must be a positive number of bytes, or a size such as 2GB or 512MiB, got {text}"
        ) from error


def check_share(value: float | None) -> float | None:
    """Raise an error for a number that is not strictly between 0 and 1."""
    if value is not None and not 0.0 < value < 1.0:
        raise typer.BadParameter(f"must be between 0 and 1, got {value}")
    return value


Data = Annotated[
    str,
    typer.Argument(
        metavar="DATA",
        help="A .ts, .csv, .tsv, .parquet, .feather or .npz file (text files may end in .gz, .bz2, "
        ".xz or .zst), a folder of Parquet files or a pattern in quotes such as 'part-*.parquet', "
        "a folder with one CSV per series and labels.csv, or with a folder of CSV files per class, "
        "- for CSV from standard input, or a data set such as japanese_vowels:test.",
        show_default=False,
    ),
]
ModelFile = Annotated[
    Path, typer.Argument(metavar="MODEL", help="Model saved by `slts fit`.", show_default=False)
]
MemoryLimit = Annotated[
    int | None,
    typer.Option(
        "--memory-limit",
        metavar="SIZE",
        parser=_parse_size,
        help="Memory to use in addition to Python itself, such as 2GB.",
        show_default="half of the available memory",
    ),
]
Groups = Annotated[
    str | None,
    typer.Option(
        "--groups",
        metavar="COLUMN",
        help="Column with the group of a series, such as the subject. Groups are the independent "
        "draws, and are held out as a whole.",
        show_default="every series is an independent draw",
    ),
]
RandomState = Annotated[int, typer.Option("--random-state", min=0, help="Seed.")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON on standard output.")]
Quiet = Annotated[
    bool,
    typer.Option(
        "--quiet",
        "-q",
        help="Print only warnings and errors, and the scores, explanations, predictions or JSON "
        "that are asked for.",
    ),
]
Verbose = Annotated[bool, typer.Option("--verbose", "-v", help="Print details.")]


def _column(name: str, help: str, default: str = "guessed") -> Any:
    return typer.Option(name, help=help, show_default=default)


@dataclass(frozen=True)
class CommonOptions:
    """Options of all commands that use a model: devices, columns of tables, output."""

    jobs: Annotated[
        int, typer.Option("--jobs", "-j", min=0, help="Threads; 0 uses all processors.")
    ] = 0
    device: Annotated[
        str,
        choice(
            "--device",
            _DEVICES,
            "Where series are aligned: on the CPU, on an NVIDIA GPU, or (auto) on a GPU if there "
            "is one and the work is large enough.",
        ),
    ] = "cpu"
    id: Annotated[
        list[str] | None,
        _column(
            "--id",
            "Column that identifies a series. Give it several times if several columns do so "
            "together: --id subject --id trial.",
        ),
    ] = None
    time: Annotated[str | None, _column("--time", "Column that orders the steps.")] = None
    label: Annotated[str | None, _column("--label", "Column with the label.")] = None
    channels: Annotated[
        str | None,
        _column(
            "--channels",
            "Columns with the values: names separated by commas, or a range such as c1..c12.",
            default="those of the model, or all other numeric columns that vary within series",
        ),
    ] = None
    every: Annotated[
        str | None,
        _column(
            "--every",
            "Resample series on a grid of time with steps of this distance: 20ms, 1s, 5min for "
            "moments, a number for a time of numbers.",
            default="steps are kept; time only sorts them",
        ),
    ] = None
    as_json: Json = False
    quiet: Quiet = False
    verbose: Verbose = False

    @property
    def columns(self) -> dict[str, Any]:
        """How a table is read, as arguments of `slts.scan_series`."""
        names = ("time", "label", "channels", "every")
        id = self.id[0] if self.id is not None and len(self.id) == 1 else self.id
        return {"id": id, **{name: getattr(self, name) for name in names}}

    @cached_property
    def messages(self) -> Messages:
        """What the command prints on standard error."""
        return Messages(self.quiet, self.verbose)


def with_common_options(function: Callable[..., None]) -> Callable[..., None]:
    """Give a command the fields of `CommonOptions` as options; it gets them as `common`."""
    own = inspect.signature(function, eval_str=True).parameters
    shared = inspect.signature(CommonOptions, eval_str=True).parameters
    parameters = [own[name] for name in own if name != "common"] + [*shared.values()]

    @functools.wraps(function)
    def command(**given: Any) -> None:
        common = CommonOptions(**{name: given.pop(name) for name in shared})
        function(**given, common=common)

    # typer reads both.
    command.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    command.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    return command
