"""``slts fit``: train a classifier and save it."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from sklearn.model_selection import train_test_split

from slts._typing import AnyArray
from slts.cli.answers import accuracy_in_words, accuracy_of, answer
from slts.cli.data import read_labelled
from slts.cli.large_data import Spelled, limit_of, log_aloud, read_or_scan, scan_if_large
from slts.cli.methods import Method, make_estimator
from slts.cli.options import (
    Channels,
    ColumnOptions,
    Data,
    Device,
    Id,
    Jobs,
    Json,
    Label,
    MemoryLimit,
    Quiet,
    Time,
    Verbose,
)
from slts.cli.places import check_place
from slts.cli.terminal import CommandError, Voice, show_json
from slts.estimators.streams import predictions
from slts.execution import duration
from slts.files import Columns, Dataset, SeriesScan, scan_series
from slts.files.paths import STDIN
from slts.persistence import save
from slts.series import SeriesBatch


def fit(
    data: Data,
    model: Annotated[
        Path,
        typer.Option("--model", "-m", help="File to save to; ends in .slts.", show_default=False),
    ],
    method: Annotated[Method, typer.Option("--method", help="Classifier.")] = Method.local,
    test_size: Annotated[
        float | None,
        typer.Option("--test-size", help="Share of the series held out to measure accuracy."),
    ] = None,
    test: Annotated[
        str | None, typer.Option("--test", metavar="DATA", help="Other data to measure it on.")
    ] = None,
    param: Annotated[
        list[str] | None,
        typer.Option("--param", "-p", metavar="NAME=VALUE", help="Parameter of the classifier."),
    ] = None,
    random_state: Annotated[int, typer.Option("--random-state", min=0, help="Seed.")] = 0,
    jobs: Jobs = 0,
    device: Device = "cpu",
    memory_limit: MemoryLimit = None,
    id: Id = None,
    time: Time = None,
    label: Label = None,
    channels: Channels = None,
    as_json: Json = False,
    quiet: Quiet = False,
    verbose: Verbose = False,
) -> None:
    """Train a classifier on labelled series and save it.

    The model is the one that was measured: with --test-size it is trained on the other series only.
    """
    voice = Voice(quiet, verbose)
    if test_size is not None and test is not None:
        raise typer.BadParameter("give --test-size or --test, not both", param_hint="--test-size")
    if test_size is not None and not 0.0 < test_size < 1.0:
        raise typer.BadParameter("must lie between 0 and 1", param_hint="--test-size")
    if model.suffix != ".slts":
        raise typer.BadParameter(f"must end in .slts, got {model.name}", param_hint="--model")
    check_place(model, "the model", [data, test])
    estimator, given = make_estimator(method, param or [], random_state, jobs, device)
    columns, limit = ColumnOptions(id, time, label, channels), limit_of(memory_limit)
    large = scan_if_large(data, columns, voice, limit)
    if large is not None:
        if test_size is not None:
            raise CommandError(
                f"{data} is read part by part and not divided: give --test, or a larger "
                f"--memory-limit"
            )
        if large.columns is not None and large.columns.label is None:
            unused = ", ".join(large.columns.ignored) or "none"
            raise CommandError(
                f"{data} has no labels that could be found: name their column: --label (columns "
                f"that are not used: {unused})"
            )
        if "memory_limit" not in estimator.get_params():
            raise CommandError(
                f"--method {method.value} needs all series in memory, and {data} is read part by "
                f"part: give a larger --memory-limit, or --method local, slts or bbs"
            )
        estimator.set_params(memory_limit=limit)
        if test is not None and test != STDIN:
            # Before the training, so that nobody waits for a model to hear of a misspelt name.
            scan_series(test, expect=large.channel_names, **columns.as_keywords())
        seconds = _train(estimator, large, None, voice)
        # Training may have taken long: what is wrong with the test data must not cost the model.
        save(estimator, model)
        measured = None if test is None else _measured(estimator, test, columns, limit, voice)
        _tell(estimator, model, seconds, measured, given, large.columns, as_json)
        return
    found, labels = read_labelled(data, columns, voice)
    series, held_out, truth = found.series, None, None
    if test_size is not None:
        series, labels, held_out, truth = _divide(found, labels, test_size, random_state)
    if test is not None:
        # Before the training, so that nobody waits for a model to hear of a misspelt name.
        other, truth = read_labelled(test, columns, voice, like=(series, np.unique(labels)))
        held_out = other.series
    seconds = _train(estimator, series, labels, voice)
    measured = None
    if held_out is not None and truth is not None:
        measured = accuracy_of(answer(estimator, held_out)[0], truth)
    save(estimator, model)
    _tell(estimator, model, seconds, measured, given, found.columns, as_json)


def _measured(
    estimator: Any, test: str, columns: ColumnOptions, limit: int, voice: Voice
) -> dict[str, Any]:
    """Accuracy on other data, read part by part where they are large."""
    series, truth, _ = read_or_scan(test, columns, voice, limit, estimator)
    if isinstance(series, Spelled):
        return accuracy_of(*predictions(estimator, series))
    assert truth is not None
    return accuracy_of(estimator.predict(series), truth)


def _divide(
    found: Dataset, labels: AnyArray, test_size: float, random_state: int
) -> tuple[SeriesBatch, AnyArray, SeriesBatch, AnyArray]:
    everyone = np.arange(len(found))
    try:
        kept, left = train_test_split(
            everyone, test_size=test_size, random_state=random_state, stratify=labels
        )
    except ValueError as error:
        raise CommandError(
            f"{found.source} cannot be divided so that both parts have every class: {error}"
        ) from error
    return found.series[kept], labels[kept], found.series[left], labels[left]


def _train(
    estimator: Any, series: SeriesBatch | SeriesScan, labels: AnyArray | None, voice: Voice
) -> float:
    shows = "verbose" in estimator.get_params()
    if shows:
        estimator.set_params(verbose=voice.shows_progress)
    voice.detail(f"fitting {estimator!r}")
    start = time.monotonic()
    try:
        with log_aloud(voice):
            estimator.fit(series, labels)
    except (ValueError, TypeError) as error:
        limit = f"The 'memory_limit' parameter of {type(estimator).__name__}"
        message = str(error).replace(limit, "--memory-limit").replace("(n_jobs)", "(--jobs)")
        raise CommandError(message) from error
    if shows:
        # A property of this run, not of the model.
        estimator.set_params(verbose=False)
    return time.monotonic() - start


def _tell(
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
        typer.echo(f"on held-out series: {accuracy_in_words(measured)}")
    typer.echo(f"model: {path}")
