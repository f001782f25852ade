import dataclasses
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from study.runner import Ledger, LedgerBusyError, run_units
from tests.study.tally import Tally, units

ROOT = Path(__file__).parents[2]


@pytest.fixture
def ledger(tmp_path):
    return Ledger(tmp_path / "out" / "results.jsonl")


def values(outcome):
    return {key: result["value"] for key, result in outcome.results.items()}


def test_finished_units_are_not_repeated_after_an_interrupt(tmp_path, ledger):
    tally = Tally(tmp_path / "tally", limit=4)
    with pytest.raises(KeyboardInterrupt):
        run_units(units(10), tally, ledger)
    assert len(ledger.results(units(10))) == 4
    outcome = run_units(units(10), Tally(tally.path), ledger)
    assert (sorted(tally.done()), outcome.n_reused) == (sorted(unit.key for unit in units(10)), 4)
    whole = run_units(units(10), Tally(tmp_path / "other"), Ledger(tmp_path / "r"))
    assert values(outcome) == values(whole)


def test_a_killed_run_continues_where_it_stopped(tmp_path, ledger):
    program = (
        "from pathlib import Path; from study.runner import Ledger, run_units; "
        "from tests.study.tally import Tally, units\n"
        "if __name__ == '__main__':\n"
        f"    tally = Tally(Path({str(tmp_path / 'tally')!r}), seconds=0.05)\n"
        f"    run_units(units(40), tally, Ledger(Path({str(ledger.path)!r})))\n"
    )
    path = os.pathsep.join([str(ROOT), *filter(None, sys.path)])
    environment = os.environ | {"PYTHONPATH": path}
    running = subprocess.Popen([sys.executable, "-c", program], cwd=ROOT, env=environment)
    deadline = time.monotonic() + 30
    while len(ledger.results(units(40))) < 5 and time.monotonic() < deadline:
        time.sleep(0.02)
    running.send_signal(getattr(signal, "SIGKILL", signal.SIGTERM))
    running.wait()
    finished = set(ledger.results(units(40)))
    assert 5 <= len(finished) < 40
    again = Tally(tmp_path / "again")
    outcome = run_units(units(40), again, ledger)
    assert not finished & set(again.done())
    assert len(outcome.results) == 40


def test_results_with_another_digest_are_computed_again_and_kept(tmp_path, ledger):
    stale = [dataclasses.replace(unit, digest="0") for unit in units(3)]
    run_units(stale, Tally(tmp_path / "tally"), ledger)
    assert ledger.results(units(3)) == {}
    outcome = run_units(units(3), Tally(tmp_path / "again"), ledger)
    assert (outcome.n_reused, len(ledger.results(stale))) == (0, 3)


def test_the_largest_units_come_first_and_the_time_left_is_estimated(tmp_path, ledger):
    reports = []
    tally = Tally(tmp_path / "tally")
    run_units(units(6), tally, ledger, observer=reports.append)
    cost = {unit.key: unit.cost for unit in units(6)}
    order = [cost[key] for key in tally.done()]
    assert order == sorted(order, reverse=True)
    assert [report.done for report in reports] == list(range(7))
    assert reports[0].seconds_left is None
    assert reports[-1].seconds_left == 0.0


def test_two_runs_do_not_write_to_one_file(tmp_path, ledger):
    pytest.importorskip("fcntl")
    with ledger.writing(), pytest.raises(LedgerBusyError, match="another run"):
        Ledger(ledger.path).writing().__enter__()


def test_every_run_leaves_an_account_even_if_interrupted(tmp_path, ledger):
    with pytest.raises(KeyboardInterrupt):
        run_units(units(4), Tally(tmp_path / "tally", limit=3), ledger, protocol="fast")
    run_units(units(4), Tally(tmp_path / "tally"), ledger, protocol="fast")
    run_units(units(4), Tally(tmp_path / "tally"), ledger, protocol="fast")
    assert [session["units"] for session in ledger.sessions("fast")] == [3, 1]
    assert ledger.sessions("full") == []


def test_incomplete_and_other_lines_are_computed_again(tmp_path, ledger):
    with pytest.raises(KeyboardInterrupt):
        run_units(units(4), Tally(tmp_path / "tally", limit=3), ledger)
    lines = ledger.path.read_bytes().splitlines(keepends=True)
    other = b'{"key": "landmarks/auslan/0/5"}\n[1]\n\xff\xfe\n'
    ledger.path.write_bytes(other + b"".join(lines[:2]) + lines[2][:-20])
    assert len(ledger.results(units(3))) == 2
    again = Tally(tmp_path / "again")
    run_units(units(3), again, ledger)
    assert (len(again.done()), len(ledger.results(units(3)))) == (1, 3)


@pytest.mark.parametrize("jobs", [1, 2])
def test_a_failed_unit_does_not_stop_the_others(tmp_path, ledger, jobs):
    outcome = run_units(units(14, failing=True), Tally(tmp_path / "tally"), ledger, jobs=jobs)
    assert outcome.failures == {"landmarks/robot_lp5/0": "ValueError: wrong"}
    assert len(outcome.results) == 14
    processes = {result["process"] for result in outcome.results.values()}
    assert (os.getpid() in processes) == (jobs == 1)
    alone = run_units(units(14), Tally(tmp_path / "b"), Ledger(tmp_path / "r"))
    assert values(outcome) == values(alone)
