"""Options that several commands have."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, NamedTuple

import typer

_DEVICES = ("cpu", "cuda", "auto")


def _known(device: str) -> str:
    if device not in _DEVICES:
        raise typer.BadParameter(f"must be one of {', '.join(_DEVICES)}, got {device}")
    return device


Data = Annotated[
    str,
    typer.Argument(
        metavar="DATA",
        help="A .ts, .csv, .tsv, .parquet, .feather or .npz file (text files may end in .gz, .bz2, "
        ".xz or .zst), a folder of Parquet files or a pattern in quotes such as 'part-*.parquet', "
        "a folder with one CSV per series and labels.csv, - for CSV from standard input, or a data "
        "set such as japanese_vowels:test.",
        show_default=False,
    ),
]
ModelFile = Annotated[
    Path, typer.Argument(metavar="MODEL", help="File that `slts fit` wrote.", show_default=False)
]
Id = Annotated[
    str | None,
    typer.Option("--id", help="Column that tells series apart.", show_default="guessed"),
]
Time = Annotated[
    str | None,
    typer.Option("--time", help="Column to order steps by.", show_default="guessed"),
]
Label = Annotated[
    str | None, typer.Option("--label", help="Column with the label.", show_default="guessed")
]
Channels = Annotated[
    str | None,
    typer.Option(
        "--channels",
        help="Columns with the values: names with commas between them; c1..c12 for a span.",
        show_default="those of the model, or all other numbers",
    ),
]
Jobs = Annotated[int, typer.Option("--jobs", "-j", min=0, help="Threads; 0 takes all processors.")]
Device = Annotated[
    str,
    typer.Option(
        "--device",
        metavar=f"[{'|'.join(_DEVICES)}]",
        help="What aligns: the processors, an NVIDIA GPU, or the GPU if there is one and the work "
        "is large enough.",
        callback=_known,
    ),
]
MemoryLimit = Annotated[
    str | None,
    typer.Option(
        "--memory-limit",
        metavar="SIZE",
        help="Memory to take beside Python itself, such as 2GB: larger data are read part by part.",
        show_default="half of what there is",
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON on standard output.")]
Quiet = Annotated[
    bool, typer.Option("--quiet", "-q", help="No progress and no messages but warnings.")
]
Verbose = Annotated[bool, typer.Option("--verbose", "-v", help="Say more.")]


class ColumnOptions(NamedTuple):
    """What the command line says about the columns of a table."""

    id: str | None
    time: str | None
    label: str | None
    channels: str | None

    def as_keywords(self) -> dict[str, str | None]:
        """Return them as `slts.files.read_series` takes them."""
        return self._asdict()
