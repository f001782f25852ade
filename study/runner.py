"""Runs units in processes, and keeps every result in a file as soon as it is there."""

from __future__ import annotations

import json
import multiprocessing
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from dataclasses import dataclass, field
from multiprocessing.connection import wait
from pathlib import Path
from typing import IO, Any

try:
    import fcntl
except ImportError:  # Windows has no such locks, so nothing is locked there.
    fcntl = None  # type: ignore[assignment]

Result = dict[str, Any]


@dataclass(frozen=True)
class Unit:
    """One piece of work. It runs in one process, and its result is kept as a whole or not at all.

    Parameters
    ----------
    kind
        What is computed; see `study.work`.
    dataset
        Name of the data set.
    splits
        The splits that it covers.
    detail
        Numbers of landmarks, a way to select them, or the name of a method.
    digest
        Hash of everything that the result depends on besides data and names.
    cost
        Rough seconds: the largest units run first.
    rank
        Units of a lower rank run first, whatever their cost.
    """

    kind: str
    dataset: str
    splits: tuple[int, ...] = (0,)
    detail: tuple[int | str, ...] = ()
    digest: str = field(default="", compare=False)
    cost: float = field(default=1.0, compare=False)
    rank: int = field(default=0, compare=False)

    @property
    def key(self) -> str:
        """Name of the unit in the file of results."""
        splits, detail = (",".join(map(str, part)) for part in (self.splits, self.detail))
        return "/".join(filter(None, [self.kind, self.dataset, splits, detail]))


Work = Callable[[Unit], Result]


class LedgerBusyError(RuntimeError):
    """Another run writes to the same file."""


