"""``slts demo``: tell nine speakers apart by one vowel, and compare with the paper."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Annotated, Any

import typer
from typer import Option

from slts import datasets, estimators
from slts.cli import options
from slts.cli.evaluate import accuracy, describe_accuracy
from slts.cli.terminal import CommandError, Messages, show_json, show_table
from slts.estimators.linear import LinearClassifier
from slts.persistence import save
from slts.report import write_report
from slts.series import SeriesBatch

# Accuracy in the paper's table of results, in percent.
_PAPER = {"1NN": 93.8, "BBS": 97.1, "SLTS": 97.1}


Out = Annotated[Path, Option("--out", "-o", help="Folder for the model and the report.")]


def demo(
    out: Out = Path("demo-output"),
    random_state: options.RandomState = 0,
    as_json: options.Json = False,
    quiet: options.Quiet = False,
) -> None:
    """Train on Japanese Vowels, compare with the paper, write a report."""
    if out.exists() and not out.is_dir():
        raise CommandError(f"--out {out}: it is not a folder")
    X, y = datasets.load("japanese_vowels", "train")
    X_test, y_test = datasets.load("japanese_vowels", "test")
    Messages(quiet).say(
        f"Japanese Vowels: {len(X)} recordings of nine speakers for training, {X!r}"
    )
    rows: list[dict[str, Any]] = []
    model: Any = None
    for name, model in _classifiers(random_state).items():
        start = time.monotonic()
        model.set_params(verbose=not quiet).fit(X, y)
        measured = accuracy(model.predict(X_test), y_test)
        model.set_params(verbose=False)
        figures = {"paper": _PAPER.get(name), "landmarks": _n_kept(model, X)}
        seconds = time.monotonic() - start
        rows.append({"method": name, **measured, **figures, "seconds": seconds})
    out.mkdir(parents=True, exist_ok=True)
    model_file, page = out / "model.slts", out / "report.html"
    save(model, model_file)
    write_report(model, page, X=X_test, y=y_test, title="Japanese Vowels", verbose=not quiet)
    if as_json:
        show_json({"methods": rows, "model": str(model_file), "report": str(page)})
    elif not quiet:
        show_table(
            ["method", "accuracy %", "paper %", "series kept", "seconds"], list(map(_cells, rows))
        )
        best = f"{rows[-1]['method']}: {describe_accuracy(rows[-1])}"
        typer.echo(f"{best}; SLTS in the paper: {_PAPER['SLTS']}%")
        typer.echo(f"model:  {model_file}\nreport: {page}")


def _cells(row: dict[str, Any]) -> list[str]:
    paper = "" if row["paper"] is None else f"{row['paper']:.1f}"
    accuracy = f"{100 * row['accuracy']:.1f}"
    return [row["method"], accuracy, paper, str(row["landmarks"]), f"{row['seconds']:.1f}"]


def _classifiers(seed: int) -> dict[str, Any]:
    """Return the classifiers to compare; the last one is saved."""
    return {
        "1NN": estimators.OneNNClassifier(n_jobs=-1),
        "BBS": estimators.BBSClassifierCV(0.5, random_state=seed, n_jobs=-1),
        "SLTS": estimators.SLTSClassifierCV(0.5, random_state=seed, n_jobs=-1),
        "local": estimators.LocalSLTSClassifier(random_state=seed, n_jobs=-1),
    }


def _n_kept(model: Any, X: SeriesBatch) -> int:
    """Return the number of training series that predictions need."""
    if isinstance(model, LinearClassifier):
        return len(model.model_.aligned[0].used)
    return len(X)
