import json

import pytest

pytest.importorskip("typer")
pytest.importorskip("rich")
pytest.importorskip("matplotlib")

from slts.cli import main


@pytest.fixture
def no_data(monkeypatch, tmp_path):
    monkeypatch.delenv("SLTS_DATA", raising=False)
    monkeypatch.setenv("SLTS_CACHE", str(tmp_path / "cache"))


def test_unknown_names_are_refused_with_those_there_are(capsys):
    assert main(["bench", "accuracy", "--only", "rocket"]) == 2
    assert "minirocket" in capsys.readouterr().err


def test_without_data_the_report_says_where_to_get_it(no_data, tmp_path, capsys):
    out = tmp_path / "accuracy"
    options = ["--out", str(out), "--fast", "--only", "auslan,local", "--json"]
    assert main(["bench", "accuracy", *options]) == 0
    printed = capsys.readouterr()
    assert json.loads(printed.out)["tables"]["datasets"] == []
    assert "Left out, the report says why: auslan." in printed.err
    assert "set SLTS_DATA" in (out / "report.md").read_text()


def test_a_file_is_no_folder(tmp_path, capsys):
    path = tmp_path / "file"
    path.touch()
    assert main(["bench", "accuracy", "--out", str(path)]) == 1
    assert "is not a folder" in capsys.readouterr().err
