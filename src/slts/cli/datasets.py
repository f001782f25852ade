"""``slts datasets``: list, describe and download the data sets."""

from __future__ import annotations

import dataclasses
from typing import Annotated, Any

import typer

from slts import datasets
from slts.cli.terminal import show_json, show_table
from slts.datasets.loading import open_dataset

commands = typer.Typer(help="The data sets of the paper.", no_args_is_help=False)

_Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]
_Name = Annotated[str, typer.Argument(help="Name, as `slts datasets list` shows it.")]


@commands.callback(invoke_without_command=True)
def _default(context: typer.Context, as_json: _Json = False) -> None:
    """List, describe and download the data sets of the paper."""
    if context.invoked_subcommand is None:
        list_all(as_json=as_json)
    elif as_json:
        raise typer.BadParameter(f"goes behind {context.invoked_subcommand}", param_hint="--json")


@commands.command("list")
def list_all(as_json: _Json = False) -> None:
    """List the data sets, and whether they are on this machine."""
    entries = [_described(name) for name in datasets.list_datasets()]
    if as_json:
        show_json(entries)
        return
    header = ["name", "series", "channels", "classes", "steps", "here"]
    rows = [
        [
            entry["name"],
            str(entry["n_series"]),
            str(entry["n_channels"]),
            str(entry["n_classes"]),
            "-".join(map(str, dict.fromkeys(entry["lengths"]))),
            "yes" if entry["available"] else "no",
        ]
        for entry in entries
    ]
    show_table(header, rows)


@commands.command("info")
def show_info(name: _Name, as_json: _Json = False) -> None:
    """Show what is published of a data set."""
    entry = _described(name)
    if as_json:
        show_json(entry)
        return
    for field, value in entry.items():
        text = "; ".join(map(str, value)) if isinstance(value, tuple | list) else str(value)
        typer.echo(f"{field}: {text}")


@commands.command("fetch")
def fetch(
    name: _Name,
    force: Annotated[bool, typer.Option("--force", help="Even if the cache has it.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="No progress.")] = False,
    as_json: _Json = False,
) -> None:
    """Download a data set into the cache and print its path."""
    path = datasets.fetch(name, force=force, progress=not quiet)
    if as_json:
        show_json({"name": name, "path": str(path)})
    else:
        typer.echo(str(path))


def _described(name: str) -> dict[str, Any]:
    entry = datasets.info(name)
    try:
        with open_dataset(entry):
            available = True
    except FileNotFoundError:
        available = False
    return {**dataclasses.asdict(entry), "available": available}
