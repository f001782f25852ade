"""Files are written completely or not at all."""

import contextlib
import errno
import os
import signal
import stat
import subprocess
import sys
import threading

import pytest

from slts import atomic_files
from slts.atomic_files import write_atomically

needs_posix = pytest.mark.skipif(os.name == "nt", reason="signals, modes and links of POSIX")


@pytest.fixture
def old(tmp_path):
    path = tmp_path / "m.slts"
    path.write_bytes(b"the old file")
    return path


@pytest.mark.parametrize("step", ["fsync", "replace"])
@pytest.mark.parametrize("error", [OSError("disk full"), KeyboardInterrupt()], ids=["disk", "key"])
def test_a_failure_leaves_the_old_file_and_nothing_else(old, step, error, monkeypatch):
    def fail(*args):
        raise error

    monkeypatch.setattr(os, step, fail)
    with pytest.raises(type(error)):
        write_atomically(old, b"new")
    assert (old.read_bytes(), os.listdir(old.parent)) == (b"the old file", [old.name])


@needs_posix
def test_a_killed_process_leaves_the_old_file(old):
    # The module alone, without the package: the import is fast.
    program = (
        "import os, runpy, signal, sys; module = runpy.run_path(sys.argv[1]); "
        "os.fsync = lambda handle: os.kill(os.getpid(), signal.SIGKILL); "
        "module['write_atomically'](sys.argv[2], b'new')"
    )
    done = subprocess.run([sys.executable, "-c", program, atomic_files.__file__, str(old)])
    assert (done.returncode, old.read_bytes()) == (-signal.SIGKILL, b"the old file")
    # The next writer removes what the killed one left, and nothing else.
    assert len(os.listdir(old.parent)) == 2
    others = {".n.0123456789abcdef.part.slts", ".m.notes.part.slts"}
    for name in others:
        (old.parent / name).touch()
    with atomic_files.atomic_file(old) as running:
        write_atomically(old, b"new")
        assert {*os.listdir(old.parent)} == {old.name, running.name, *others}
    assert {*os.listdir(old.parent)} == {old.name, *others}


@needs_posix
def test_the_file_has_ordinary_permissions(tmp_path):
    write_atomically(tmp_path / "m.slts", b"new")
    (tmp_path / "plain").write_bytes(b"")
    modes = [stat.S_IMODE((tmp_path / name).stat().st_mode) for name in ("m.slts", "plain")]
    assert modes[0] == modes[1]


@needs_posix
def test_a_link_stays_a_link(tmp_path):
    (tmp_path / "target").mkdir()
    target, link = tmp_path / "target" / "real.slts", tmp_path / "m.slts"
    target.write_bytes(b"the old file")
    link.symlink_to(target)
    write_atomically(link, b"new")
    assert link.is_symlink()
    assert target.read_bytes() == b"new"


@needs_posix
def test_a_fifo_stays_a_fifo_and_its_reader_gets_all_or_nothing(tmp_path):
    fifo, found = tmp_path / "m.slts", []
    os.mkfifo(fifo)

    def fail_later():
        with atomic_files.atomic_file(fifo) as new:
            new.write_bytes(b"incomplete")
            raise KeyboardInterrupt

    for write in (lambda: write_atomically(fifo, b"new"), fail_later):
        reader = threading.Thread(target=lambda: found.append(fifo.read_bytes()), daemon=True)
        reader.start()
        with contextlib.suppress(KeyboardInterrupt):
            write()
        reader.join(20)
    assert found == [b"new", b""]
    assert fifo.is_fifo()
    assert os.listdir(tmp_path) == [fifo.name]


def test_devices_are_streams(old):
    # Nothing is written: a mistake would replace the device of the machine that runs the tests.
    assert atomic_files.is_stream(os.devnull)
    assert not any(map(atomic_files.is_stream, [old, old.parent, old.parent / "new"]))


@pytest.mark.parametrize("name", ["ä" * 120 + ".slts", "長" * 80 + ".slts"])
def test_names_can_be_as_long_as_the_system_allows(name, tmp_path):
    write_atomically(tmp_path / name, b"new")
    assert os.listdir(tmp_path) == [name]


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EFBIG])
def test_a_full_disk_names_the_file(old, code):
    with pytest.raises(OSError, match=r"m\.slts") as caught, atomic_files.atomic_file(old):
        raise OSError(code, "Error writing bytes to file")
    assert (caught.value.errno, caught.value.filename) == (code, str(old))
    assert (old.read_bytes(), os.listdir(old.parent)) == (b"the old file", [old.name])


def test_folders_and_relative_names(tmp_path, monkeypatch):
    with pytest.raises(FileNotFoundError, match="nowhere"):
        write_atomically(tmp_path / "nowhere" / "m.slts", b"new")
    (tmp_path / "folder").mkdir()
    with pytest.raises(IsADirectoryError):
        write_atomically(tmp_path / "folder", b"new")
    # A new file replaces the old one.
    (tmp_path / "m.slts").write_bytes(b"the old file")
    monkeypatch.chdir(tmp_path)
    write_atomically("m.slts", b"new")
    assert (tmp_path / "m.slts").read_bytes() == b"new"
    assert sorted(os.listdir()) == ["folder", "m.slts"]
