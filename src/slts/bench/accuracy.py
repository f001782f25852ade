"""The whole comparison: plan, run, collect, draw, write down."""

from __future__ import annotations

import importlib.metadata
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from slts.bench.document import RANKS, build
from slts.bench.figures import draw_ranks
from slts.bench.methods import unavailable
from slts.bench.protocol import FULL, Protocol, Selection, parse_only, plan
from slts.bench.tables import collect
from slts.bench.work import Worker
from slts.study.figures import render
from slts.study.files import write_bytes, write_text
from slts.study.ledger import Ledger
from slts.study.markdown import to_markdown
from slts.study.problems import Loader, available_datasets, load_published
from slts.study.record import RESULTS, Record, facts
from slts.study.runner import Observer, Outcome, Work, run_units

_FIELDS = (
    "dataset", "method", "split", "accuracy", "n_train", "n_test", "fit_seconds",
    "predict_seconds", "fit_wall", "predict_wall", "numbers",
)  # fmt: skip


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
) -> Record:
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
    found = Record(tables, run, outcome)
    _write(found, out, markdown)
    return found


def _facts(protocol: Protocol, outcome: Outcome, command: str) -> dict[str, Any]:
    try:
        aeon = importlib.metadata.version("aeon")
    except importlib.metadata.PackageNotFoundError:
        aeon = "not installed"
    return facts(protocol, outcome, command) | {"aeon": aeon}


def _write(found: Record, out: Path, markdown: Path | None) -> None:
    pictures: dict[str, dict[str, bytes]] = {}
    if found.tables["ranks"]:
        pictures[RANKS] = render(draw_ranks(found.tables["ranks"]))
    blocks = build(found.tables, found.run, list(pictures))
    for name, files in pictures.items():
        found.write_pictures(out, name, files)
    ordered = [found.outcome.results[key] for key in sorted(found.outcome.results)]
    scores = [[one.get(name) for name in _FIELDS] for one in ordered if "accuracy" in one]
    found.write(out, blocks, _FIELDS, scores)
    if markdown is not None:
        for name, files in pictures.items():
            write_bytes(markdown.with_name(f"{name}.png"), files["png"])
        write_text(markdown, to_markdown(blocks))
        found.files.append(markdown)
