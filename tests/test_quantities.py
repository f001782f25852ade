"""Sizes in bytes: read from text, and written for people."""

import numpy as np
import pytest

from slts.quantities import format_bytes, parse_bytes

MB, GB = 10**6, 10**9


@pytest.mark.parametrize(("given", "expected"), [
    (1, 1), (2.5e9, 2_500_000_000), (np.int64(77), 77), (np.float32(1024), 1024), ("77", 77),
    ("77B", 77), ("5k", 5_000), ("5KiB", 5 * 1024), ("512 MiB", 512 * 2**20),
    ("1.5GB", 1_500_000_000), ("1.gb", GB), (" 2GI ", 2 * 2**30), ("3tib", 3 * 2**40),
])  # fmt: skip
def test_sizes_are_parsed(given, expected):
    found = parse_bytes(given)
    assert (type(found), found) == (int, expected)


@pytest.mark.parametrize("given", [
    "", "GB", "much", "-1", "-1GB", "0", "0GB", "1e9", "2 GB or so", "2PB", "2IB", "1,5GB", "2GGB",
    ".", "nan", "inf", 0, -5, 0.0, float("nan"), float("inf"), True, False, [1], b"2GB", 1j,
])  # fmt: skip
def test_other_sizes_are_errors(given):
    with pytest.raises(ValueError, match="'memory_limit' parameter of SLTSClassifier") as caught:
        parse_bytes(given, "memory_limit", "SLTSClassifier")
    assert "'2GB' or '512 MiB'" in str(caught.value)
    assert f"Got {given!r} instead" in str(caught.value)


@pytest.mark.parametrize(("size", "text"), [
    (0, "0 bytes"), (700, "700 bytes"), (7_400, "7.4 kB"), (1.44 * MB, "1.4 MB"),
    (999.4 * MB, "999 MB"), (999.6 * MB, "1 GB"), (1234.5 * GB, "1234.5 GB"),
])  # fmt: skip
def test_sizes_are_written_with_a_unit(size, text):
    assert format_bytes(size) == text
