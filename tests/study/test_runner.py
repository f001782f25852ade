import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from slts.study.ledger import Ledger, LedgerBusyError
from slts.study.runner import run_units
from tests.study.synthetic import TINY, Tally, units

ROOT = Path(__file__).parents[2]


@pytest.fixture
def ledger(tmp_path):
    return Ledger(tmp_path / "out" / "results.jsonl", TINY.digests)


def values(outcome):
    return {key: result["value"] for key, result in outcome.results.items()}


def test_finished_units_are_not_repeated_after_an_interrupt(tmp_path, ledger):
    tally = Tally(tmp_path / "tally", fuse=4)
    with pytest.raises(KeyboardInterrupt):
        run_units(units(10), tally, ledger)
    assert len(ledger.read()) == 4
    outcome = run_units(units(10), Tally(tally.path), ledger)
    assert sorted(tally.done()) == sorted(unit.key for unit in units(10))
    assert outcome.n_reused == 4
    whole = run_units(units(10), Tally(tmp_path / "other"), Ledger(tmp_path / "r", TINY.digests))
    assert values(outcome) == values(whole)


def test_a_killed_run_goes_on_where_it_stopped(tmp_path, ledger):
    program = (
        "from pathlib import Path; from slts.study.ledger import Ledger; "
        "from slts.study.runner import run_units; "
        "from tests.study.synthetic import TINY, Tally, units\n"
        "if __name__ == '__main__':\n"
        f"    tally = Tally(Path({str(tmp_path / 'tally')!r}), seconds=0.05)\n"
        f"    run_units(units(40), tally, Ledger(Path({str(ledger.path)!r}), TINY.digests))\n"
    )
    path = os.pathsep.join([str(ROOT), *filter(None, sys.path)])
    running = subprocess.Popen(
        [sys.executable, "-c", program], cwd=ROOT, env={**os.environ, "PYTHONPATH": path}
    )
    deadline = time.monotonic() + 30
    while len(ledger.read()) < 5 and time.monotonic() < deadline:
        time.sleep(0.02)
    running.send_signal(getattr(signal, "SIGKILL", signal.SIGTERM))
    running.wait()
    finished = set(ledger.read())
    assert 5 <= len(finished) < 40
    again = Tally(tmp_path / "again")
    outcome = run_units(units(40), again, ledger)
    assert not finished & set(again.done())
    assert len(outcome.results) == 40


def test_a_torn_line_is_done_again(tmp_path, ledger):
    run_units(units(3), Tally(tmp_path / "tally"), ledger)
    text = ledger.path.read_bytes()
    ledger.path.write_bytes(text[:-20])
    assert len(ledger.read()) == 2
    again = Tally(tmp_path / "again")
    run_units(units(3), again, ledger)
    assert len(again.done()) == 1
    assert len(ledger.read()) == 3


def test_rubbish_in_the_file_is_ignored(ledger):
    ledger.path.parent.mkdir()
    ledger.path.write_bytes(b'{"key": "facts/auslan/0"}\n[1]\n\xff\xfe\n')
    assert ledger.read() == {}


def test_results_of_another_protocol_do_not_count(tmp_path, ledger):
    stale = Ledger(ledger.path, {**TINY.digests, "landmarks": "0"})
    run_units(units(3), Tally(tmp_path / "tally"), stale)
    assert ledger.read() == {}
    outcome = run_units(units(3), Tally(tmp_path / "again"), ledger)
    assert outcome.n_reused == 0
    assert len(stale.read()) == 3


def test_a_unit_that_fails_does_not_stop_the_others(tmp_path, ledger):
    outcome = run_units(units(14, unlucky=True), Tally(tmp_path / "tally"), ledger)
    assert outcome.failures == {"landmarks/robot_lp5/0": "ValueError: unlucky"}
    assert len(outcome.results) == 14


def test_the_largest_come_first_and_the_time_left_is_told(tmp_path, ledger):
    reports = []
    tally = Tally(tmp_path / "tally")
    run_units(units(6), tally, ledger, observer=reports.append)
    cost = {unit.key: unit.cost for unit in units(6)}
    order = [cost[key] for key in tally.done()]
    assert order == sorted(order, reverse=True)
    assert [report.done for report in reports] == list(range(7))
    assert reports[0].seconds_left is None
    assert reports[-1].seconds_left == 0.0


def test_processes_give_what_one_process_gives(tmp_path, ledger):
    outcome = run_units(units(6, unlucky=True), Tally(tmp_path / "tally"), ledger, jobs=2)
    assert outcome.failures == {"landmarks/robot_lp5/0": "ValueError: unlucky"}
    assert os.getpid() not in {result["process"] for result in outcome.results.values()}
    alone = run_units(units(6), Tally(tmp_path / "b"), Ledger(tmp_path / "r", TINY.digests))
    assert values(outcome) == values(alone)


def test_two_runs_do_not_write_to_one_file(tmp_path, ledger):
    pytest.importorskip("fcntl")
    with (
        ledger.writing(),
        pytest.raises(LedgerBusyError, match="another run"),
        Ledger(ledger.path, TINY.digests).writing(),
    ):
        pass


def test_results_survive_the_way_through_the_file(ledger):
    result = {"accuracy": 100.0 * 2 / 3, "name": "±", "nothing": None}
    with ledger.writing() as file:
        ledger.append(file, "facts/auslan/0", result)
    assert ledger.read() == {"facts/auslan/0": result}
    assert json.loads(ledger.path.read_text())["protocol"] == TINY.digests["facts"]
