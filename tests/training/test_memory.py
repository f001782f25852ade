"""Learning keeps to its memory limit."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import slts
from tests.data import waves

PROGRAM = """
import sys
import numpy as np
import slts

def status(name):
    with open("/proc/self/status") as lines:
        return next(int(line.split()[1]) * 1000 for line in lines if line.startswith(name))

path, limit, method, stored = sys.argv[1:]
how = {"memory_limit": int(limit), "random_state": 0, "n_jobs": 2}
model = slts.SLTSClassifier(100, gamma=1e-3, **how)
if method == "local":
    model = slts.LocalSLTSClassifier(**how)
data = (slts.scan_series(path),)
if stored == "arrays":
    data = slts.tables.read_series(path)
    data = data.series, data.labels
# Import everything that learning needs.
small = np.random.default_rng(0).normal(size=(40, 3, 9))
type(model)(calibration_cv=None).fit(small, np.arange(40) % 2) if method == "slts" else type(
    model)(n_snippets=5).fit(small, np.arange(40) % 2)
before = status("VmRSS")
model.fit(*data)
print(status("VmHWM") - before)
"""


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="no /proc to read memory from")
@pytest.mark.parametrize("stored", ["scan", "arrays"])
@pytest.mark.parametrize(("method", "limit"), [("slts", 120_000_000), ("local", 200_000_000)])
def test_a_fit_keeps_to_its_limit(method, limit, stored, tmp_path):
    """All products or features are more than twice the limit."""
    series, codes = waves(12_000, n_classes=5, channels=6)
    batch = slts.as_series(series)
    np.savez(tmp_path / "train.npz", values=batch.values, offsets=batch.offsets, y=codes)
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, tmp_path / "train.npz", str(limit), method, stored],
        capture_output=True, text=True, env=os.environ | {"OMP_NUM_THREADS": "1"},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert 0.3 * limit < int(done.stdout) < 1.1 * limit
