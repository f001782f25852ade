"""The code and the commands in the README and the documentation run; links lead somewhere."""

import os
import pkgutil
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import slts

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
PAGES = [ROOT / "README.md", *sorted(DOCS.glob("*.md")), *sorted(DOCS.glob("how-to/*.md"))]
OTHER_PAGES = [ROOT / name for name in ("ARCHITECTURE.md", "CHANGELOG.md", "CONTRIBUTING.md")]
BLOCK = re.compile(r"^```(python|console)\n(.*?)^```", re.DOTALL | re.MULTILINE)


@pytest.mark.slow
@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_code_blocks_run(page, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    text = page.read_text(encoding="utf-8")
    namespace: dict[str, object] = {}
    for block in BLOCK.finditer(text):
        if block.group(1) == "console":
            run_commands(block.group(2), capsys)
            continue
        line = text[: block.start()].count("\n") + 1
        code = compile("\n" * line + block.group(2), str(page), "exec")
        exec(code, namespace)


def run_commands(block, capsys):
    """Run the lines that begin with a prompt; other lines are output."""
    from slts.cli import main

    for line in block.splitlines():
        if not line.startswith("$ slts "):
            continue
        command = line.removeprefix("$ ")
        # Redirections need a shell. Other commands run here, which saves the start of Python.
        if "<" in command:
            code, messages = run_in_shell(command)
        else:
            capsys.readouterr()
            code, messages = main(shlex.split(command)[1:]), capsys.readouterr().err
        assert code == 0, f"{line}\n{messages}"


def run_in_shell(command):
    """Run a command line in bash; return exit code and messages."""
    if shutil.which("bash") is None:
        pytest.skip("there is no bash to run the commands")
    environment = os.environ | {"PYTHONPATH": str(Path(slts.__file__).parent.parent)}
    slts_here = f'slts() {{ "{sys.executable}" -m slts "$@"; }}'
    command = ["bash", "-c", f"{slts_here}\n{command}"]
    done = subprocess.run(command, capture_output=True, text=True, env=environment)
    return done.returncode, done.stderr


def test_every_public_name_is_in_the_reference():
    reference = (ROOT / "docs" / "api.rst").read_text(encoding="utf-8")
    listed = set(re.findall(r"^   ([\w.]+)", reference, re.MULTILINE))
    assert set(slts.__all__) <= {name.split(".")[0] for name in listed}
    for part in (slts.plots, slts.guarantees, slts.tables, slts.datasets, slts.report):
        short = part.__name__.removeprefix("slts.")
        missing = {name for name in part.__all__ if f"{short}.{name}" not in listed}
        assert missing <= set(slts.__all__), f"{short}: {missing}"
    room = "slts"
    for line in re.findall(r"currentmodule:: \S+|^   \w[\w.]+$", reference, re.MULTILINE):
        name = line.split()[-1]
        if line.startswith("currentmodule"):
            room = name
        elif not name.startswith(("aeon.", "sktime.")):
            assert pkgutil.resolve_name(f"{room}.{name}"), name


@pytest.mark.parametrize("page", [*PAGES, *OTHER_PAGES], ids=lambda page: page.name)
def test_links_lead_to_files_and_headings(page):
    text = page.read_text(encoding="utf-8")
    for link, heading in re.findall(r"\]\(([^)#:]*)(?:#([^)]+))?\)", text):
        target = page.parent / link if link else page
        assert target.exists(), link
        assert not heading or heading in anchors(target), f"{link}#{heading}"


def anchors(page):
    """Anchors of the headings of a page, as GitHub and Sphinx (three levels) make them."""
    headings = re.findall(r"^#{1,3} (.*)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", text.lower()).replace(" ", "-") for text in headings}


@pytest.mark.parametrize("page", [*PAGES, *OTHER_PAGES], ids=lambda page: page.name)
def test_pages_are_plain_markdown(page):
    """GitHub shows roles and targets of Sphinx, and conflicts of a merge, as they are written."""
    text = page.read_text(encoding="utf-8")
    assert not re.findall(r"^(?:<{7}|>{7}) .*", text, re.MULTILINE)
    assert not re.findall(r"\{[\w:]+\}`[^`]+`|^\([\w-]+\)=$|\[\]\(", text, re.MULTILINE)


@pytest.mark.parametrize("page", [*PAGES, *OTHER_PAGES], ids=lambda page: page.name)
def test_named_sources_and_targets_exist(page):
    if not (ROOT / "benchmarks").exists():
        pytest.skip("this is not a clone of the repository")
    text = page.read_text(encoding="utf-8")
    roots = (ROOT, ROOT / "src" / "slts", ROOT / "src" / "slts" / "alignment")
    for name in re.findall(r"[`\s]([\w/*]+/[\w*]+\.(?:py|pyi|[hc]pp|cu|js))\b", text):
        assert any(list(root.glob(name)) for root in roots), name
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    for target in re.findall(r"(?:^|`)make (\w+)", text, re.MULTILINE):
        assert f"\n{target}:" in makefile, target
