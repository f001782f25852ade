"""Ten times as many predictions take the same memory."""

import sys

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from slts.cli import main
from tests.data import run_python

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="reads the peak from /proc")

# The peak of this process alone: that of getrusage begins with its parent's.
PROGRAM = """
import sys
from slts.cli import main
from slts.tables import assembly
# Both files are read in batches.
assembly.SMALL_BYTES = 0
code = main(sys.argv[1:])
peak = next(line for line in open("/proc/self/status") if line.startswith("VmHWM"))
print(peak.split()[1])
sys.exit(code)
"""


def write_file(path, n_series):
    rng = np.random.default_rng(0)
    n_steps = 50
    writer = None
    for begin in range(0, n_series, 1000):
        values = rng.normal(size=(3, 1000 * n_steps)) + np.array([[2.0], [0.0], [1.0]])
        names = [f"series number {i}" for i in range(begin, begin + 1000)]
        columns = {"id": np.repeat(names, n_steps)}
        columns |= {f"c{c + 1}": values[c] for c in range(3)}
        table = pa.table(columns)
        writer = writer or pq.ParquetWriter(path, table.schema)
        writer.write_table(table)
    writer.close()


@pytest.mark.slow
def test_memory_does_not_grow_with_the_number_of_series(problem, tmp_path):
    """Readers of other formats are tested in `tests/tables`."""
    peaks, model = [], tmp_path / "m.slts"
    fit = ["fit", problem[".csv"][0], "--model", model, "--method", "bbs", "--quiet"]
    assert main([*map(str, fit), "--param", "n_landmarks=9"]) == 0
    for n_series in (5_000, 30_000):
        data = tmp_path / f"{n_series}.parquet"
        write_file(data, n_series)
        out = tmp_path / f"{n_series}.csv"
        arguments = ["predict", model, data, "--out", out, "--batch-size", "256", "--quiet"]
        peaks.append(int(run_python(PROGRAM, *arguments).split()[-1]) / 1000)
        assert len(out.read_text().splitlines()) == n_series + 1
    # The values of the larger file alone would take 36 MB, and more on their way through Arrow.
    assert peaks[1] < peaks[0] + 25
