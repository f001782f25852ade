"""The fuzzer runs, and tells findings from clear errors."""

import numpy as np
import pytest

pytest.importorskip("typer")
pytest.importorskip("pyarrow")

import slts
from tests.fuzz import __main__ as fuzzer
from tests.fuzz import cases


@pytest.mark.parametrize("target", cases.TARGETS)
def test_cases_pass(target):
    for seed in range(4):
        fuzzer.run_case(target, seed)


def test_only_errors_of_ours_are_clear():
    with cases.allowed():
        slts.as_series("text")
    with pytest.raises(ValueError, match="broadcast"), cases.allowed():
        np.zeros(2) + np.zeros(3)


def test_findings_are_printed_once_with_a_command_to_repeat_them(capsys):
    found = {}
    for seed in (7, 8):
        fuzzer.note(found, "codec.py:3", ("models", seed), "KeyError: 'a'")
    printed = capsys.readouterr().out
    assert printed == "codec.py:3: KeyError: 'a'\n    python -m tests.fuzz models 7\n"
