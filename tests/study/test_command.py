import pytest

pytest.importorskip("matplotlib")

from study.__main__ import main
from study.runner import Ledger


@pytest.fixture
def no_data(monkeypatch, tmp_path):
    monkeypatch.delenv("SLTS_DATA", raising=False)
    monkeypatch.setenv("SLTS_CACHE", str(tmp_path / "cache"))


@pytest.mark.parametrize(("arguments", "message"), [
    (["reproduce", "--only", "table9"], "table1"), (["accuracy", "--only", "rocket"], "minirocket"),
    (["accuracy", "--jobs", "many"], "--jobs"), ([], "reproduce"),
])  # fmt: skip
def test_wrong_arguments_are_exit_code_2(arguments, message, capsys):
    with pytest.raises(SystemExit) as stop:
        main(arguments)
    assert stop.value.code == 2
    assert message in capsys.readouterr().err


def test_missing_data_is_reported(no_data, tmp_path, capsys):
    out = tmp_path / "accuracy"
    assert main(["accuracy", "--out", str(out), "--fast", "--only", "auslan,local"]) == 0
    printed = capsys.readouterr()
    assert printed.out == f"{out / 'report.md'}\n"
    assert "Left out, the report says why: auslan" in printed.err
    assert "set SLTS_DATA" in (out / "report.md").read_text()


def test_japanese_vowels_of_aeon_are_enough_for_table_1(no_data, tmp_path, capsys):
    pytest.importorskip("aeon")
    out = tmp_path / "out"
    options = ["--fast", "--only", "japanese_vowels,table1,figure1", "--jobs", "1", "--quiet"]
    assert (main(["reproduce", "--out", str(out), *options]), capsys.readouterr().err) == (0, "")
    report = (out / "report.md").read_text()
    assert "| Japanese vowels | 640 | 7-29 | 12 | 9 |" in report
    assert f"python -m study reproduce --out {out} --fast" in report


def test_the_output_must_be_a_folder_that_is_free(no_data, tmp_path, capsys):
    file = tmp_path / "file"
    file.touch()
    options = ["--only", "japanese_vowels,table1", "--jobs", "1"]
    assert main(["reproduce", "--out", str(file), *options]) == 1
    assert "Error: " in capsys.readouterr().err
    pytest.importorskip("fcntl")
    pytest.importorskip("aeon")
    with Ledger(tmp_path / "out" / "results.jsonl").writing():
        assert main(["reproduce", "--out", str(tmp_path / "out"), *options]) == 1
    assert "another run writes to" in capsys.readouterr().err
