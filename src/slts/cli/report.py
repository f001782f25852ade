"""``slts report``: an HTML page about a model."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

from typer import Option

from slts.cli import options
from slts.cli.options import Expected, check_output, load_model, read_data
from slts.cli.terminal import show_json
from slts.report import write_report

Out = Annotated[Path, Option("--out", "-o", help="File to write.")]
Title = Annotated[str | None, Option(help="Heading of the page.", show_default="name of the data")]


@options.with_common_options
def report(
    model: options.ModelFile,
    data: options.OptionalData = None,
    out: Out = Path("report.html"),
    title: Title = None,
    groups: options.Groups = None,
    *,
    common: options.CommonOptions,
) -> None:
    """Write a self-contained HTML page about a model.

    With data, the page shows predictions and explanations; with labels, also the accuracy.
    """
    check_output(out, "--out", (".html", ".htm"), model, data)
    fitted = load_model(model, common, verbose=not common.quiet)
    series: dict[str, Any] = {}
    if data is not None:
        dataset = read_data(data, common, Expected.of_model(fitted), groups)
        series = {"X": dataset.series, "y": dataset.labels, "groups": dataset.groups}
        if dataset.labels is None:
            common.messages.say(f"{data} has no labels (--label): the report has no accuracy")
    title = title or Path(data or model).name
    write_report(fitted, out, title=title, verbose=not common.quiet, **series)
    if common.as_json:
        show_json({"report": str(out), "bytes": out.stat().st_size})
    else:
        common.messages.done(f"report: {out}")
