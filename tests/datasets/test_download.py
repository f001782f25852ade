"""Downloads: broken connections, wrong files, no server, a full disk."""

import errno
import io
import os
import shutil
import socket
import sys
from contextlib import contextmanager
from pathlib import Path

import pytest

from slts.datasets import catalogue, fetch, info, load, loading
from slts.errors import DataError
from slts.execution import silent
from tests.datasets import miniature
from tests.datasets.miniature import to_tar, to_zip
from tests.datasets.server import serving

pytest.importorskip("requests")


@pytest.fixture
def server(monkeypatch):
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    monkeypatch.setattr(loading, "PAUSE_S", 0.0)
    with serving() as script:
        monkeypatch.setenv("SLTS_MIRROR", script.base + "/mirror/")
        yield script


@pytest.fixture
def robots(server, rng):
    content = to_zip(miniature.robot_failures(rng))
    server.files["mirror/robot_failures.zip"] = content
    return content


@pytest.fixture
def cache():
    return Path(os.environ["SLTS_CACHE"])


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def test_what_is_fetched_is_loaded(server, robots, cache):
    with pytest.raises(FileNotFoundError):
        load("robot_lp1")
    path = fetch("robot_lp1")
    assert path == cache / "robot_failures.zip"
    assert path.read_bytes() == robots
    assert names(cache) == ["robot_failures.zip"]
    assert [len(load(f"robot_lp{i}")[0]) for i in range(1, 6)] == [88, 47, 47, 117, 164]


def test_what_the_cache_has_is_not_fetched_again_unless_forced(server, robots, cache, rng):
    fetch("robot_lp1")
    fetch("robot_lp5")
    assert len(server.asked) == 1
    newer = to_zip(miniature.robot_failures(rng))
    server.files["mirror/robot_failures.zip"] = newer
    assert fetch("robot_lp2", force=True).read_bytes() == newer
    assert names(cache) == ["robot_failures.zip"]


def test_a_forced_download_that_fails_leaves_the_old_file(server, robots, cache):
    fetch("robot_lp1")
    server.files["mirror/robot_failures.zip"] = b"<html>maintenance</html>"
    with pytest.raises(DataError):
        fetch("robot_lp1", force=True)
    assert (cache / "robot_failures.zip").read_bytes() == robots
    assert names(cache) == ["robot_failures.zip"]


def test_a_download_starts_again_after_a_broken_connection(server, robots, cache):
    server.cuts = [1000, 2000]
    assert fetch("robot_lp1").read_bytes() == robots
    assert len(server.asked) == 3
    assert names(cache) == ["robot_failures.zip"]


def test_a_connection_that_always_breaks_leaves_nothing(server, robots, cache):
    server.cuts = [1000] * loading.ATTEMPTS
    with pytest.raises(
        ConnectionError, match=r"gave up after 4 attempts: .* ended before the file"
    ):
        fetch("robot_lp1")
    assert names(cache) == []


def test_an_answer_of_unknown_length_is_taken_to_its_end(server, robots):
    server.with_length = False
    assert fetch("robot_lp1").read_bytes() == robots


def test_a_cut_answer_of_unknown_length_is_noticed_and_not_kept(server, robots, cache):
    server.with_length = False
    server.cuts = [1000]
    with pytest.raises(DataError, match=r"cut off"):
        fetch("robot_lp1")
    assert names(cache) == []


def wrong_contents(rng):
    files = miniature.robot_failures(rng)
    yield r"neither a zip nor a tar", b"<html>Not the file</html>"
    yield r"neither a zip nor a tar", b""
    yield r"cut off", to_zip(files)[:-50]
    yield r"has no lp1\.data", to_zip({"readme.txt": "nothing"})
    short = files | {"lp3.data": files["lp3.data"].split("\n\n\n", 1)[1]}
    yield r"LP3.* as published: it has 46 series, expected 47", to_zip(short)


def test_wrong_files_are_refused_and_not_kept(server, cache, rng):
    for message, content in wrong_contents(rng):
        server.files["mirror/robot_failures.zip"] = content
        with pytest.raises(DataError, match=message) as caught:
            fetch("robot_lp1")
        assert info("robot_lp1").page in str(caught.value)
        assert names(cache) == []


def test_a_missing_file_is_reported_without_further_attempts(server, cache):
    with pytest.raises(ConnectionError, match=r"404 Client Error"):
        fetch("auslan")
    assert len(server.asked) == 1
    assert names(cache) == []


def test_a_server_in_trouble_is_asked_again(server, robots):
    server.statuses = [503, 500]
    assert fetch("robot_lp1").read_bytes() == robots
    assert len(server.asked) == 3


