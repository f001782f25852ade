"""The whole comparison: plan, run, collect, draw, write down."""

from __future__ import annotations

import dataclasses
import datetime
import importlib.metadata
import os
import platform
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from slts import __version__
from slts.bench.document import RANKS, build
from slts.bench.figures import draw_ranks
from slts.bench.methods import unavailable
from slts.bench.protocol import FULL, Protocol, Selection, parse_only, plan
from slts.bench.tables import collect
from slts.bench.work import Worker
from slts.study.blocks import Grid
from slts.study.figures import render
from slts.study.files import write_bytes, write_csv, write_json, write_text
from slts.study.ledger import Ledger
from slts.study.markdown import to_markdown
from slts.study.page import to_page
from slts.study.problems import Loader, available_datasets, load_published
from slts.study.runner import Observer, Outcome, Work, run_units

RESULTS = "results.jsonl"
_FIELDS = (
    "dataset", "method", "split", "accuracy", "n_train", "n_test", "fit_seconds",
    "predict_seconds", "fit_wall", "predict_wall", "numbers",
)  # fmt: skip


@dataclass
class Comparison:
    """What came of a run.

    Parameters
    ----------
    tables
        All tables, as plain data.
    run
        Facts about the run.
    outcome
        Results and failures of the units.
    files
        What was written.
    """

    tables: dict[str, Any]
    run: dict[str, Any]
    outcome: Outcome
    files: list[Path] = field(default_factory=list)


def compare_accuracy(
    out: Path,
    *,
    protocol: Protocol = FULL,
    wanted: Selection | None = None,
    jobs: int = 1,
    command: str = "slts bench accuracy",
    markdown: Path | None = None,
    observer: Observer | None = None,
    only_write: bool = False,
    loader: Loader = load_published,
    missing: Mapping[str, str | None] | None = None,
    work: Work | None = None,
) -> Comparison:
    """Run the comparison, or what is left of it, and write the report into a folder.

    Parameters
    ----------
    out
        The folder; results are kept in its file ``results.jsonl``.
    protocol
        How many splits of what.
    wanted
        Data sets and methods; None takes all.
    jobs
        Processes.
    command
        How the run was started, for the report.
    markdown
        File for the report as text, besides that in the folder; figures go beside it.
    observer
        Told after every unit.
    only_write
        Run nothing: report what results there are.
    loader, missing, work
        For tests: other data, which of them are not there and why, other work.
    """
    wanted = wanted if wanted is not None else parse_only(None, protocol)
    absent = missing if missing is not None else available_datasets(wanted.datasets)
    left_out = {name: why for name, why in absent.items() if why is not None}
    left_out |= {n: why for n, why in unavailable().items() if n in wanted.methods}
    units = plan(protocol, wanted, left_out)
    ledger = Ledger(out / RESULTS, protocol.digests)
    if only_write:
        kept = ledger.read()
        results = {unit.key: kept[unit.key] for unit in units if unit.key in kept}
        outcome = Outcome(results, n_reused=len(results))
    else:
        work = work if work is not None else Worker(protocol, loader)
        outcome = run_units(units, work, ledger, jobs=jobs, observer=observer)
    tables = collect(outcome.results, protocol, wanted)
    done = outcome.results.keys() | outcome.failures.keys()
    run = _facts(protocol, outcome, command) | {
        "planned": len(units),
        "missing": left_out,
        "unfinished": [unit.key for unit in units if unit.key not in done],
    }
    found = Comparison(tables, run, outcome)
    _write(found, out, markdown)
    return found


def _facts(protocol: Protocol, outcome: Outcome, command: str) -> dict[str, Any]:
    seconds = sum(float(r.get("cpu_seconds", 0.0)) for r in outcome.results.values())
    try:
        aeon = importlib.metadata.version("aeon")
    except importlib.metadata.PackageNotFoundError:
        aeon = "not installed"
    return {
        "version": __version__,
        "aeon": aeon,
        "date": datetime.datetime.now(datetime.UTC).date().isoformat(),
        "command": command,
        "protocol": protocol.name,
        "grids": dataclasses.asdict(protocol),
        "n_splits": protocol.n_splits,
        "units": len(outcome.results),
        "reused": outcome.n_reused,
        "cpu_minutes": seconds / 60.0,
        "machine": f"{platform.system()} {platform.machine()}, {os.cpu_count()} processors",
        "failures": outcome.failures,
    }


def _write(found: Comparison, out: Path, markdown: Path | None) -> None:
    pictures: dict[str, dict[str, bytes]] = {}
    if found.tables["ranks"]:
        pictures[RANKS] = render(draw_ranks(found.tables["ranks"]))
    blocks = build(found.tables, found.run, list(pictures))
    for block in blocks:
        if isinstance(block, Grid):
            write_csv(out / f"{block.name}.csv", block.header, block.rows)
            found.files.append(out / f"{block.name}.csv")
    for name, files in pictures.items():
        for suffix, content in files.items():
            write_bytes(out / f"{name}.{suffix}", content)
            found.files.append(out / f"{name}.{suffix}")
    ordered = [found.outcome.results[key] for key in sorted(found.outcome.results)]
    scores = [[one.get(name) for name in _FIELDS] for one in ordered if "accuracy" in one]
    write_csv(out / "scores.csv", _FIELDS, scores)
    write_json(out / "tables.json", found.tables)
    write_json(out / "run.json", found.run)
    write_text(out / "report.md", to_markdown(blocks))
    write_text(out / "index.html", to_page(blocks))
    names = ("scores.csv", "tables.json", "run.json", "report.md", "index.html")
    found.files += [out / name for name in names]
    if markdown is not None:
        for name, files in pictures.items():
            write_bytes(markdown.with_name(f"{name}.png"), files["png"])
        write_text(markdown, to_markdown(blocks))
        found.files.append(markdown)
