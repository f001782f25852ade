"""``slts fit``: train a classifier and save it."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from slts import estimators
from slts.cli import options
from slts.cli.data import check_device, open_scan
from slts.cli.output_paths import check_output_path
from slts.cli.scans import CommandScan, hold_out, read_labels
from slts.cli.scoring import accuracy, describe_accuracy
from slts.cli.terminal import CommandError, Messages, show_json
from slts.errors import DataError
from slts.execution import duration
from slts.files import Columns
from slts.guarantees.held_out import HeldOut
from slts.persistence import save

METHODS = {
    "local": "LocalSLTSClassifier",
    "slts-cv": "SLTSClassifierCV",
    "slts": "SLTSClassifier",
    "bbs-cv": "BBSClassifierCV",
    "bbs": "BBSClassifier",
    "1nn": "OneNNClassifier",
    "svm": "SimilaritySVC",
    "ldmlt": "LDMLTClassifier",
}


@options.with_common_options
def fit(
    data: options.Data,
    model: Annotated[
        Path,
        typer.Option("--model", "-m", help="File to write; ends in .slts.", show_default=False),
    ],
    method: Annotated[str, options.choice("--method", METHODS, "Classifier.")] = "local",
    test_size: Annotated[
        float | None,
        typer.Option(
            "--test-size",
            help="Share of the series to hold out, to measure accuracy.",
            callback=options.check_share,
        ),
    ] = None,
    test: Annotated[
        str | None, typer.Option("--test", metavar="DATA", help="Data to measure accuracy on.")
    ] = None,
    param: Annotated[
        list[str] | None,
        typer.Option("--param", "-p", metavar="NAME=VALUE", help="Parameter of the classifier."),
    ] = None,
    random_state: options.RandomState = 0,
    memory_limit: options.MemoryLimit = None,
    *,
    common: options.CommonOptions,
) -> None:
    """Train a classifier on labelled series and save it.

    With --test-size, the saved model is trained on the other series only.
    """
    if test_size is not None and test is not None:
        raise typer.BadParameter("give --test-size or --test, not both", param_hint="--test-size")
    if model.suffix != ".slts":
        raise typer.BadParameter(f"must end in .slts, got {model.name}", param_hint="--model")
    check_output_path(model, "the model", [data, test])
    settings = {
        "random_state": random_state,
        "n_jobs": common.jobs or -1,
        "device": common.device,
        "memory_limit": memory_limit,
    }
    estimator, given = _make_estimator(method, param or [], settings)
    scan = open_scan(data, common)
    training, held_out = scan, None
    # Test data are read before training, so that errors in them are found early.
    if test_size is not None:
        training, held_out = hold_out(scan, random_state, test_size)
    elif test is not None:
        held_out = _open_test(test, common, scan)
    seconds = _train(estimator, training, common.messages)
    # Training may take long: keep the model even if measuring it fails.
    save(estimator, model)
    measured = None
    if held_out is not None:
        found = HeldOut.of(estimator, held_out)
        measured = accuracy(found.predicted, found.labels)
    _print(estimator, model, seconds, measured, given, scan.columns, common.as_json)


def _open_test(test: str, common: options.CommonOptions, training: CommandScan) -> CommandScan:
    """Return a scan of test data, which must have the channels and classes of the training data."""
    known = read_labels(training)
    expect, classes = training.scan.channel_names, np.unique(known.labels)
    scan = open_scan(test, common, expect=expect, classes=classes)
    found = read_labels(scan)
    if found.n_channels != known.n_channels:
        raise DataError(
            f"{scan.name} has {found.n_channels} channels, but the training series have "
            f"{known.n_channels}"
        )
    return scan


def _make_estimator(
    method: str, parameters: Sequence[str], settings: dict[str, Any]
) -> tuple[Any, dict[str, Any]]:
    """Return a classifier and the parameters given as ``"name=value"``.

    Settings that the classifier does not have are left out.
    """
    estimator = getattr(estimators, METHODS[method])()
    owner, known = type(estimator).__name__, estimator.get_params()
    given = {}
    for text in parameters:
        name, equals, value = map(str.strip, text.partition("="))
        if not equals or not name:
            raise typer.BadParameter(f"expected name=value, got {text!r}", param_hint="--param")
        if name not in known:
            raise typer.BadParameter(
                f"{owner} has no parameter {name!r}; it has {', '.join(sorted(known))}",
                param_hint="--param",
            )
        given[name] = _parse_value(value)
    if settings["memory_limit"] is not None and "memory_limit" not in known:
        raise typer.BadParameter(
            f"{owner} needs all training series in memory; use --method local, slts or bbs",
            param_hint="--memory-limit",
        )
    estimator.set_params(**{k: v for k, v in settings.items() if k in known} | given)
    check_device(estimator.device, owner)
    return estimator, given


def _parse_value(text: str) -> Any:
    """Parse JSON or None, True, False; anything else is text.

    Examples
    --------
    >>> from slts.cli.fit import _parse_value
    >>> _parse_value("0.5"), _parse_value("[1, 2]"), _parse_value("None"), _parse_value("kmedoids")
    (0.5, [1, 2], None, 'kmedoids')
    """
    words = {"None": None, "True": True, "False": False}
    if text in words:
        return words[text]
    try:
        return json.loads(text)
    except ValueError:
        return text


def _train(estimator: Any, scan: CommandScan, messages: Messages) -> float:
    """Fit, and return the seconds it took."""
    estimator.set_params(verbose=messages.shows_progress)
    messages.detail(f"fitting {estimator!r}")
    start = time.monotonic()
    try:
        with messages.echo_log():
            estimator.fit(scan)
    except (ValueError, TypeError) as error:
        limit = f"The 'memory_limit' parameter of {type(estimator).__name__}"
        message = str(error).replace(limit, "--memory-limit").replace("(n_jobs)", "(--jobs)")
        raise CommandError(message) from error
    # The model that is saved does not print progress.
    estimator.set_params(verbose=False)
    return time.monotonic() - start


def _print(
    estimator: Any,
    path: Path,
    seconds: float,
    measured: dict[str, Any] | None,
    given: dict[str, Any],
    columns: Columns | None,
    as_json: bool,
) -> None:
    name, chosen = type(estimator).__name__, getattr(estimator, "best_params_", {})
    n_sampled = getattr(estimator, "n_sampled_", None)
    if as_json:
        show_json(
            {
                "model": str(path),
                "estimator": name,
                "parameters": given,
                "chosen": chosen,
                "n_series": estimator.n_series_in_,
                "n_sampled": n_sampled,
                "n_channels": estimator.n_channels_in_,
                "classes": estimator.classes_,
                "seconds": seconds,
                "held_out": measured,
                "columns": None if columns is None else str(columns),
            }
        )
        return
    settings = ", ".join(f"{key}={value:.6g}" for key, value in chosen.items())
    sample = f"{n_sampled} of " if n_sampled not in (None, estimator.n_series_in_) else ""
    typer.echo(
        f"{name} trained on {sample}{estimator.n_series_in_} series "
        f"({estimator.n_channels_in_} channels, "
        f"{len(estimator.classes_)} classes) in {duration(seconds)}"
        + (f"; chosen: {settings}" if settings else "")
    )
    if measured is not None:
        typer.echo(f"on held-out series: {describe_accuracy(measured)}")
    typer.echo(f"model: {path}")
