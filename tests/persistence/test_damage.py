"""A damaged file is refused with a reason, without a crash, a hang or much memory."""

import os
import pickle
import re
import time
import tracemalloc

import numpy as np
import pytest

import slts
from tests.persistence.small_models import SMALL, by_name

EACH = 130  # for each classifier: more than 1,000 in all
# Large enough for a slow machine: the test is for hangs.
MOST_SECONDS = 60.0
MOST_BYTES = 32 * 2**20


def flip_a_bit(content, rng):
    place, bit = int(rng.integers(len(content))), int(rng.integers(8))
    return content[:place] + bytes([content[place] ^ (1 << bit)]) + content[place + 1 :]


def truncate(content, rng):
    return content[: int(rng.integers(len(content)))]


def append(content, rng):
    return content + rng.bytes(int(rng.integers(1, 100)))


def cut_out(content, rng):
    begin = int(rng.integers(len(content) - 1))
    return content[:begin] + content[begin + int(rng.integers(1, 64)) :]


def overwrite(content, rng):
    begin, size = int(rng.integers(len(content))), int(rng.integers(1, 64))
    return content[:begin] + rng.bytes(size) + content[begin + size :]


def swap(content, rng):
    a, b = sorted(rng.integers(8, len(content), 2).tolist())
    return content[:8] + content[a:b] + content[8:a] + content[b:]


def length_of_header(content, rng):
    length = int(rng.integers(2 ** int(rng.integers(1, 63))))
    return length.to_bytes(8, "little") + content[8:]


def edit_header(content, rng):
    """Replace a character of the header by another that JSON may hold there."""
    end = 8 + int.from_bytes(content[:8], "little")
    place = int(rng.integers(8, end))
    return (
        content[:place]
        + rng.choice(list(b'{}[]",:0123456789ea\\')).tobytes()[:1]
        + content[place + 1 :]
    )


def edit_number(content, rng):
    """Replace a number of the header by another of as many digits."""
    end = 8 + int.from_bytes(content[:8], "little")
    numbers = list(re.finditer(rb"\d+", content[8:end]))
    found = numbers[int(rng.integers(len(numbers)))]
    digits = b"".join(b"%d" % d for d in rng.integers(0, 10, len(found[0])))
    return content[: 8 + found.start()] + digits + content[8 + found.end() :]


def declare_much(content, rng):
    """Declare a shape of many terabytes, and offsets that fit it."""
    end = 8 + int.from_bytes(content[:8], "little")
    shapes = list(re.finditer(rb'"shape":\[[\d,]+\],"data_offsets":\[(\d+),\d+\]', content[8:end]))
    found = shapes[int(rng.integers(len(shapes)))]
    rows = 2 ** int(rng.integers(30, 60))
    entry = b'"shape":[%d,8],"data_offsets":[%s,%d]' % (rows, found[1], int(found[1]) + 64 * rows)
    header = content[8 : 8 + found.start()] + entry + content[8 + found.end() : end]
    return len(header).to_bytes(8, "little") + header + content[end:]


WAYS = [
    flip_a_bit, truncate, append, cut_out, overwrite, swap, length_of_header, edit_header,
    edit_number, declare_much,
]  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("estimator", SMALL, ids=by_name)
def test_random_damage_is_always_noticed(estimator, saved, tmp_path):
    _, content = saved[by_name(estimator)]
    rng = np.random.default_rng([7, SMALL.index(estimator)])
    path = tmp_path / "m.slts"
    for i in range(EACH):
        damaged = content
        while damaged == content:
            damaged = WAYS[i % len(WAYS)](content, rng)
        path.write_bytes(damaged)
        tracemalloc.start()
        begin = time.perf_counter()
        with pytest.raises(slts.ModelFileError, match=r"m\.slts cannot be loaded.*: \w+"):
            slts.load(path)
        seconds, (_, peak) = time.perf_counter() - begin, tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert seconds < MOST_SECONDS
        assert peak < MOST_BYTES