def test_no_network_is_reported_at_once(monkeypatch, cache):
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        port = unused.getsockname()[1]
    monkeypatch.setattr("time.sleep", lambda s: pytest.fail("waited for a network"))
    with pytest.raises(ConnectionError) as caught:
        fetch("japanese_vowels", url=f"http://127.0.0.1:{port}/x.zip")
    message = str(caught.value)
    assert "refused" in message
    assert info("japanese_vowels").page in message
    assert str(cache) in message
    assert "SLTS_DATA" in message


def test_a_malformed_address_is_reported():
    with pytest.raises(ConnectionError, match=r"Invalid URL|No connection adapters"):
        fetch("japanese_vowels", url="japanese_vowels.zip")


@pytest.mark.parametrize("code", [errno.ENOSPC, getattr(errno, "EDQUOT", errno.ENOSPC)])
def test_a_disk_that_fills_up_is_reported(code, server, robots, cache, monkeypatch):
    real_open = Path.open

    class Full(io.FileIO):
        def write(self, data):
            raise OSError(code, os.strerror(code))

    def open_full(path, mode="r", *args, **kwargs):
        return Full(path, mode) if mode == "wb" else real_open(path, mode, *args, **kwargs)

    with monkeypatch.context() as patched:
        patched.setattr(Path, "open", open_full)
        with pytest.raises(OSError, match=r"no space left .* set SLTS_CACHE") as caught:
            fetch("robot_lp1")
    assert caught.value.errno == errno.ENOSPC
    assert not isinstance(caught.value, ConnectionError)
    assert names(cache) == []


def test_a_disk_too_small_is_noticed_before_it_is_full(server, robots, cache, monkeypatch):
    usage = shutil.disk_usage(cache)._replace(free=len(robots) - 1)
    monkeypatch.setattr(shutil, "disk_usage", lambda path: usage)
    with pytest.raises(OSError, match=r"no space left"):
        fetch("robot_lp1")
    assert names(cache) == []


def test_the_next_address_is_tried_when_one_has_the_wrong_file(server, cache, monkeypatch, rng):
    miniature.shrink(monkeypatch)
    monkeypatch.delenv("SLTS_MIRROR")
    tar = to_tar(miniature.auslan(rng))
    server.files["a.zip"] = to_zip({"tctodd.tar.gz": "../auslan2/tctodd.tar.gz"})
    server.files["b/tctodd.tar.gz"] = tar
    addresses = tuple(f"{server.base}/{name}" for name in ("a.zip", "none", "b/tctodd.tar.gz"))
    entry = catalogue._CATALOGUE["auslan"]
    changed = {"auslan": catalogue.dataclasses.replace(entry, addresses=addresses)}
    monkeypatch.setattr(catalogue, "_CATALOGUE", catalogue._CATALOGUE | changed)
    path = fetch("auslan")
    assert path == cache / "auslan.tar.gz"
    assert len(load("auslan")[0]) == 18
    assert fetch("auslan") == path
    assert len(server.asked) == 3


def test_all_failures_are_told_when_no_address_works(server, monkeypatch):
    monkeypatch.delenv("SLTS_MIRROR")
    server.files["a.zip"] = b"no"
    addresses = (f"{server.base}/a.zip", f"{server.base}/b.zip")
    changed = catalogue.dataclasses.replace(info("auslan"), addresses=addresses)
    monkeypatch.setitem(catalogue._CATALOGUE, "auslan", changed)
    with pytest.raises(ConnectionError, match=r"a\.zip: .*neither.*b\.zip: 404"):
        fetch("auslan")


def test_progress_counts_every_byte_once(server, robots, monkeypatch):
    calls = []

    @contextmanager
    def bar(description, *, show):
        assert description == "Downloading robot_failures.zip"
        yield (lambda done, total: calls.append((done, total))) if show else silent

    monkeypatch.setattr(loading, "progress_bar", bar)
    monkeypatch.setattr(loading, "_CHUNK", 4096)
    fetch("robot_lp1")
    assert {total for _, total in calls} == {len(robots)}
    steps = [0, *(done for done, _ in calls)]
    assert steps == sorted(set(steps))
    assert steps[-1] == len(robots)
    fetch("robot_lp1", force=True, progress=False)
    assert len(calls) == len(steps) - 1


def test_a_missing_package_is_named_with_its_extra(server, robots, monkeypatch):
    monkeypatch.setitem(sys.modules, "requests", None)
    with pytest.raises(ImportError, match=r'pip install "slts\[datasets\]"'):
        fetch("robot_lp1")


def test_an_unknown_name_reaches_no_server(server):
    with pytest.raises(DataError, match=r"no data set 'iris'"):
        fetch("iris")
    assert server.asked == []
