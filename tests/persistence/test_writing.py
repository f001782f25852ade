"""Files are written whole or not at all."""

import os
import signal
import stat
import subprocess
import sys
from pathlib import Path

import pytest

import slts
from tests.persistence.zoo import SMALL, fit

ROOT = Path(__file__).parents[2]
needs_posix = pytest.mark.skipif(os.name == "nt", reason="signals, modes and links of POSIX")


@pytest.fixture(scope="module")
def model():
    return fit(SMALL[4])


@pytest.fixture
def old(tmp_path):
    path = tmp_path / "m.slts"
    path.write_bytes(b"the old file")
    return path


@pytest.mark.parametrize("step", ["fsync", "replace"])
@pytest.mark.parametrize("error", [OSError("disk full"), KeyboardInterrupt()], ids=["disk", "key"])
def test_a_failure_leaves_the_old_file_and_nothing_else(model, old, step, error, monkeypatch):
    def fail(*args):
        raise error

    monkeypatch.setattr(os, step, fail)
    with pytest.raises(type(error)):
        slts.save(model, old)
    assert old.read_bytes() == b"the old file"
    assert os.listdir(old.parent) == [old.name]


@needs_posix
def test_a_killed_process_leaves_the_old_file(old):
    program = (
        "import os, sys, signal, slts; sys.path.insert(0, sys.argv[2]); "
        "from tests.persistence.zoo import SMALL, fit; model = fit(SMALL[4]); "
        "os.fsync = lambda handle: os.kill(os.getpid(), signal.SIGKILL); "
        "slts.save(model, sys.argv[1])"
    )
    done = subprocess.run([sys.executable, "-c", program, str(old), str(ROOT)])
    assert done.returncode == -signal.SIGKILL
    assert old.read_bytes() == b"the old file"


def test_a_new_file_replaces_the_old_one(model, old):
    slts.save(model, old)
    assert slts.load(old).get_params() == model.get_params()
    assert os.listdir(old.parent) == [old.name]


@needs_posix
def test_the_file_has_ordinary_permissions(model, tmp_path):
    slts.save(model, tmp_path / "m.slts")
    (tmp_path / "plain").write_bytes(b"")
    modes = [stat.S_IMODE((tmp_path / name).stat().st_mode) for name in ("m.slts", "plain")]
    assert modes[0] == modes[1]


@needs_posix
def test_a_link_stays_a_link(model, tmp_path):
    (tmp_path / "target").mkdir()
    target, link = tmp_path / "target" / "real.slts", tmp_path / "m.slts"
    target.write_bytes(b"the old file")
    link.symlink_to(target)
    slts.save(model, link)
    assert link.is_symlink()
    assert slts.load(target).get_params() == model.get_params()


@pytest.mark.parametrize("name", ["ä" * 120 + ".slts", "長" * 80 + ".slts"])
def test_names_may_be_as_long_as_the_system_allows(name, model, tmp_path):
    slts.save(model, tmp_path / name)
    assert os.listdir(tmp_path) == [name]


def test_a_missing_folder_is_named(model, tmp_path):
    with pytest.raises(FileNotFoundError, match="nowhere"):
        slts.save(model, tmp_path / "nowhere" / "m.slts")


def test_a_folder_is_not_replaced(model, tmp_path):
    (tmp_path / "m.slts").mkdir()
    with pytest.raises(IsADirectoryError):
        slts.save(model, tmp_path / "m.slts")


def test_a_relative_name_is_enough(model, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    slts.save(model, "m.slts")
    assert slts.load("m.slts").get_params() == model.get_params()
