"""Run random cases for a while, each with its own seed; report what is not a clear error.

    python -m tools.fuzz --seconds 300        all targets in turn
    python -m tools.fuzz tables 1234          one case again, with its traceback

Cases run in another process, which is started again after a crash or a hang.
"""

import argparse
import faulthandler
import os
import queue
import resource
import secrets
import signal
import subprocess
import sys
import tempfile
import threading
import time
import traceback
import warnings
from pathlib import Path

import numpy as np

MOST_SECONDS, MOST_BYTES = 120.0, 8 * 2**30


def run_case(target, seed):
    """Run a case; raise what is a finding."""
    from tools.fuzz.cases import TARGETS, allowed

    rng = np.random.default_rng(seed)
    with (
        tempfile.TemporaryDirectory(prefix="slts-fuzz-") as folder,
        warnings.catch_warnings(),
        np.errstate(all="ignore"),
        allowed(),
    ):
        warnings.simplefilter("ignore")
        TARGETS[target](rng, Path(folder))


def work(targets, first):
    """Run cases without end; print each before it runs, and what it finds."""
    from tools.fuzz.cases import SOURCES

    faulthandler.enable()
    resource.setrlimit(resource.RLIMIT_AS, (MOST_BYTES, MOST_BYTES))
    # What a case prints must not mix with the lines for the parent process.
    out = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    seed = first
    while True:
        for target in targets:
            print("case", target, seed, file=out)
            try:
                run_case(target, seed)
            except BaseException as error:
                frames = [
                    f for f in traceback.extract_tb(error.__traceback__) if f.name != "require"
                ]
                ours = [f for f in frames if Path(f.filename).is_relative_to(SOURCES[0])] or frames
                text = " ".join(f"{type(error).__name__}: {error}".split())
                print(
                    f"found {Path(ours[-1].filename).name}:{ours[-1].lineno} {text[:600]}", file=out
                )
            seed += 1


def fuzz(targets, seconds, first):
    """Run cases until the time is over; return the findings by their place."""
    found, ends, seed, count = {}, time.monotonic() + seconds, first, 0
    while time.monotonic() < ends:
        command = [sys.executable, "-m", "tools.fuzz", "--work", *targets, "--first", str(seed)]
        with (
            tempfile.TemporaryFile("w+") as errors,
            subprocess.Popen(command, stdout=subprocess.PIPE, stderr=errors, text=True) as process,
        ):
            lines, case = queue.Queue(), None
            reader = threading.Thread(target=_read, args=(process, lines))
            reader.start()
            while time.monotonic() < ends:
                try:
                    line = lines.get(timeout=MOST_SECONDS)
                except queue.Empty:
                    # The worker writes where it is.
                    process.send_signal(signal.SIGABRT)
                    process.wait()
                    note(found, "hang", case, _last_lines(errors))
                    break
                if line is None:
                    note(found, f"exit code {process.wait()}", case, _last_lines(errors))
                    break
                word, _, rest = line.rstrip("\n").partition(" ")
                if word == "case":
                    target, number = rest.split()
                    case, seed, count = (target, int(number)), int(number) + 1, count + 1
                else:
                    place, _, text = rest.partition(" ")
                    note(found, place, case, text)
            process.kill()
            reader.join()
    print(f"{count} cases, {len(found)} findings")
    return found


def _last_lines(errors):
    errors.seek(0)
    return "".join(errors.readlines()[-25:])


def _read(process, lines):
    for line in process.stdout:
        lines.put(line)
    lines.put(None)


def note(found, place, case, text):
    """Print the first finding of each place with the command that repeats it."""
    key = (place, case and case[0])
    if key not in found:
        found[key] = text
        name = " ".join(map(str, case or ()))
        print(f"{place}: {text}\n    python -m tools.fuzz {name}", flush=True)


def main():
    parser = argparse.ArgumentParser(prog="python -m tools.fuzz", description=__doc__)
    parser.add_argument("target", nargs="*", help="names of targets, or one name and a seed")
    parser.add_argument("--seconds", type=float, default=300.0)
    parser.add_argument("--first", type=int, help="first seed; drawn at random if not given")
    parser.add_argument("--work", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if len(options.target) == 2 and options.target[1].isdigit():
        run_case(options.target[0], int(options.target[1]))
        return 0
    targets = options.target or ["arrays", "alignments", "models", "tables", "commands"]
    if options.work:
        work(targets, options.first)
    first = secrets.randbelow(2**32) if options.first is None else options.first
    return int(bool(fuzz(targets, options.seconds, first)))


if __name__ == "__main__":
    sys.exit(main())
