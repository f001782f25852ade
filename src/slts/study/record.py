"""What is kept of a finished run, and the folder it is written into."""

from __future__ import annotations

import dataclasses
import datetime
import os
import platform
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from slts import __version__
from slts.study.blocks import Block, Grid
from slts.study.files import write_bytes, write_csv, write_json, write_text
from slts.study.markdown import to_markdown
from slts.study.page import to_page
from slts.study.runner import Outcome

RESULTS = "results.jsonl"


@dataclass
class Record:
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

    def write_pictures(self, out: Path, name: str, files: dict[str, bytes]) -> None:
        """Write a figure in every format it comes in."""
        for suffix, content in files.items():
            write_bytes(out / f"{name}.{suffix}", content)
            self.files.append(out / f"{name}.{suffix}")

    def write(
        self, out: Path, blocks: Sequence[Block], header: Sequence[str], scores: list[list[Any]]
    ) -> None:
        """Write the report, its tables and all single scores."""
        for block in blocks:
            if isinstance(block, Grid):
                write_csv(out / f"{block.name}.csv", block.header, block.rows)
                self.files.append(out / f"{block.name}.csv")
        write_csv(out / "scores.csv", header, scores)
        write_json(out / "tables.json", self.tables)
        write_json(out / "run.json", self.run)
        write_text(out / "report.md", to_markdown(blocks))
        write_text(out / "index.html", to_page(blocks))
        names = ("scores.csv", "tables.json", "run.json", "report.md", "index.html")
        self.files += [out / name for name in names]


class Named(Protocol):
    """A protocol of either study, as far as the facts go."""

    @property
    def name(self) -> str:
        """What it is called."""
        ...

    @property
    def n_splits(self) -> int:
        """Splits of a data set."""
        ...


def facts(protocol: Named, outcome: Outcome, command: str) -> dict[str, Any]:
    """What every report says about its run."""
    seconds = sum(float(r.get("cpu_seconds", 0.0)) for r in outcome.results.values())
    return {
        "version": __version__,
        "date": datetime.datetime.now(datetime.UTC).date().isoformat(),
        "command": command,
        "protocol": protocol.name,
        "grids": dataclasses.asdict(protocol),  # type: ignore[call-overload]
        "n_splits": protocol.n_splits,
        "units": len(outcome.results),
        "reused": outcome.n_reused,
        "cpu_minutes": seconds / 60.0,
        "machine": f"{platform.system()} {platform.machine()}, {os.cpu_count()} processors",
        "failures": outcome.failures,
    }
