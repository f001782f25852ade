import json
import subprocess
import sys

import pytest

import slts

pytest.importorskip("typer")
pytest.importorskip("rich")

from slts import cli
from slts.cli import main


@pytest.fixture
def no_data(monkeypatch, tmp_path):
    monkeypatch.delenv("SLTS_DATA", raising=False)
    monkeypatch.setenv("SLTS_CACHE", str(tmp_path / "cache"))


def test_version_and_help(capsys):
    assert main(["--version"]) == 0
    assert capsys.readouterr().out == f"slts {slts.__version__}\n"
    assert main(["fit", "--help"]) == 0
    assert "--model" in capsys.readouterr().out


@pytest.mark.parametrize(
    "arguments",
    [[], ["nonsense"], ["report"], ["fit", "data.csv", "--jobs", "many"]],
)
def test_a_wrong_command_line_is_2(arguments, capsys):
    assert main(arguments) == 2


def test_the_module_runs():
    done = subprocess.run(
        [sys.executable, "-m", "slts", "datasets", "info", "nope"],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 1
    assert "there is no data set 'nope'" in done.stderr
    assert "Traceback" not in done.stderr


def test_debug_shows_the_error():
    with pytest.raises(slts.DataError):
        main(["datasets", "info", "nope", "--debug"])


def test_missing_extra_is_named(monkeypatch, capsys):
    def absent(module, extra):
        raise ImportError(f'{module} is needed: pip install "slts[{extra}]"')

    monkeypatch.setattr(cli, "import_extra", absent)
    assert main(["datasets"]) == 1
    assert "slts[cli]" in capsys.readouterr().err


def test_datasets_are_listed(no_data, capsys):
    assert main(["datasets"]) == 0
    assert "robot_lp5" in capsys.readouterr().out
    assert main(["datasets", "list", "--json"]) == 0
    entries = {entry["name"]: entry for entry in json.loads(capsys.readouterr().out)}
    assert entries["auslan"]["n_series"] == 675
    assert not entries["auslan"]["available"]


def test_data_sets_are_listed_as_json_with_and_without_the_word(no_data, capsys):
    assert main(["datasets", "list", "--json"]) == 0
    expected = json.loads(capsys.readouterr().out)
    assert main(["datasets", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == expected
    assert main(["datasets", "--json", "list"]) == 2


def test_a_data_set_is_described(capsys):
    assert main(["datasets", "info", "robot_lp2"]) == 0
    assert "n_series: 47" in capsys.readouterr().out
