"""Run a study: ``python -m study reproduce`` or ``python -m study accuracy``.

Every result is kept at once, so that an interrupted run continues when it is started again with
the same folder. Once all results are there, the document is rewritten in seconds.
"""

from __future__ import annotations

import argparse
import dataclasses
import datetime
import importlib.metadata
import json
import os
import platform
import shlex
import signal
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import slts
from study import figures, paper_document, paper_tables, peer_document, peer_tables
from study.markdown import Element, Grid, Table, to_markdown
from study.methods import unavailable
from study.problems import Loader, load_published, missing_datasets
from study.protocol import (
    ACCURACY_WORDS,
    FAST,
    FULL,
    REPRODUCTION_WORDS,
    Protocol,
    Selection,
    compared_datasets,
    parse_only,
    plan_accuracy,
    plan_reproduction,
)
from study.runner import Ledger, LedgerBusyError, Observer, Outcome, RunState, Unit, Work, run_units
from study.work import Worker

RESULTS = "results.jsonl"
# Seconds between two lines of progress.
_LINE_EVERY = 5.0


@dataclass(frozen=True)
class Study:
    """What differs between the two studies.

    Parameters
    ----------
    folder, help
        Default output folder, and description on the command line.
    words
        What ``--only`` accepts besides data sets; see `parse_only`.
    datasets
        From the protocol to the data sets.
    plan, collect, draw
        From the protocol to units, from results to tables, from tables to figures.
    build
        From tables, facts about the run and names of figures to the document.
    fields
        Columns of the file with all scores.
    pictures
        Format of the figures in the document that ``--markdown`` writes: "png" or "svg".
    """

    folder: str
    help: str
    words: Mapping[str, tuple[str, ...]]
    datasets: Callable[[Protocol], tuple[str, ...]]
    plan: Callable[[Protocol, Selection, Mapping[str, str]], list[Unit]]
    collect: Callable[[Mapping[str, Any], Protocol, Selection], Table]
    draw: Callable[[Table], dict[str, Any]]
    build: Callable[[Table, Table, Sequence[str]], list[Element]]
    fields: tuple[str, ...]
    pictures: str


STUDIES = {
    "reproduce": Study(
        "reproduction",
        "Repeat the experiments of the paper and compare with its tables and figures.",
        REPRODUCTION_WORDS,
        lambda protocol: protocol.datasets,
        plan_reproduction,
        paper_tables.collect,
        figures.draw_reproduction,
        paper_document.build,
        ("selection", "landmarks", "heldout", "validation", "gamma", "lam", "C"),
        pictures="svg",
    ),
    "accuracy": Study(
        "accuracy",
        "Compare the classifiers with their ablations and with those of aeon.",
        ACCURACY_WORDS,
        compared_datasets,
        plan_accuracy,
        peer_tables.collect,
        figures.draw_accuracy,
        peer_document.build,
        ("fit_seconds", "predict_seconds", "numbers", "ece", "overconfidence", "log_loss", "brier"),
        pictures="png",
    ),
}
_FIELDS = ("dataset", "method", "split", "accuracy", "n_train", "n_test")


@dataclass(frozen=True)
class Report:
    """Tables of a run, facts about it, and results and failures of its units."""

    tables: Table
    run: Table
    outcome: Outcome


def run_study(
    study: Study,
    out: Path,
    *,
    protocol: Protocol = FULL,
    selection: Selection | None = None,
    jobs: int = 1,
    command: str = "",
    markdown: Path | None = None,
    only_write: bool = False,
    observer: Observer | None = None,
    loader: Loader = load_published,
    work: Work | None = None,
) -> Report:
    """Run a study, or the rest of it, and write tables, figures and the document into a folder.

    Parameters
    ----------
    study
        One of `STUDIES`.
    out
        The folder. Results are kept in its file ``results.jsonl``.
    protocol
        What is varied.
    selection
        Data sets and parts; None runs everything.
    jobs
        Number of processes.
    command
        How the run was started, for the document.
    markdown
        Also write the document to this file.
    only_write
        Run nothing, and report the results that exist.
    observer
        Called after every unit.
    loader, work
        For tests: other data, other work.
    """
    selection = selection or parse_only(None, study.words, study.datasets(protocol))
    missing = missing_datasets(selection.datasets, loader)
    missing |= {name: why for name, why in unavailable().items() if name in selection.parts}
    units = study.plan(protocol, selection, missing)
    ledger = Ledger(out / RESULTS)
    if only_write:
        kept = ledger.results(units)
        outcome = Outcome(kept, n_reused=len(kept))
    else:
        work = work if work is not None else Worker(protocol, loader)
        outcome = run_units(
            units, work, ledger, protocol=protocol.name, jobs=jobs, observer=observer
        )
    tables = study.collect(outcome.results, protocol, selection)
    done = outcome.results.keys() | outcome.failures.keys()
    results = outcome.results.values()
    run = {
        "version": slts.__version__,
        "aeon": _version("aeon"),
        "date": datetime.datetime.now(datetime.UTC).date().isoformat(),
        "command": command,
        "protocol": protocol.name,
        "digest": protocol.digest,
        "grids": dataclasses.asdict(protocol),
        "n_splits": protocol.n_splits,
        "units": len(results),
        "planned": len(units),
        "reused": outcome.n_reused,
        "cpu_minutes": sum(result["cpu_seconds"] for result in results) / 60.0,
        "solver_warnings": sum(result["warnings"] for result in results),
        "machine": f"{platform.system()} {platform.machine()}, {os.cpu_count()} processors",
        "wall": _wall(ledger.sessions(protocol.name)),
        "missing": missing,
        "failures": outcome.failures,
        "unfinished": [unit.key for unit in units if unit.key not in done],
    }
    report = Report(tables, run, outcome)
    _write(study, report, out, markdown)
    return report


