"""Spill: blocks that do not fit in memory are written to files and read back unchanged."""

import errno
import tempfile
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest

from slts.execution.memory import Spill, free_disk

BYTES = 8 * 10


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    """Where temporary files go."""
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr(tempfile, "tempdir", None)
    return tmp_path


def files_in(folder):
    return [path for path in folder.rglob("*") if path.is_file()]


def numbers(first):
    return (np.arange(first, first + 10.0),)


@pytest.mark.parametrize("room", [0, 1, 3, 7, 100])
def test_blocks_beyond_the_memory_are_written_to_files(room, folder):
    with closing(Spill(room * BYTES + BYTES // 2)) as spill:
        kept = [spill.store(numbers(10 * (3 * part + k)) for k in range(3)) for part in range(3)]
        in_memory = min(room, 9)
        assert (spill.in_memory, spill.on_disk) == (in_memory * BYTES, (9 - in_memory) * BYTES)
        assert spill.in_memory <= spill.memory
        assert sum(path.stat().st_size for path in files_in(folder)) == spill.on_disk
        for _ in range(2):
            found = [array for part in kept for (array,) in part]
            np.testing.assert_array_equal(np.concatenate(found), np.arange(90.0))


def test_a_small_block_still_fits_after_one_that_does_not(folder):
    with closing(Spill(BYTES)) as spill:
        kept = spill.store([(np.zeros(11),), (np.ones(10),)])
        assert (spill.in_memory, spill.on_disk) == (BYTES, BYTES + 8)
        assert [array.sum() for (array,) in kept] == [0.0, 10.0]


def test_blocks_in_memory_need_no_folder(folder):
    with closing(Spill(float("inf"))) as spill:
        block = numbers(0)
        (found,) = spill.store([block])
        assert found[0] is block[0]
        assert list(folder.iterdir()) == []


def test_arrays_of_several_types_share_one_file(rng, folder):
    block = (
        rng.integers(0, 100, 7).astype(np.int8),
        rng.normal(size=(5, 3, 2)),
        rng.integers(0, 2, 3).astype(bool),
        rng.normal(size=(4, 6)).astype(np.float32).T,
        rng.normal(size=(9, 9))[::2, 1::3],
        np.empty((0, 4, 4)),
        np.array(["left", "right"]),
        np.arange(5, dtype=">i4"),
        np.empty(0, np.int32),
        np.arange(3, dtype=np.int64),
    )
    with closing(Spill(0)) as spill:
        kept = spill.store([block, ()])
        for _ in range(2):
            found, nothing = kept
            assert nothing == ()
            assert len(found) == len(block)
            for array, original in zip(found, block, strict=True):
                assert (array.shape, array.dtype) == (original.shape, original.dtype)
                np.testing.assert_array_equal(array, original)
                # An item that begins elsewhere would be slow to read, or impossible.
                assert array.flags.aligned
                assert not array.size or array.ctypes.data % 64 == 0
        assert spill.on_disk == sum(array.nbytes for array in block)


def test_empty_blocks_are_read_back():
    with closing(Spill(-1)) as spill:
        ((codes, values),) = spill.store([(np.empty(0, np.int32), np.empty((0, 3, 3)))])
    assert (codes.shape, codes.dtype) == ((0,), np.int32)
    assert (values.shape, values.dtype) == ((0, 3, 3), np.float64)


def test_arrays_in_files_are_read_only():
    with closing(Spill(0)) as spill:
        ((array,),) = spill.store([numbers(0)])
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 1.0


def test_close_removes_the_files_from_tmpdir(folder):
    spill = Spill(0)
    spill.store([numbers(0), numbers(10)])
    assert len(files_in(folder)) == 2
    assert all(path.parent.parent == folder for path in files_in(folder))
    spill.close()
    assert list(folder.iterdir()) == []
    spill.close()


def test_an_error_leaves_no_file(folder):
    def broken():
        yield numbers(0)
        assert len(files_in(folder)) == 1
        raise RuntimeError("broken")

    with pytest.raises(RuntimeError, match="broken"), closing(Spill(0)) as spill:
        spill.store(broken())
    assert list(folder.iterdir()) == []


class FullDisk:
    """A file that takes some bytes and then no more."""

    def __init__(self, file, room):
        self.file, self.room = file, room

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.file.close()

    def write(self, content):
        self.room -= len(content)
        if self.room < 0:
            raise OSError(errno.ENOSPC, "No space left on device")
        return self.file.write(content)


def test_a_full_disk_is_an_error_with_a_remedy(folder, monkeypatch):
    opened = Path.open
    monkeypatch.setattr(Path, "open", lambda path, mode: FullDisk(opened(path, mode), 100))
    with pytest.raises(OSError, match="Intermediate results") as caught, closing(Spill(0)) as spill:
        spill.store([numbers(0), (np.zeros(5), np.zeros(30))])
    message = str(caught.value)
    assert message.startswith(f"Intermediate results of 0.0 GB do not fit on the disk of {folder} ")
    assert "GB are free): No space left on device. Set TMPDIR" in message
    assert "memory_limit" in message
    assert list(folder.iterdir()) == []


def test_free_disk_is_that_of_tmpdir(folder, monkeypatch):
    asked = []
    monkeypatch.setattr(
        "shutil.disk_usage", lambda path: asked.append(Path(path)) or type("", (), {"free": 17})
    )
    assert free_disk() == 17
    assert asked == [folder]
