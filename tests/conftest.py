"""What every test may use: a seeded generator, reproducible examples, and data on request."""

import os

# One BLAS thread: the arrays are small, and several test processes share the cores.
os.environ["OMP_NUM_THREADS"] = os.environ.get("OMP_NUM_THREADS", "1")

import zipfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, settings

settings.register_profile(
    "reproducible", max_examples=50, derandomize=True, deadline=None, database=None,
    suppress_health_check=[HealthCheck.too_slow],
)  # fmt: skip
settings.load_profile("reproducible")


@pytest.fixture
def rng():
    return np.random.default_rng(20_240_229)


@pytest.fixture
def tables_in_parts(monkeypatch):
    """Read small tables in batches and parts, as large ones are."""
    monkeypatch.setattr("slts.tables.assembly.SMALL_BYTES", 0)


@pytest.fixture(scope="session")
def data_folder():
    """Folder with the zips of the paper's data sets."""
    folder = os.environ.get("SLTS_DATA")
    if not folder:
        pytest.skip("SLTS_DATA is unset: it must name the folder with the paper's data sets")
    return Path(folder)


@pytest.fixture(scope="session")
def arabic_digits(data_folder):
    """Spoken Arabic digits: (train series, train labels, test series, test labels)."""
    archive = data_folder / "arabic_digits.zip"
    if not archive.exists():
        pytest.skip("SLTS_DATA holds no arabic_digits.zip")
    parts = []
    with zipfile.ZipFile(archive) as files:
        for member, per_digit in (("Train_Arabic_Digit.txt", 660), ("Test_Arabic_Digit.txt", 220)):
            series = _blank_line_blocks(files.read(member).decode("ascii"))
            assert len(series) == 10 * per_digit
            parts += [series, np.repeat(np.arange(10), per_digit)]
    return tuple(parts)


def _blank_line_blocks(text):
    """Blocks of rows between blank lines, as (channels, time) arrays."""
    blocks, rows = [], []
    for line in [*text.splitlines(), ""]:
        if line.strip():
            rows.append([float(word) for word in line.split()])
        elif rows:
            blocks.append(np.array(rows).T)
            rows = []
    return blocks