def _version(package: str) -> str:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return "not installed"


def _wall(sessions: Sequence[Table]) -> str:
    return ", ".join(
        f"{s['units']} units in {s['seconds'] / 60:.1f} minutes with {s['jobs']} "
        f"process{'' if s['jobs'] == 1 else 'es'}"
        for s in sessions
    )


def _write(study: Study, report: Report, out: Path, markdown: Path | None) -> None:
    pictures = {name: figures.render(f) for name, f in study.draw(report.tables).items()}
    blocks = study.build(report.tables, report.run, list(pictures))
    for name, files in pictures.items():
        for suffix, content in files.items():
            _write_file(out / f"{name}.{suffix}", content)
    for block in blocks:
        if isinstance(block, Grid):
            _write_file(out / f"{block.name}.csv", block.to_csv())
    names = (*_FIELDS, *study.fields)
    results = [report.outcome.results[key] for key in sorted(report.outcome.results)]
    rows = tuple(
        tuple(str(score.get(name, "")) for name in names)
        for result in results
        for score in result.get("scores", ())
    )
    _write_file(out / "scores.csv", Grid("scores", "", names, rows).to_csv())
    # Times differ from run to run. Everything else in the tables is the same.
    costs = {name: table for name, table in report.tables.items() if name == "costs"}
    tables = {name: table for name, table in report.tables.items() if name not in costs}
    _write_file(out / "tables.json", _json(tables))
    _write_file(out / "run.json", _json(report.run | costs))
    _write_file(out / "report.md", to_markdown(blocks))
    if markdown is not None:
        _write_file(markdown, to_markdown(blocks, pictures=study.pictures))
        for name, files in pictures.items():
            suffix = study.pictures
            _write_file(markdown.with_name(f"{name}.{suffix}"), files[suffix])


def _json(content: Any) -> str:
    return json.dumps(content, indent=1, allow_nan=False, ensure_ascii=False) + "\n"


def _write_file(path: Path, content: str | bytes) -> None:
    """Write a file completely or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    fresh = path.with_name(f".{path.name}.part")
    fresh.write_bytes(content.encode() if isinstance(content, str) else content)
    fresh.replace(path)


class _Lines:
    """Progress as lines on standard error: the first, the last, and some between."""

    def __init__(self) -> None:
        self._last = 0.0

    def __call__(self, state: RunState) -> None:
        now = time.monotonic()
        if state.unit and state.done < state.total and now - self._last < _LINE_EVERY:
            return
        self._last = now
        name = state.unit.key if state.unit else "start"
        left = "" if state.seconds_left is None else f", {state.seconds_left / 60:.1f} minutes left"
        _say(f"[{state.done}/{state.total}] {name}{left}")


def _say(text: str) -> None:
    sys.stderr.write(f"{text}\n")
    sys.stderr.flush()


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; return 0 (done), 1 (failed), 2 (wrong arguments) or 130 (stopped)."""
    parser = _parser()
    options = parser.parse_args(arguments)
    study = STUDIES[options.study]
    out = options.out or Path(study.folder)
    protocol = FAST if options.fast else FULL
    if options.splits is not None:
        protocol = dataclasses.replace(protocol, n_splits=options.splits)
    try:
        selection = parse_only(options.only, study.words, study.datasets(protocol))
    except ValueError as error:
        parser.error(f"--only: {error}")
    words = ["python", "-m", "study", options.study, "--out", str(out)]
    words += ["--fast"] if options.fast else []
    words += [] if options.only is None else ["--only", options.only]
    words += [] if options.splits is None else ["--splits", str(options.splits)]
    command = shlex.join(words)
    try:
        report = run_study(
            study,
            out,
            protocol=protocol,
            selection=selection,
            jobs=options.jobs or os.cpu_count() or 1,
            command=command,
            markdown=options.markdown,
            only_write=options.only_write,
            observer=None if options.quiet else _Lines(),
        )
    except (LedgerBusyError, OSError, slts.DataError) as error:
        _say(f"Error: {error}")
        return 1
    except KeyboardInterrupt:
        _say(f"Stopped. Finished results are kept. To continue: {command}")
        return 130
    sys.stdout.write(f"{out / 'report.md'}\n")
    for key, why in report.outcome.failures.items():
        _say(f"Failed {key}: {why}")
    if report.run["missing"] and not options.quiet:
        _say(f"Left out, the report says why: {', '.join(report.run['missing'])}")
    return 1 if report.outcome.failures else 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m study", description=__doc__)
    commands = parser.add_subparsers(dest="study", required=True)
    for name, study in STUDIES.items():
        command = commands.add_parser(name, help=study.help, description=study.help)
        command.add_argument("--out", type=Path, help=f"output folder (default: {study.folder})")
        command.add_argument(
            "--only",
            metavar="NAMES",
            help=f"data sets and parts, separated by commas; parts: {', '.join(study.words)}",
        )
        command.add_argument("--jobs", type=int, default=0, help="processes; 0 uses all processors")
        command.add_argument("--splits", type=int, help="number of splits; 10, or 2 with --fast")
        command.add_argument("--fast", action="store_true", help="few splits and small grids")
        command.add_argument("--markdown", type=Path, help="also write the document to this file")
        command.add_argument(
            "--only-write", action="store_true", help="run nothing; report existing results"
        )
        command.add_argument("--quiet", action="store_true", help="show no progress")
    return parser


if __name__ == "__main__":
    # SIGTERM stops a run as Ctrl-C does.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    sys.exit(main())
