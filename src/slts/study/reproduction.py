"""The whole study: plan, run, collect, draw, write down."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

from slts.study.document import build
from slts.study.figures import draw_landmarks, draw_path, draw_space, render
from slts.study.files import write_text
from slts.study.ledger import Ledger
from slts.study.markdown import to_markdown
from slts.study.problems import Loader, available_datasets, load_once, load_published
from slts.study.protocol import FULL, PARTS, PCA_DATASET, Protocol, plan
from slts.study.record import RESULTS, Record, facts
from slts.study.runner import Observer, Outcome, Work, run_units
from slts.study.sessions import SESSIONS, describe, read_sessions, timed
from slts.study.tables import collect
from slts.study.work import Worker

_NOTES = (
    "Landmarks: up to 50% of the training set on the small sets (Japanese vowels, LP1-5), up to "
    "100 on the others (Auslan, Arabic digits). Fewer landmarks are the first of the more.",
    "Japanese vowels and Arabic digits come divided: there the splits are draws of the landmarks "
    "and of the 30% of the training set that parameters are tuned on. Auslan and LP1-5 are "
    "divided at random, 70/30, all classes in proportion.",
    "Parameters are tuned on 30% of the training set, then the method is learned on all of it. Of "
    "equally good parameters the smallest are taken. BBS: gamma; SLTS: gamma, the same for metric "
    "and separator, and lambda; SVM: C.",
    "SVM: squared hinge, features are the similarities to all training series. The 6600 of Arabic "
    "digits are projected on their 500 leading singular directions, which hold all but 4e-5 of "
    "their sum of squares; 1000 directions change the accuracy by less than 0.2 points.",
    "LDMLT ranks at most 1500 series in a cycle. On Arabic digits it and the SVM, which hardly "
    "vary there, are run in three splits; in tests their mean stands for the other splits.",
    "Avg.: mean weighted by the number of test series (370, 202, 2200, 139). Robot exec. failure: "
    "mean of the five tasks in each split.",
)


def parse_parts(only: str | None) -> tuple[str, ...]:
    """Parts of the study from text such as "table2,figure2"; all of them from None.

    Raises
    ------
    ValueError
        If there is no such part; the message lists them.
    """
    if only is None:
        return PARTS
    named = [name.strip().lower() for name in only.split(",") if name.strip()]
    unknown = [name for name in named if name not in PARTS]
    if unknown or not named:
        raise ValueError(f"The parts of the study are {', '.join(PARTS)}. Got {only!r} instead.")
    return tuple(part for part in PARTS if part in named)


def reproduce(
    out: Path,
    *,
    protocol: Protocol = FULL,
    parts: Sequence[str] = PARTS,
    jobs: int = 1,
    command: str = "slts reproduce",
    markdown: Path | None = None,
    observer: Observer | None = None,
    loader: Loader = load_published,
    missing: Mapping[str, str | None] | None = None,
    work: Work | None = None,
) -> Record:
    """Run the study, or what is left of it, and write the report into a folder.

    Parameters
    ----------
    out
        The folder; results are kept in its file ``results.jsonl``.
    protocol
        What is varied.
    parts
        Some of `PARTS`.
    jobs
        Processes.
    command
        How the run was started, for the report.
    markdown
        File for the tables as text, besides those in the folder.
    observer
        Told after every unit.
    loader, missing, work
        For tests: other data, which of them are not there and why, other work.
    """
    absent = missing if missing is not None else available_datasets(protocol.datasets)
    available = [name for name in protocol.datasets if absent.get(name) is None]
    units = plan(protocol, available, parts)
    ledger = Ledger(out / RESULTS, protocol.digests)
    work = work if work is not None else Worker(protocol, loader)
    with timed(out / SESSIONS, ledger, protocol.name, jobs):
        outcome = run_units(units, work, ledger, jobs=jobs, observer=observer)
    tables = keep_parts(collect(outcome.results, protocol), parts)
    run = _facts(protocol, parts, outcome, command)
    run["wall"] = describe(read_sessions(out / SESSIONS, protocol.name))
    run["missing"] = {name: why for name, why in absent.items() if why is not None}
    found = Record(tables, run, outcome)
    figures = _draw(found, out, parts, loader, available)
    _write(found, out, figures, markdown)
    return found


def keep_parts(tables: dict[str, Any], parts: Collection[str]) -> dict[str, Any]:
    """Empty the tables that were not asked for, whatever the results would give."""
    kept = {name: content if name in parts else type(content)() for name, content in tables.items()}
    if "table2" in parts:
        kept["robot"], kept["table2_aside"] = tables["robot"], tables["table2_aside"]
    if "table4" in parts:
        kept["table4_aside"] = tables["table4_aside"]
    return kept


def _facts(
    protocol: Protocol, parts: Sequence[str], outcome: Outcome, command: str
) -> dict[str, Any]:
    return facts(protocol, outcome, command) | {
        "digest": protocol.digest,
        "parts": list(parts),
        "solver_warnings": sum(int(r.get("warnings", 0)) for r in outcome.results.values()),
        "notes": list(_NOTES) if protocol.name == "full" else [_fast_note(protocol)],
    }


def _fast_note(protocol: Protocol) -> str:
    return (
        f"Protocol {protocol.name!r}: {protocol.n_splits} splits and small grids, to see that "
        f"everything runs. Its figures say little about the methods."
    )


def _draw(
    found: Record, out: Path, parts: Sequence[str], loader: Loader, available: Sequence[str]
) -> list[str]:
    """Draw what there is to draw; return the names of the figures."""
    figures = {}
    if "figure1" in parts and PCA_DATASET in available:
        figures["figure1"] = draw_path(load_once(loader, PCA_DATASET))
    if found.tables["figure2"]:
        figures["figure2"] = draw_landmarks(found.tables["figure2"])
    if found.tables["figure3"] and found.tables["figure3"]["shown"]:
        figures["figure3"] = draw_space(found.tables["figure3"]["shown"])
    for name, figure in figures.items():
        found.write_pictures(out, name, render(figure))
    return list(figures)


def _write(found: Record, out: Path, figures: Sequence[str], markdown: Path | None) -> None:
    blocks = build(found.tables, found.run, figures)
    found.write(out, blocks, *_all_scores(found.outcome))
    if markdown is not None:
        write_text(markdown, to_markdown(blocks, pictures=False))
        found.files.append(markdown)


_SCORE_FIELDS = (
    "dataset", "method", "selection", "landmarks", "split", "accuracy", "n_test", "n_train",
    "validation", "gamma", "lam", "C", "tuning_part",
)  # fmt: skip


def _all_scores(outcome: Outcome) -> tuple[Sequence[str], list[list[Any]]]:
    rows = [
        [{**score, "tuning_part": tuning_part}.get(name) for name in _SCORE_FIELDS]
        for key in sorted(outcome.results)
        for kind, tuning_part in (("scores", "given back"), ("aside", "kept aside"))
        for score in outcome.results[key].get(kind, ())
    ]
    return _SCORE_FIELDS, rows
