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
    assert main(["reproduce", "--help"]) == 0
    assert "--only" in capsys.readouterr().out


@pytest.mark.parametrize(
    "arguments",
    [[], ["nonsense"], ["reproduce", "--jobs", "many"], ["reproduce", "--only", "table9"]],
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


def test_fast_study_without_data_runs_japanese_vowels(no_data, tmp_path, capsys):
    pytest.importorskip("matplotlib")
    pytest.importorskip("aeon")
    out = tmp_path / "out"
    options = ["--fast", "--only", "table1,table2,figure1,figure3", "--jobs", "1"]
    assert main(["reproduce", "--out", str(out), *options, "--json"]) == 0
    output = capsys.readouterr()
    tables = json.loads(output.out)["tables"]
    cells = {row["method"]: row["cells"]["japanese_vowels"] for row in tables["table2"]}
    assert cells["1nn"]["mean"] == pytest.approx(93.8, abs=0.05)
    assert cells["slts"]["mean"] > 95.0
    assert "not on this machine: auslan, arabic_digits, robot_lp1" in output.err
    assert "SLTS_DATA" in output.err
    assert (out / "index.html").exists()
    assert main(["reproduce", "--out", str(out), *options, "--quiet"]) == 0
    output = capsys.readouterr()
    assert output.out == f"{out / 'index.html'}\n"
    assert output.err == ""


def test_out_must_be_a_folder(tmp_path, capsys):
    pytest.importorskip("matplotlib")
    file = tmp_path / "file"
    file.touch()
    assert main(["reproduce", "--out", str(file)]) == 1
    assert "is not a folder" in capsys.readouterr().err