def test_every_single_bit_counts(saved, tmp_path):
    """One flip in each of the first bytes, and here and there in the rest."""
    _, content = saved["OneNNClassifier"]
    path = tmp_path / "m.slts"
    for place in [*range(400), *range(400, len(content), 37), len(content) - 1]:
        path.write_bytes(flip(content, place, place % 8))
        with pytest.raises(slts.ModelFileError):
            slts.load(path)


def flip(content, place, bit):
    return content[:place] + bytes([content[place] ^ (1 << bit)]) + content[place + 1 :]


def test_a_flipped_number_is_called_damage(saved, tmp_path):
    _, content = saved["SLTSClassifier"]
    path = tmp_path / "m.slts"
    path.write_bytes(flip(content, len(content) - 5, 0))
    with pytest.raises(slts.ModelFileError, match="the file is damaged or was edited"):
        slts.load(path)


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", "it is empty"),
        (b"slts", "not a model file"),
        (b"id,time,value\n1,2,3\n", "not a model file"),
        (pickle.dumps({"a": 1}), "looks like a pickle"),
        (b"PK\x03\x04" + bytes(100), "looks like a pickle or an archive"),
        (b"\xff" * 100, "not a model file"),
        (bytes(100), "not a model file"),
        ((2).to_bytes(8, "little") + b"{}", "a safetensors file, but not a model file"),
        ((100).to_bytes(8, "little") + b"{}", "truncated: its header has 100 bytes"),
    ],
    ids=["empty", "short", "csv", "pickle", "zip", "ones", "zeros", "safetensors", "truncated"],
)
def test_other_files_are_told_apart(content, reason, tmp_path):
    path = tmp_path / "m.slts"
    path.write_bytes(content)
    with pytest.raises(slts.ModelFileError, match=reason) as caught:
        slts.load(path)
    assert str(caught.value).startswith(f"{path} cannot be loaded: it is ")


def test_a_file_of_another_size_is_called_truncated_or_too_long(saved, tmp_path):
    _, content = saved["SLTSClassifier"]
    path = tmp_path / "m.slts"
    n = len(content)
    for damaged, problem in (
        (content[:-10], f"it is truncated: it has {n - 10:,} bytes, expected {n:,}"),
        (content + b"x", f"it is too long: it has {n + 1:,} bytes, expected {n:,}"),
    ):
        path.write_bytes(damaged)
        with pytest.raises(slts.ModelFileError, match=problem):
            slts.load(path)


def test_a_folder_is_not_a_file(tmp_path):
    with pytest.raises(slts.ModelFileError, match="it is a folder"):
        slts.load(tmp_path)


@pytest.mark.skipif(not os.path.exists("/dev/zero"), reason="there are no device files")
def test_a_device_is_not_a_file():
    with pytest.raises(slts.ModelFileError, match="not a regular file"):
        slts.load("/dev/zero")


def test_a_missing_file_is_missing(tmp_path):
    with pytest.raises(FileNotFoundError):
        slts.load(tmp_path / "m.slts")


@pytest.mark.parametrize(
    ("number", "remedy"),
    [(1, "train the model again and save it, or load it with the version that wrote it"),
     (3, "upgrade slts")],
)  # fmt: skip
def test_another_format_is_refused_with_the_remedy(number, remedy, saved, tmp_path):
    _, content = saved["SLTSClassifier"]
    other = content.replace(rb"{\"format\":2,", rb"{\"format\":%d," % number)
    version = slts.__version__.encode()
    other = other.replace(rb"\"slts\":\"%s\"" % version, rb"\"slts\":\"9.9.9\"")
    path = tmp_path / "m.slts"
    path.write_bytes(other)
    expected = rf"written by slts 9\.9\.9 in format {number}, .*reads format 2 only: {remedy}"
    with pytest.raises(slts.ModelFileError, match=expected):
        slts.load(path)
