"""Ctrl-C stops a long computation quickly."""

import signal
import subprocess
import sys
import time

import pytest

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="no SIGINT for one process")

# Each of these takes much longer than 20 s.
LONG = {
    "one thread": "slts.similarity(noise(3000, 4, 300), n_jobs=1)",
    "two threads": "slts.similarity(noise(3000, 4, 300), n_jobs=2)",
    "two threads, traced": "slts.similarity(noise(3000, 4, 300), metric=np.eye(4), n_jobs=2)",
    "one pair": "slts.similarity(noise(1, 32, 100_000))",
    "one pair, traced": "slts.align(*noise(2, 512, 20_000))",
    "snippets, one thread": "snippets(slts.as_series(noise(1, 1, 500_000)), Resources())",
    "snippets, two threads": "snippets(slts.as_series(noise(1, 1, 500_000)), Resources('cpu', 2))",
}
PROGRAM = """
import sys
import numpy as np, slts
from slts.features.feature_map import Resources
from slts.features.snippets import Snippets
def noise(*shape):
    return np.random.default_rng(0).normal(size=shape)
slts.similarity(noise(2, 1, 3))
snippets = Snippets.draw(slts.as_series(noise(2, 1, 30)), np.arange(2), 20_000, 0)
for work in sys.argv[1:]:
    print("ready", flush=True)
    try:
        eval(work)
        print("finished", flush=True)
    except KeyboardInterrupt:
        print("interrupted", flush=True)
print("ready", flush=True)
eval(work)
"""


@pytest.mark.slow
def test_sigint_stops_long_before_the_end():
    """One process does the works in turn; the last one again, without a handler."""
    with subprocess.Popen(
        [sys.executable, "-c", PROGRAM, *LONG.values()],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    ) as process:  # fmt: skip
        try:
            for name in [*LONG, "no handler"]:
                assert process.stdout.readline() == "ready\n"
                time.sleep(0.3)
                assert process.poll() is None
                process.send_signal(signal.SIGINT)
                sent = time.monotonic()
                if name != "no handler":
                    assert process.stdout.readline() == "interrupted\n", name
                else:
                    output, errors = process.communicate(timeout=10)
                assert time.monotonic() - sent < 5, name
        finally:
            process.kill()
    assert output == ""
    assert "KeyboardInterrupt" in errors
    assert process.returncode == -signal.SIGINT
