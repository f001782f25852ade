"""``slts certify``: bound the error of a model."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from slts.cli import options
from slts.cli.data import load_model, open_scan
from slts.cli.terminal import show_json
from slts.guarantees import certify


@options.with_common_options
def certify_model(
    model: options.ModelFile,
    data: options.Data,
    delta: Annotated[
        float,
        typer.Option(
            "--delta",
            help="Probability that a bound fails, between 0 and 1.",
            callback=options.check_share,
        ),
    ] = 0.05,
    sample: Annotated[
        str,
        options.choice(
            "--sample",
            ("holdout", "training"),
            "Whether the data are held out or the model was trained on them.",
        ),
    ] = "holdout",
    n_models: Annotated[
        int, typer.Option("--n-models", min=1, help="Number of models compared on these data.")
    ] = 1,
    groups: options.Groups = None,
    memory_limit: options.MemoryLimit = None,
    *,
    common: options.CommonOptions,
) -> None:
    """Compute an upper bound on the error on new series."""
    if groups is not None and sample == "training":
        raise typer.BadParameter("needs --sample holdout", param_hint="--groups")
    fitted = load_model(
        model, common, memory_limit=memory_limit, shows_progress=common.messages.shows_progress
    )
    scan = open_scan(data, common, model=fitted, groups=groups)
    arguments: tuple[Any, ...] = (scan,)
    if sample == "training":
        # Bounds from the training sample need all its series at once.
        everything = scan.read()
        arguments = (everything.series, everything.labels)
    certificate = certify(fitted, *arguments, delta=delta, n_models=n_models, sample=sample)
    if common.as_json:
        show_json({"data": scan.name, **certificate.to_dict()})
    else:
        typer.echo(str(certificate))
