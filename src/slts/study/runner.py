"""Running units in processes, keeping every result at once, and going on after a stop."""

from __future__ import annotations

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

from slts.study.ledger import Ledger, Result
from slts.study.protocol import Unit

Work = Callable[[Unit], Result]


@dataclass(frozen=True)
class Report:
    """Where a run stands."""

    unit: Unit | None
    done: int
    total: int
    seconds_left: float | None


Observer = Callable[[Report], None]


@dataclass
class Outcome:
    """Results of all units that are finished, and why the others are not."""

    results: dict[str, Result]
    failures: dict[str, str] = field(default_factory=dict)
    n_reused: int = 0


def run_units(
    units: Sequence[Unit],
    work: Work,
    ledger: Ledger,
    *,
    jobs: int = 1,
    observer: Observer | None = None,
) -> Outcome:
    """Do the units that the ledger has no result of, the largest first.

    A unit that fails does not stop the others. An interrupt stops the run; what is finished stays.

    Parameters
    ----------
    units
        What to do.
    work
        Turns a unit into its result; must be picklable if `jobs` is above 1.
    ledger
        Where results are kept.
    jobs
        Processes; with 1 the work is done in this one.
    observer
        Told at the start and after every unit.
    """
    kept = ledger.read()
    outcome = Outcome({unit.key: kept[unit.key] for unit in units if unit.key in kept})
    outcome.n_reused = len(outcome.results)
    missing = sorted(
        (unit for unit in units if unit.key not in kept),
        key=lambda unit: (unit.rank, -unit.cost, unit.key),
    )
    clock = _Clock(missing, len(outcome.results), jobs, observer)
    if not missing:
        return outcome
    with ledger.writing() as file:
        for unit, result, failure in _results(missing, work, jobs):
            if failure is None:
                assert result is not None
                ledger.append(file, unit.key, result)
                outcome.results[unit.key] = result
            else:
                outcome.failures[unit.key] = failure
            clock.tick(unit)
    return outcome


class _Clock:
    """Tells the time left from the costs of what is done and what is not."""

    def __init__(
        self, missing: Sequence[Unit], reused: int, jobs: int, observer: Observer | None
    ) -> None:
        self._observer, self._jobs = observer, jobs
        self._done, self._total = reused, reused + len(missing)
        self._cost_left = sum(unit.cost for unit in missing)
        self._cost_done = 0.0
        self._start = time.monotonic()
        self._tell(None)

    def tick(self, unit: Unit) -> None:
        self._done += 1
        self._cost_done += unit.cost
        self._cost_left -= unit.cost
        self._tell(unit)

    def _tell(self, unit: Unit | None) -> None:
        if self._observer is None:
            return
        left = None
        if self._cost_done > 0:
            left = (time.monotonic() - self._start) * max(self._cost_left, 0.0) / self._cost_done
        self._observer(Report(unit, self._done, self._total, left))


Finished = tuple[Unit, Result | None, str | None]


def _results(units: Sequence[Unit], work: Work, jobs: int) -> Iterator[Finished]:
    if jobs == 1:
        for unit in units:
            result: Result | None = None
            failure = None
            try:
                result = work(unit)
            except Exception as error:  # noqa: BLE001 - whatever it was, the other units go on
                failure = _text(error)
            yield unit, result, failure
        return
    with _pool(work, min(jobs, len(units))) as pool:
        waiting: dict[Future[Result], Unit] = {pool.submit(_work, unit): unit for unit in units}
        for future in as_completed(waiting):
            raised = future.exception()
            done = future.result() if raised is None else None
            yield waiting[future], done, None if raised is None else _text(raised)


@contextmanager
def _pool(work: Work, jobs: int) -> Iterator[ProcessPoolExecutor]:
    """A pool whose processes end with it, whatever they are doing, and with this process."""
    others = set(multiprocessing.active_children())
    # Forking a process that has threads is not safe; a fresh one is the same everywhere.
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
    # Ctrl-C reaches the whole group of processes; the parent alone decides what it means.
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


def _text(error: BaseException) -> str:
    if isinstance(error, BrokenProcessPool):
        return "its process was ended from outside; is the memory enough for so many jobs?"
    return f"{type(error).__name__}: {error}"
