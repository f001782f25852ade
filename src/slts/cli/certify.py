"""``slts certify``: bound the error of a model."""

from __future__ import annotations

from typing import Annotated, Literal

import typer
from typer import Option

from slts.cli import options
from slts.cli.data import Expected, load_model, open_scan, read_data
from slts.cli.terminal import show_json
from slts.guarantees import certify

Delta = Annotated[float, Option(callback=options.check_share, help="Probability of failure.")]
Sample = Annotated[
    Literal["holdout", "training"],
    Option(help="Whether the data are held out or the model was trained on them."),
]
Copies = Annotated[
    Literal["error", "allow"],
    Option(help="Whether many held-out series may equal training series."),
]
NModels = Annotated[int, Option(min=1, max=10**100, help="Number of models compared here.")]


@options.with_common_options
def certify_model(
    model: options.ModelFile,
    data: options.Data,
    delta: Delta = 0.05,
    sample: Sample = "holdout",
    n_models: NModels = 1,
    groups: options.Groups = None,
    copies: Copies = "error",
    *,
    common: options.CommonOptions,
) -> None:
    """Compute an upper bound on the error on new series."""
    fitted = load_model(model, common, verbose=not common.quiet)
    expected = Expected.of_model(fitted)
    if sample == "holdout":
        scan = open_scan(data, common, expected, groups)
        certificate = certify(fitted, scan, delta=delta, n_models=n_models, copies=copies)
    else:
        # These bounds need all training series at once.
        series = read_data(data, common, expected, groups)
        certificate = certify(
            fitted, series.series, series.labels, groups=series.groups, delta=delta,
            n_models=n_models, sample=sample,
        )  # fmt: skip
    if common.as_json:
        show_json({"data": data, **certificate.to_dict()})
    else:
        typer.echo(str(certificate))
