"""``slts datasets``: list, describe and download the data sets."""

from __future__ import annotations

import dataclasses
from typing import Annotated, Any

import typer

from slts import datasets
from slts.cli.options import Json, Quiet
from slts.cli.terminal import show_json, show_table
from slts.datasets.loading import open_dataset

commands = typer.Typer(add_completion=False)

_Name = Annotated[str, typer.Argument(help="Name of a data set, see `slts datasets list`.")]


@commands.callback(invoke_without_command=True)
def _default(context: typer.Context, as_json: Json = False) -> None:
    """List, describe and download the data sets of the paper."""
    if context.invoked_subcommand is None:
        list_all(as_json=as_json)
    elif as_json:
        raise typer.BadParameter(
            f"must come after {context.invoked_subcommand}", param_hint="--json"
        )


@commands.command("list")
def list_all(as_json: Json = False) -> None:
    """List the data sets and whether they are on this machine."""
    entries = [_describe(name) for name in datasets.list_datasets()]
    if as_json:
        show_json(entries)
        return
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
    show_table(["name", "series", "channels", "classes", "steps", "available"], rows)


@commands.command("info")
def show_info(name: _Name, as_json: Json = False) -> None:
    """Show the published facts about a data set."""
    entry = _describe(name)
    if as_json:
        show_json(entry)
        return
    for field, value in entry.items():
        text = "; ".join(map(str, value)) if isinstance(value, tuple | list) else str(value)
        typer.echo(f"{field}: {text}")


@commands.command("fetch")
def fetch(
    name: _Name,
    force: Annotated[
        bool, typer.Option("--force", help="Download even if the cache has the data set.")
    ] = False,
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """Download a data set into the cache and print its path."""
    path = datasets.fetch(name, force=force, progress=not quiet)
    if as_json:
        show_json({"name": name, "path": str(path)})
    else:
        typer.echo(str(path))


def _describe(name: str) -> dict[str, Any]:
    entry = datasets.info(name)
    try:
        with open_dataset(entry):
            available = True
    except FileNotFoundError:
        available = False
    return {**dataclasses.asdict(entry), "available": available}
