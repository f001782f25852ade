"""``slts report``: an HTML page about a model."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from slts.cli import options
from slts.cli.data import check_output_path, load_model, open_scan
from slts.cli.evaluate import copies_warning
from slts.cli.terminal import show_json
from slts.report import collect
from slts.report.page import write_page
from slts.tables.paths import STDIN


@options.command
def report(
    model: options.ModelFile,
    data: Annotated[str | None, typer.Argument(metavar="DATA", show_default=False)] = None,
    out: Annotated[Path, typer.Option("--out", "-o")] = Path("report.html"),
    title: Annotated[str | None, typer.Option(show_default="name of the data")] = None,
    groups: options.Groups = None,
    *,
    common: options.CommonOptions,
) -> None:
    """Write a self-contained HTML page about a model.

    With data, the page shows predictions and explanations; with labels, also the accuracy.

    Parameters
    ----------
    data
        Series to show, as for the other commands; with labels, the model is tested too.
    out
        File to write.
    title
        Heading of the page.
    """
    check_output_path(out, "the report", "--out", (".html", ".htm"), [model, data])
    fitted = load_model(model, common)
    arguments: dict[str, Any] = {}
    if data is not None:
        dataset = open_scan(data, common, model=fitted, groups=groups, labelled=False).read()
        arguments = {"X": dataset.series, "y": dataset.labels, "groups": dataset.groups}
        if dataset.labels is None:
            common.messages.say(
                f"no column of {data} holds the classes of the model: the report has no accuracy"
            )
    title = title or _title(str(model) if data is None else data)
    content = collect(fitted, title=title, verbose=common.messages.shows_progress, **arguments)
    summary = content["summary"]
    if summary["n_seen"] and summary["accuracy"] is not None:
        common.messages.say(copies_warning(summary["n_seen"], summary["n_series"]))
    write_page(content, out)
    if common.as_json:
        show_json({"report": str(out), "bytes": out.stat().st_size})
    else:
        common.messages.done(f"report: {out}")


def _title(source: str) -> str:
    """Return a heading: the name of a file or folder, without suffixes.

    Examples
    --------
    >>> from slts.cli.report import _title
    >>> _title("data/gait_test.csv.gz"), _title("japanese_vowels:test"), _title("-")
    ('Gait test', 'Japanese vowels: test', 'Standard input')
    """
    if source == STDIN:
        return "Standard input"
    words = Path(source).name.split(".")[0].replace("_", " ").replace(":", ": ").strip()
    return f"{words[:1].upper()}{words[1:]}" or source
