"""Learning keeps to its memory limit, and to what was estimated."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")
pytest.importorskip("pyarrow")

LIMIT = 120_000_000
IN_MEMORY = """
import sys
import numpy as np
import slts
from slts.training import local_fit
from slts.training.memory_plan import MemoryPlan

def status(name):
    with open("/proc/self/status") as lines:
        return next(int(line.split()[1]) * 1000 for line in lines if line.startswith(name))

is_local, estimates = sys.argv[1] == "local", []
n_series = 1000 if is_local else 12_000
rng = np.random.default_rng(0)
y = np.arange(n_series) % 3
X = slts.as_series([rng.normal(size=(3, rng.integers(8, 12))) + c for c in y])
if is_local:
    model = slts.LocalSLTSClassifier(12, representations="values", n_phases=1, random_state=0)
else:
    model = slts.SLTSClassifier(80, n_jobs=4, random_state=0)
model.fit(X[:200], y[:200])
before = status("VmRSS")
estimate, make = local_fit.training_bytes, MemoryPlan.make

def logged(*args, **kwargs):
    estimates.append(estimate(*args, **kwargs))
    return estimates[-1]

def logged_plan(work, *args):
    estimates.append(work.in_memory)
    return make(work, *args)

local_fit.training_bytes, MemoryPlan.make = logged, logged_plan
model.fit(X, y)
print(status("VmHWM") - before, estimates[0])
"""
PROGRAM = """
import sys
import numpy as np
import slts
from slts.files import parquet_parts

def status(name):
    with open("/proc/self/status") as lines:
        return next(int(line.split()[1]) * 1000 for line in lines if line.startswith(name))

# The file is small, but is to be read in parts.
parquet_parts.is_small = lambda n_bytes: sys.argv[3] == "slts"
scan = slts.scan_series(sys.argv[1], id="id", label="label")
# Import everything that learning needs.
scan.parts()
slts.BBSClassifier(4).fit(np.arange(8.0).reshape(4, 1, 2) - 4, [0, 1, 0, 1])
before = status("VmRSS")
how = {"memory_limit": int(sys.argv[2]), "random_state": 0}
if sys.argv[3] == "slts":
    model = slts.SLTSClassifier(100, gamma=1e-3, n_jobs=1, **how)
else:
    from slts.training import local_fit

    local_fit._ANCHORS = 400
    model = slts.LocalSLTSClassifier(
        n_snippets=20, representations="values", n_phases=1, n_jobs=8, **how
    )
model.fit(scan)
print(status("VmHWM") - before)
"""


def write(path, n_series):
    rng = np.random.default_rng(0)
    labels, lengths = rng.integers(5, size=n_series), rng.integers(8, 16, size=n_series)
    ends = np.cumsum(lengths)
    step = np.arange(ends[-1]) - np.repeat(ends - lengths, lengths)
    angle = 2 * np.pi * step / np.repeat(lengths, lengths) * np.repeat(1 + labels, lengths)
    values = np.sin(angle[:, np.newaxis] + np.arange(6)) + 0.5 * rng.normal(size=(len(step), 6))
    columns = {"id": np.repeat(np.arange(n_series), lengths), "label": np.repeat(labels, lengths)}
    columns |= {f"c{c}": values[:, c] for c in range(6)}
    pq.write_table(pa.table(columns), path, row_group_size=12_000)


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="no /proc to read memory from")
@pytest.mark.parametrize("method", ["slts", "local, eight threads"])
def test_a_fit_keeps_to_its_limit(method, tmp_path):
    write(tmp_path / "train.parquet", 12_000)
    # All products are almost three times the limit: 12,000 x 100 x 6 x 6 numbers.
    assert 2.8 * LIMIT < 12_000 * 100 * 36 * 8
    environment = os.environ | {"OMP_NUM_THREADS": "1", "TMPDIR": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(tmp_path / "train.parquet"), str(LIMIT), method],
        capture_output=True, text=True, env=environment,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert 0.3 * LIMIT < int(done.stdout) < 1.1 * LIMIT
    assert [path.name for path in tmp_path.iterdir()] == ["train.parquet"]


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="no /proc to read memory from")
@pytest.mark.parametrize("method", ["local", "slts, four threads"])
def test_learning_in_memory_keeps_to_its_estimate(method):
    done = subprocess.run(
        [sys.executable, "-c", IN_MEMORY, method], capture_output=True, text=True,
        env=os.environ | {"OMP_NUM_THREADS": "1"},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    used, estimate = map(float, done.stdout.split())
    assert 0.3 * estimate < used < 1.1 * estimate
