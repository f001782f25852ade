"""Killed or interrupted commands leave no file under the final name, and no temporary files."""

import contextlib
import os
import signal
import subprocess
import sys
import time

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import slts
from tests.cli.conftest import draw
from tests.tables.forms import csv_text, long_table

pytestmark = pytest.mark.skipif(os.name == "nt", reason="signals of POSIX")


def start(*arguments, **options):
    return subprocess.Popen(
        [sys.executable, "-m", "slts", *map(str, arguments)], stderr=subprocess.PIPE, text=True,
        **options,
    )  # fmt: skip


def wait_for(happened):
    deadline = time.monotonic() + 60
    while not happened():
        assert time.monotonic() < deadline, "waited in vain"
        time.sleep(0.02)


@pytest.mark.slow
@pytest.mark.parametrize(("number", "status", "suffix"), [
    (signal.SIGKILL, -9, ".csv"), (signal.SIGINT, 130, ".csv"), (signal.SIGTERM, 143, ".parquet"),
])  # fmt: skip
def test_predict(number, status, suffix, model, tmp_path):
    out = tmp_path / f"p{suffix}"
    out.write_text("an older file")
    process = start("predict", model, "-", "--out", out, stdin=subprocess.PIPE)
    # Standard input stays open: the command waits for more.
    table = long_table(*draw(30, 1)).to_pydict()
    rows = {name: np.tile(column, 200) for name, column in table.items() if name != "recording"}
    rows["recording"] = [f"{name}-{k}" for k in range(200) for name in table["recording"]]
    process.stdin.write(csv_text(pa.table(rows)))
    process.stdin.flush()
    wait_for(lambda: [path for path in tmp_path.iterdir() if path.name.startswith(".p.")])
    # One that arrives while a library is loaded can be lost: people press Ctrl-C again.
    for _ in range(3):
        process.send_signal(number)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(20)
            break
    assert process.wait(1) == status
    process.stderr.close()
    with contextlib.suppress(BrokenPipeError):
        process.stdin.close()
    assert out.read_text() == "an older file"
    if number != signal.SIGKILL:
        assert [path.name for path in tmp_path.iterdir()] == [out.name]


@pytest.mark.slow
@pytest.mark.parametrize(("number", "status"), [(signal.SIGTERM, 143), (signal.SIGINT, 130)])
def test_fit(number, status, tmp_path):
    data, out = tmp_path / "data.parquet", tmp_path / "m.slts"
    X = slts.as_series(np.random.default_rng(0).normal(size=(800, 3, 300)))
    pq.write_table(long_table(X, np.array(["a", "b"] * 400), np.arange(800)), data)
    options = ["--method", "slts", "--param", "n_landmarks=0.9"]
    process = start("fit", data, "--model", out, *options)
    # The columns are printed before the training begins.
    assert process.stderr.readline().startswith("columns: ")
    time.sleep(0.5)
    process.send_signal(number)
    assert process.wait(60) == status
    messages = process.stderr.read()
    process.stderr.close()
    assert "Traceback" not in messages
    assert [path.name for path in tmp_path.iterdir()] == [data.name]


@pytest.mark.slow
def test_a_closed_pipe_prints_no_error(model, tmp_path):
    data = tmp_path / "data.npz"
    # More than a pipe holds, so that writing fails.
    batch = slts.as_series(list(draw(3, 1)[0]) * 2000)
    np.savez(data, values=batch.values, offsets=batch.offsets)
    process = start("predict", model, data, stdout=subprocess.PIPE)
    assert process.stdout.readline().startswith("id,prediction")
    process.stdout.close()
    assert process.wait(60) == 1
    messages = process.stderr.read()
    process.stderr.close()
    assert messages == ""
