"""Options of commands: `command` takes their help from docstrings, and adds common ones."""

from __future__ import annotations

import copy
import functools
import inspect
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, get_args, get_origin

import typer

from slts.cli.terminal import Messages
from slts.quantities import parse_bytes

_DEVICES = ("cpu", "cuda", "auto")


def choice(choices: Iterable[str]) -> Any:
    """Make an option that takes one of several words."""
    words = list(choices)

    def check(value: str) -> str:
        if value not in words:
            raise typer.BadParameter(f"must be one of {', '.join(words)}, got {value}")
        return value

    return typer.Option(
        help=f"One of {', '.join(words)}.", callback=check, autocompletion=lambda: words
    )


def _parse_size(text: str) -> int:
    try:
        return parse_bytes(text)
    except ValueError as error:
        raise typer.BadParameter(
            f"must be a positive number of bytes, or a size such as 2GB or 512MiB, got {text}"
        ) from error


def _check_share(value: float | None) -> float | None:
    if value is not None and not 0.0 < value < 1.0:
        raise typer.BadParameter(f"must be between 0 and 1, got {value}")
    return value


def _check_jobs(value: int) -> int:
    if value == 0:
        raise typer.BadParameter("must be a number of threads, or -1 for all processors, got 0")
    return value


def share() -> Any:
    """Make an option that takes a number strictly between 0 and 1."""
    return typer.Option(callback=_check_share)


Data = Annotated[
    str,
    typer.Argument(
        metavar="DATA",
        help="One of: a .ts, .csv, .tsv, .parquet, .feather or .npz file (text files may end in "
        ".gz, .bz2, .xz or .zst); a folder of Parquet files; a pattern in quotes such as "
        "'part-*.parquet'; a folder with one CSV file per series and labels.csv; a folder with a "
        "folder of CSV files per class; - for CSV from standard input; a data set such as "
        "japanese_vowels:test.",
        show_default=False,
    ),
]
ModelFile = Annotated[
    Path, typer.Argument(metavar="MODEL", help="Model saved by `slts fit`.", show_default=False)
]
MemoryLimit = Annotated[
    int | None,
    typer.Option(
        metavar="SIZE",
        parser=_parse_size,
        help="Memory to use in addition to Python itself, such as 2GB.",
        show_default="half of the available memory",
    ),
]
Groups = Annotated[
    str | None,
    typer.Option(
        metavar="COLUMN",
        help="Column with the group of a series, such as the subject. Groups are the independent "
        "draws, and each is held out as a whole.",
        show_default="every series is an independent draw",
    ),
]
RandomState = Annotated[int, typer.Option(min=0, help="Seed.")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON on standard output.")]
Quiet = Annotated[
    bool,
    typer.Option(
        "--quiet",
        "-q",
        help="Print only warnings and errors, and the results that you asked for: scores, "
        "certificates, explanations, predictions or JSON.",
    ),
]
Verbose = Annotated[bool, typer.Option("--verbose", "-v", help="Print details.")]
_Guessed = Annotated[str | None, typer.Option(show_default="guessed")]


@dataclass(frozen=True)
class CommonOptions:
    """Options of all commands that use a model: devices, columns of tables, output.

    Parameters
    ----------
    jobs
        Number of threads, as `n_jobs` in Python; -1 uses all cores.
    device
        Where series are aligned: on the CPU, on an NVIDIA GPU, or (auto) on a GPU if there is one
        and the work is large enough.
    id
        Column that identifies a series. Repeat it if several columns identify a series
        together: --id subject --id trial.
    time
        Column with the time, which sorts the steps.
    label
        Column with the label.
    channels
        Columns with the values: names separated by commas, or a range such as c1..c12.
    every
        Resample series on a regular time grid with this interval: 20ms, 1s or 5min for timestamps,
        a number if the times are numbers.
    """

    jobs: Annotated[int, typer.Option("--jobs", "-j", callback=_check_jobs)] = -1
    device: Annotated[str, choice(_DEVICES)] = "cpu"
    id: Annotated[list[str] | None, typer.Option(show_default="guessed")] = None
    time: _Guessed = None
    label: _Guessed = None
    channels: Annotated[
        str | None,
        typer.Option(
            show_default="those of the model, or all other numeric columns that vary within series"
        ),
    ] = None
    every: Annotated[
        str | None, typer.Option(show_default="steps are kept; time only sorts them")
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


def command(function: Callable[..., None]) -> Callable[..., None]:
    """Make a function with documented parameters a command.

    The docstring has the help of every option. A function with a parameter `common` has the
    fields of `CommonOptions` as options too.
    """
    text, helps = _documented(function)
    options = dict(inspect.signature(function, eval_str=True).parameters)
    shared = dict(inspect.signature(CommonOptions, eval_str=True).parameters)
    if options.pop("common", None) is None:
        shared.clear()
    helps |= _documented(CommonOptions)[1]
    parameters = [_with_help(one, helps) for one in (*options.values(), *shared.values())]

    @functools.wraps(function)
    def run(**values: Any) -> None:
        common = {name: values.pop(name) for name in shared}
        function(**values, **({"common": CommonOptions(**common)} if shared else {}))

    run.__doc__ = text
    # typer reads both.
    run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    run.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    return run


def _documented(thing: Any) -> tuple[str, dict[str, str]]:
    """Return a docstring without its section of parameters, and the text of each of these."""
    text, _, section = (inspect.getdoc(thing) or "").partition("\n\nParameters\n----------\n")
    items = re.findall(r"^(\w+)\n((?: +.*\n?)+)", section, re.MULTILINE)
    # The terminal decides where lines end.
    text = "\n\n".join(" ".join(paragraph.split()) for paragraph in text.split("\n\n"))
    return text, {name: " ".join(lines.split()) for name, lines in items}


def _with_help(parameter: inspect.Parameter, helps: dict[str, str]) -> inspect.Parameter:
    """Return a parameter whose option has the help of the docstring; others are unchanged."""
    if parameter.name not in helps:
        return parameter
    kind, option = parameter.annotation, typer.Option()
    if get_origin(kind) is Annotated:
        kind, option = get_args(kind)
    option = copy.copy(option)
    option.help = " ".join(filter(None, (helps[parameter.name], option.help)))
    if kind is bool and not option.param_decls:
        # Otherwise typer would add --no-... for every switch.
        option.param_decls = (f"--{parameter.name.replace('_', '-')}",)
    return parameter.replace(annotation=Annotated[kind, option])
