"""The table of commands, exit codes, messages of errors, and the command `datasets`."""

import json
import os
import subprocess
import sys
import warnings

import pytest

import slts

pytest.importorskip("typer")
pytest.importorskip("rich")

from slts import cli
from slts.cli import application, main

NOT_FOR_HELP = ["numpy", "scipy", "sklearn", "pyarrow", "slts.estimators", "slts.cli.fit"]


@pytest.fixture
def no_data(monkeypatch, tmp_path):
    monkeypatch.delenv("SLTS_DATA", raising=False)
    monkeypatch.setenv("SLTS_CACHE", str(tmp_path / "cache"))


@pytest.mark.parametrize("option", ["--version", "--help"])
def test_version_and_help_import_no_command(option):
    program = (
        "import sys; from slts.cli import main; code = main(sys.argv[1:]); "
        f"print(*set({NOT_FOR_HELP}) & set(sys.modules)); sys.exit(code)"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, option],
        capture_output=True,
        text=True,
        env=os.environ | {"COLUMNS": "120"},
    )
    assert done.returncode == 0, done.stderr
    *shown, imported = done.stdout.split("\n")[:-1]
    assert imported == ""
    text = "\n".join(shown)
    if option == "--version":
        assert text == f"slts {slts.__version__}"
    else:
        for name, (_, line) in application.COMMANDS.items():
            assert f" {name} " in text
            assert line in text


@pytest.mark.parametrize("name", application.COMMANDS)
def test_every_command_and_option_has_a_help_text(name):
    command = application.load_command(name)
    assert command.help.partition("\n")[0] == application.COMMANDS[name][1]
    for one in (command, *getattr(command, "commands", {}).values()):
        assert [option.name for option in one.params if not option.help] == []


def test_the_help_of_a_command_has_its_options(capsys):
    assert main(["fit", "--help"]) == 0
    text = capsys.readouterr().out
    assert all(option in text for option in ("--method", "--memory-limit", "--jobs", "--json"))
    # Paragraphs are wrapped by the terminal only.
    assert "\n" not in application.load_command("fit").help.split("\n\n")[1]


@pytest.mark.parametrize("arguments", [[], ["nonsense"], ["fit", "x.csv", "--jobs", "many"]])
def test_a_wrong_command_line_is_2(arguments):
    assert main(arguments) == 2


def test_a_misspelt_command_is_suggested(capsys):
    assert main(["evaluat"]) == 2
    assert "Did you mean 'evaluate'?" in capsys.readouterr().err


def test_the_module_runs():
    done = subprocess.run(
        [sys.executable, "-m", "slts", "datasets", "info", "nope"], capture_output=True, text=True
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


def test_warnings_are_short_and_are_shown_once(monkeypatch, capsys):
    def noisy(*arguments, **options):
        for _ in range(2):
            warnings.warn("mind the gap", stacklevel=1)

    monkeypatch.setattr(application, "application", noisy)
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        assert main(["anything"]) == 0
    assert capsys.readouterr().err == "Warning: mind the gap\n"


def test_an_unexpected_error_asks_for_debug(monkeypatch, capsys):
    def broken(*arguments, **options):
        raise RuntimeError("no more")

    monkeypatch.setattr(application, "application", broken)
    assert main(["anything"]) == 1
    found = capsys.readouterr().err
    assert found.startswith("Error: RuntimeError: no more\nThis is a bug in slts.")
    assert "--debug" in found


def test_data_sets_are_listed_with_and_without_the_word_list(no_data, capsys):
    assert main(["datasets"]) == 0
    assert "robot_lp5" in capsys.readouterr().out
    found = []
    for arguments in (["datasets", "list", "--json"], ["datasets", "--json"]):
        assert main(arguments) == 0
        found.append(json.loads(capsys.readouterr().out))
    assert found[0] == found[1]
    entries = {entry["name"]: entry for entry in found[0]}
    assert entries["auslan"]["n_series"] == 675
    assert not entries["auslan"]["available"]
    assert main(["datasets", "--json", "list"]) == 2


def test_a_data_set_is_described(capsys):
    assert main(["datasets", "info", "robot_lp2"]) == 0
    assert "n_series: 47" in capsys.readouterr().out