class Ledger:
    """The file of results: JSON lines, appended and never rewritten.

    A line is a result (``key``, ``digest``, ``result``) or the account of a run (``session``).
    Incomplete lines, which a killed process may leave, are ignored.
    """

    def __init__(self, path: Path) -> None:
        self.path = path

    def results(self, units: Sequence[Unit]) -> dict[str, Result]:
        """Return the results of the units by key, where the digest is the same."""
        found = {
            (line["key"], line["digest"]): line["result"]
            for line in self._lines({"key", "digest", "result"})
        }
        return {
            unit.key: found[unit.key, unit.digest]
            for unit in units
            if (unit.key, unit.digest) in found
        }

    def sessions(self, protocol: str) -> list[dict[str, Any]]:
        """Return the number of units, processes and seconds of every run of a protocol."""
        lines = self._lines({"session", "units", "jobs", "seconds"})
        return [line for line in lines if line["session"] == protocol]

    def _lines(self, keys: set[str]) -> Iterator[dict[str, Any]]:
        if not self.path.exists():
            return
        for text in self.path.read_bytes().splitlines():
            try:
                line = json.loads(text)
            except ValueError:
                continue
            if isinstance(line, dict) and keys <= line.keys():
                yield line

    @contextmanager
    def writing(self) -> Iterator[Callable[[dict[str, Any]], None]]:
        """Lock the file, and give a function that appends a line and syncs it to the disk."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with self.path.open("ab") as file:
            if fcntl is not None:
                try:
                    fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                except OSError as error:
                    raise LedgerBusyError(
                        f"another run writes to {self.path}: wait for it, or use another folder"
                    ) from error
            if file.tell() and not self.path.read_bytes().endswith(b"\n"):
                # The next line must not continue an incomplete one.
                file.write(b"\n")
            yield lambda line: _append(file, line)


def _append(file: IO[bytes], line: dict[str, Any]) -> None:
    file.write(json.dumps(line, allow_nan=False).encode() + b"\n")
    file.flush()
    os.fsync(file.fileno())


@dataclass(frozen=True)
class RunState:
    """State of a run after a unit; `unit` is None at the start."""

    unit: Unit | None
    done: int
    total: int
    seconds_left: float | None


Observer = Callable[[RunState], None]


@dataclass
class Outcome:
    """Results of the finished units, and the errors of the failed ones, by key."""

    results: dict[str, Result]
    failures: dict[str, str] = field(default_factory=dict)
    n_reused: int = 0


def run_units(
    units: Sequence[Unit],
    work: Work,
    ledger: Ledger,
    *,
    protocol: str = "full",
    jobs: int = 1,
    observer: Observer | None = None,
) -> Outcome:
    """Compute the units that have no result in the ledger.

    A failed unit does not stop the others. An interrupt stops the run; finished results are kept.

    Parameters
    ----------
    units
        What to compute. Lower ranks first, then the largest first.
    work
        Turns a unit into its result. It must be picklable if `jobs` is above 1.
    ledger
        Where results are kept.
    protocol
        Name of the protocol, for the account of the run.
    jobs
        Number of processes; 1 computes in this one.
    observer
        Called at the start and after every unit.
    """
    kept = ledger.results(units)
    outcome = Outcome(dict(kept), n_reused=len(kept))
    missing = [unit for unit in units if unit.key not in kept]
    missing.sort(key=lambda unit: (unit.rank, -unit.cost, unit.key))
    start, cost_done, cost_left = time.monotonic(), 0.0, sum(unit.cost for unit in missing)
    if observer is not None:
        observer(RunState(None, len(kept), len(units), None))
    if not missing:
        return outcome
    with ledger.writing() as append:
        try:
            for unit, result, failure in _results(missing, work, jobs):
                if result is None:
                    outcome.failures[unit.key] = failure
                else:
                    append({"key": unit.key, "digest": unit.digest, "result": result})
                    outcome.results[unit.key] = result
                cost_done, cost_left = cost_done + unit.cost, cost_left - unit.cost
                if observer is not None:
                    left = (time.monotonic() - start) * max(cost_left, 0.0) / cost_done
                    done = len(outcome.results) + len(outcome.failures)
                    observer(RunState(unit, done, len(units), left))
        finally:
            finished = len(outcome.results) - len(kept)
            if finished:
                seconds = round(time.monotonic() - start, 1)
                account = {"session": protocol, "units": finished, "jobs": jobs}
                append({**account, "seconds": seconds})
    return outcome


def _results(
    units: Sequence[Unit], work: Work, jobs: int
) -> Iterator[tuple[Unit, Result | None, str]]:
    """Yield (unit, result or None, error message) as the units finish."""
    if jobs == 1:
        for unit in units:
            try:
                result = work(unit)
            except Exception as error:  # noqa: BLE001 - the other units continue, whatever it was
                yield unit, None, _message(error)
            else:
                yield unit, result, ""
        return
    with _pool(work, min(jobs, len(units))) as pool:
        waiting: dict[Future[Result], Unit] = {pool.submit(_work, unit): unit for unit in units}
        for future in as_completed(waiting):
            raised = future.exception()
            if raised is None:
                yield waiting[future], future.result(), ""
            else:
                yield waiting[future], None, _message(raised)


def _message(error: BaseException) -> str:
    if isinstance(error, BrokenProcessPool):
        return "its process was killed; is there enough memory for so many jobs?"
    return f"{type(error).__name__}: {error}"


@contextmanager
def _pool(work: Work, jobs: int) -> Iterator[ProcessPoolExecutor]:
    """A pool whose processes end with the block and with this process, whatever they do."""
    others = set(multiprocessing.active_children())
    # Forking a process that has threads is not safe. Fresh processes work the same everywhere.
    pool = ProcessPoolExecutor(
        jobs,
        mp_context=multiprocessing.get_context("spawn"),
        initializer=_start_worker,
        initargs=(work,),
    )
    try:
        yield pool
    except BaseException:
        pool.shutdown(wait=False, cancel_futures=True)
        for process in set(multiprocessing.active_children()) - others:
            process.terminate()
        raise
    pool.shutdown()


_installed: list[Work] = []


def _start_worker(work: Work) -> None:
    # Ctrl-C reaches all processes of the group. Only the parent reacts to it.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    _installed[:] = [work]
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    assert parent is not None
    wait([parent.sentinel])
    os._exit(1)


def _work(unit: Unit) -> Result:
    return _installed[0](unit)
