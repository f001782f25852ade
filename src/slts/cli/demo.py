"""``slts demo``: nine speakers told apart by one vowel, beside the paper's figures."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from slts import datasets, estimators
from slts.cli.answers import accuracy_in_words, accuracy_of, answer
from slts.cli.options import Json, Quiet, Verbose
from slts.cli.terminal import CommandError, Voice, show_json, show_table
from slts.extras import import_extra
from slts.persistence import save
from slts.series import SeriesBatch

# Accuracy in the paper's table of results, in percent.
_PAPER = {"1NN": 93.8, "BBS": 97.1, "SLTS": 97.1}


def demo(
    out: Annotated[Path, typer.Option("--out", "-o", help="Folder for model and report.")] = Path(
        "demo-output"
    ),
    random_state: Annotated[int, typer.Option("--random-state", min=0, help="Seed.")] = 0,
    as_json: Json = False,
    quiet: Quiet = False,
    verbose: Verbose = False,
) -> None:
    """Train on Japanese Vowels, compare with the paper, write a model and a report."""
    from slts.report import write_report

    voice = Voice(quiet, verbose)
    if out.exists() and not out.is_dir():
        raise CommandError(f"{out} is not a folder")
    X, y = _load("train")
    X_test, y_test = _load("test")
    voice.say(f"Japanese Vowels: {len(X)} utterances of nine speakers to learn from, {X!r}")
    rows = []
    fitted: Any = None
    for name, model in _contenders(random_state).items():
        start = time.monotonic()
        fitted = model.set_params(verbose=voice.shows_progress).fit(X, y)
        found = accuracy_of(answer(fitted, X_test)[0], y_test)
        fitted.set_params(verbose=False)
        seconds = time.monotonic() - start
        rows.append(
            {"method": name, **found, "paper": _PAPER.get(name), "landmarks": _kept(fitted, X),
             "seconds": seconds}
        )  # fmt: skip
        voice.detail(f"{name}: {accuracy_in_words(found)}, {seconds:.1f} s")
    out.mkdir(parents=True, exist_ok=True)
    model_file, page = out / "model.slts", out / "report.html"
    save(fitted, model_file)
    voice.detail(f"model: {model_file}")
    write_report(
        fitted, page, X=X_test, y=y_test, title="Japanese Vowels", verbose=voice.shows_progress
    )
    if as_json:
        show_json({"methods": rows, "model": str(model_file), "report": str(page)})
        return
    show_table(
        ["method", "accuracy %", "paper %", "series kept", "seconds"],
        [
            [
                row["method"],
                f"{100 * row['accuracy']:.1f}",
                "" if row["paper"] is None else f"{row['paper']:.1f}",
                str(row["landmarks"]),
                f"{row['seconds']:.1f}",
            ]
            for row in rows
        ],
    )
    best = rows[-1]
    typer.echo(
        f"{best['method']}: {accuracy_in_words(best)}; the paper's SLTS has {_PAPER['SLTS']}%"
    )
    typer.echo(f"model:  {model_file}\nreport: {page.resolve()}")


def _load(part: str) -> tuple[SeriesBatch, Any]:
    try:
        return datasets.load("japanese_vowels", part)
    except FileNotFoundError:
        # Says how to get aeon, whose package carries the data, if that is what is missing.
        import_extra("aeon", "demo")
        raise


def _contenders(seed: int) -> dict[str, Any]:
    """Classifiers to compare; the last one is kept."""
    return {
        "1NN": estimators.OneNNClassifier(n_jobs=-1),
        "BBS": estimators.BBSClassifierCV(0.5, random_state=seed, n_jobs=-1),
        "SLTS": estimators.SLTSClassifierCV(0.5, random_state=seed, n_jobs=-1),
        "local": estimators.LocalSLTSClassifier(random_state=seed, n_jobs=-1),
    }


def _kept(model: Any, X: SeriesBatch) -> int:
    coef = getattr(model, "coef_", None)
    if coef is not None:
        return int(np.count_nonzero(coef.any(axis=0)))
    return len(getattr(model, "landmarks_", X))
