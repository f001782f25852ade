"""Memory does not grow with the number of pairs beyond the data and the result."""

import sys

import pytest

from tests.data import run_python

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="reads the peak from /proc")

MB = 2**20
SERIES, LANDMARKS, CHANNELS, STEPS = 200, 2000, 16, 12
# The landmarks are stored four times: as given, normalised, as padded rows and in packs.
DATA = 4 * LANDMARKS * CHANNELS * STEPS * 8
PROGRAM = """
import numpy as np
from slts import as_series
from slts.alignment import Aligner, AlignmentSettings

def peak():
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) for line in status if line.startswith("VmHWM")) * 1024

def noise(n):
    return how.prepare(as_series(np.random.default_rng(n).normal(size=(n, {channels}, {steps}))))

how = AlignmentSettings()
x = noise({series})
work = lambda y: {work}
small, large = noise(200), noise({landmarks})
work(small)
before = peak()
out = work(large)
print(peak() - before, out.nbytes)
"""


def growth(work):
    """Growth of the peak in bytes with ten times the landmarks, and the size of the result."""
    sizes = {"series": SERIES, "landmarks": LANDMARKS, "channels": CHANNELS, "steps": STEPS}
    code = PROGRAM.format(work=work, **sizes)
    return map(int, run_python(code).split())


@pytest.mark.slow
@pytest.mark.parametrize("work", [
    "Aligner(y, how, n_jobs=2).grouped(x, np.ones((10, len(y))))",
    "Aligner(y, how, n_jobs=2).projected(x, np.eye(16)[None])",
    "Aligner(y, how, n_jobs=2).similarities(x)",
], ids=["grouped", "projected", "scores"])  # fmt: skip
def test_fused_reductions_never_hold_the_products_of_all_pairs(work):
    grown, result = growth(work)
    all_products = SERIES * LANDMARKS * CHANNELS**2 * 8
    assert grown < result + DATA + 32 * MB < all_products / 4
