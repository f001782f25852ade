"""Where `load` searches, in which order, and what it says if it finds nothing."""

import importlib.util
import os
import re
import sys
from pathlib import Path

import pytest

from slts.datasets import load
from slts.datasets.catalogue import info
from slts.datasets.loading import cache_folder, cached_name
from slts.errors import DataError
from tests.datasets import miniature
from tests.datasets.miniature import to_folder, to_zip


@pytest.fixture
def robots(rng):
    return to_zip(miniature.robot_failures(rng))


def test_the_users_folder_comes_before_the_cache(monkeypatch, tmp_path, robots, rng):
    cache = Path(os.environ["SLTS_CACHE"])
    (cache / "robot_failures.zip").write_bytes(to_zip(miniature.robot_failures(rng)))
    from_cache, _ = load("robot_lp1")
    (tmp_path / "robot_failures.zip").write_bytes(robots)
    monkeypatch.setenv("SLTS_DATA", str(tmp_path))
    assert load("robot_lp1")[0] != from_cache
    (tmp_path / "robot_failures.zip").unlink()
    assert load("robot_lp1")[0] == from_cache


def test_a_damaged_archive_in_the_users_folder_raises_an_error(monkeypatch, tmp_path, robots):
    (Path(os.environ["SLTS_CACHE"]) / "robot_failures.zip").write_bytes(robots)
    (tmp_path / "robot_failures.zip").write_bytes(robots[:-100])
    monkeypatch.setenv("SLTS_DATA", str(tmp_path))
    with pytest.raises(DataError, match=r"robot_failures\.zip is neither .* or it is cut off"):
        load("robot_lp1")


def test_a_folder_with_some_files_gives_those_data_sets(monkeypatch, tmp_path, rng):
    files = miniature.robot_failures(rng)
    to_folder({"lp4.data": files["lp4.data"]}, tmp_path)
    monkeypatch.setenv("SLTS_DATA", str(tmp_path))
    assert len(load("robot_lp4")[0]) == 117
    with pytest.raises(FileNotFoundError):
        load("robot_lp5")


def test_missing_data_are_explained(monkeypatch, tmp_path):
    with pytest.raises(FileNotFoundError) as caught:
        load("auslan")
    message = str(caught.value)
    assert 'slts.datasets.fetch("auslan")' in message
    assert "SLTS_DATA (not set)" in message
    assert os.environ["SLTS_CACHE"] in message
    monkeypatch.setenv("SLTS_DATA", str(tmp_path))
    with pytest.raises(FileNotFoundError, match=re.escape(str(tmp_path))):
        load("auslan")


def test_a_variable_that_names_no_folder_is_an_error(monkeypatch, tmp_path):
    monkeypatch.setenv("SLTS_DATA", str(tmp_path / "absent"))
    with pytest.raises(DataError, match=r"SLTS_DATA is .*absent', which is not a folder"):
        load("auslan")


def test_vowels_come_from_aeon_without_importing_it():
    if importlib.util.find_spec("aeon") is None:
        pytest.skip("aeon is not installed")
    loaded = "aeon" in sys.modules
    X, y = load("japanese_vowels")
    assert len(X) == len(y) == 640
    assert ("aeon" in sys.modules) == loaded


def test_vowels_without_aeon_are_not_found(monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(FileNotFoundError, match=r"Japanese Vowels is not on this machine"):
        load("japanese_vowels")


def test_the_cache_is_in_the_platforms_folder(monkeypatch):
    monkeypatch.setenv("SLTS_CACHE", "~/somewhere")
    assert cache_folder() == Path.home() / "somewhere"
    monkeypatch.delenv("SLTS_CACHE")
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    expected = {
        "linux": Path.home() / ".cache" / "slts",
        "darwin": Path.home() / "Library" / "Caches" / "slts",
    }
    if sys.platform in expected:
        assert cache_folder() == expected[sys.platform]
    if sys.platform == "linux":
        monkeypatch.setenv("XDG_CACHE_HOME", "/elsewhere")
        assert cache_folder() == Path("/elsewhere/slts")


@pytest.mark.parametrize(
    ("address", "name"),
    [
        ("https://x/y/tctodd.tar.gz", "auslan.tar.gz"),
        ("https://x/y/a.tgz?download=1", "auslan.tgz"),
        ("https://x/y/signs+high+quality.zip", "auslan.zip"),
        ("https://x/download/115", "auslan.zip"),
    ],
)
def test_names_in_the_cache(address, name):
    assert cached_name(info("auslan"), address) == name
