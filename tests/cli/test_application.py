"""The table of commands, help, exit codes, and output files."""

import subprocess
import sys
import warnings

import pytest

import slts
from slts import cli
from slts.cli import application, main
from tests.data import run_python

NOT_FOR_HELP = ["numpy", "scipy", "sklearn", "pyarrow", "slts.estimators", "slts.cli.fit"]


@pytest.mark.parametrize("option", ["--version", "--help"])
def test_version_and_help_import_no_command(option):
    program = (
        "import sys; from slts.cli import main; code = main(sys.argv[1:]); "
        f"print(*set({NOT_FOR_HELP}) & set(sys.modules)); sys.exit(code)"
    )
    *lines, imported = run_python(program, option, COLUMNS="120").split("\n")[:-1]
    assert imported == ""
    text = "\n".join(lines)
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
    assert [option.name for option in command.params if not option.help] == []


def test_the_help_of_a_command_has_its_options(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "120")
    assert main(["fit", "--help"]) == 0
    text = capsys.readouterr().out
    assert all(option in text for option in ("--method", "--memory-limit", "--jobs", "--json"))
    # The terminal alone breaks lines of a paragraph.
    assert "trained on the other series only" in text


@pytest.mark.parametrize("arguments", [[], ["nonsense"], ["fit", "x.csv", "--jobs", "many"]])
def test_a_wrong_command_line_is_2(arguments):
    assert main(arguments) == 2


def test_a_misspelt_command_is_suggested(run):
    assert "Did you mean 'evaluate'?" in run.error("evaluat", code=2)


def test_the_module_runs(tmp_path):
    command = [sys.executable, "-m", "slts", "evaluate", "no.slts", "no.csv"]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path)
    assert done.returncode == 1
    assert done.stderr.startswith("Error: ")
    assert "no.slts" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_missing_extra_is_named(monkeypatch, run):
    def absent(module, extra):
        raise ImportError(f'{module} is needed: pip install "slts[{extra}]"')

    monkeypatch.setattr(cli, "import_extra", absent)
    assert "slts[cli]" in run.error("demo")


def test_warnings_are_one_line(monkeypatch, run):
    monkeypatch.setattr(
        application, "application", lambda *_, **__: warnings.warn("gap", UserWarning, 1)
    )
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        assert run("anything") == (0, "", "Warning: gap\n")


@pytest.mark.parametrize(("arguments", "message"), [
    ("fit x.csv", "--model"), ("fit x.csv --model m.slts --method magic", "magic"),
    ("fit x.csv --model m.txt", "must end in .slts"),
    ("fit x.csv --model m.slts --param gama=1", "'gama'"),
    ("fit x.csv --model m.slts --param gamma", "expected name=value"),
    ("fit x.csv --model m.slts --method slts --param gamma=-1", "'gamma'"),
    ("fit x.csv --model m.slts --test-size .2 --memory-limit=-3GB", "'memory_limit'"),
    ("fit x.csv --model m.slts --test-size 2", "between 0 and 1"),
    ("fit x.csv --model m.slts --jobs 0", "-1 for all processors, got 0"),
    ("fit x --model m.slts --test-size .2 --test y", "not both"),
    ("fit x --model m.slts --method 1nn --memory-limit 2GB", "'memory_limit'"),
    ("predict m.slts x.csv --out p.xlsx", "must end in .csv or .jsonl or .parquet"),
    ("predict m.slts x.csv --alpha nan", "between 0 and 1"),
    ("predict m.slts x.csv --device tpu", "tpu"),
    ("explain m.slts x.csv --plot p.xlsx", "must end in .png"),
    ("certify m.slts x.csv --delta 5", "between 0 and 1"),
    (f"certify m.slts x.csv --n-models {10**101}", "--n-models"),
    ("report m.slts --out r.pdf", "must end in .html"),
])  # fmt: skip
def test_the_message_names_the_wrong_option(arguments, message, run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert message in run.error(*arguments.split(), code=2)


@pytest.mark.parametrize("arguments", [
    "predict {model} {data} --out {data}", "predict {model} {data} --out {link}",
    "predict {model} {folder} --out {table}", "predict {model} {folder}/*.csv --out {table}",
    "report {page} --out {page}", "fit {named} --model {named}",
    "fit {data} --test {named} --model {named}",
])  # fmt: skip
def test_what_is_read_is_never_overwritten(arguments, problem, model, tmp_path, run):
    folder = tmp_path / "folder"
    folder.mkdir()
    names = {"data": "data.csv", "link": "link.csv", "page": "m.html", "named": "m.slts"}
    paths = {name: tmp_path / file for name, file in names.items()}
    paths |= {"model": model, "folder": folder, "table": folder / "a.csv"}
    paths["data"].write_bytes(problem[".csv"][1].read_bytes())
    paths["link"].symlink_to(paths["data"])
    for name in ("table", "page", "named"):
        paths[name].write_bytes(model.read_bytes())
    before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    assert "would overwrite" in run.error(*arguments.format(**paths).split())
    assert {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()} == before


def test_other_files_are_overwritten(problem, model, tmp_path, run):
    for _ in range(2):
        run.ok("predict", model, problem[".csv"][1], "--out", tmp_path / "p.csv")
    message = run.error("predict", model, problem[".csv"][1], "--out", tmp_path / "no" / "p.csv")
    assert "there is no folder" in message


def test_quiet_prints_nothing_where_a_file_is_written(problem, model, tmp_path, run):
    train, test = problem[".csv"]
    for arguments in (
        ["fit", train, "--model", tmp_path / "m.slts", "--method", "slts", "--test", test],
        ["predict", model, test, "--out", tmp_path / "p.csv", "--alpha", "0.1"],
        ["report", model, "--out", tmp_path / "r.html"],
    ):
        assert run(*arguments, "--quiet") == (0, "", "")
    # What was asked for on standard output is printed.
    assert run("predict", model, test, "--quiet")[1].startswith("id,prediction")
    assert run("evaluate", model, test, "--quiet")[1].startswith("accuracy")
