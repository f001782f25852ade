"""Alignment benchmark: slts against aeon, dtaidistance, tslearn and tsdistances.

Run ``python benchmarks/alignment.py``. It asserts that all libraries find paths of the same cost on
the same pairs, then measures in the same run

- score     all pairs, no path: `slts.similarity` and the peers' pairwise distances
- products  all pairs with paths: `slts.aligned_products` (which also forms T) and the peers' paths
- one score, one path      one pair: `slts.align` and the peers' calls for one pair

in microseconds per pair. The ratio compares slts with the fastest peer. Slow peers get fewer pairs.
If lengths differ, times are compared per grid cell. No peer computes paths on several cores. The
column "peak" is the share of the arithmetic limit: multiply-adds of the dot products (cells x
channels) per second, divided by the rate of a matrix product on as many cores.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

from cases import (
    Problem,
    assert_agreement,
    for_products,
    one_pair_contenders,
    peer_contenders,
    random_problem,
    sized_problem,
    slts_contenders,
)
from measure import Contender, best_per_cell, describe_machine, load, usable_cores, write_json
from peak import peak_rate
from peers import Peer, importable_peers, peer_versions

import slts
from slts.alignment.cpu import available_targets

CHANNELS = (1, 3, 13, 64)
LENGTHS = (20, 60, 200, 1000)
OURS = ("slts", "slts f32")


@dataclass(slots=True)
class Row:
    """One line of the table, with times in microseconds per pair."""

    case: str
    what: str
    channels: int
    lengths: str
    cores: int
    pairs: int
    cells_per_pair: float
    objective: str = "cost"
    isa: str | None = None
    microseconds: dict[str, float] = field(default_factory=dict)
    fastest_peer: str | None = None
    ratio: float | None = None
    ratio_float32: float | None = None
    share_of_peak: float | None = None

    def fill(self, seconds_per_cell: dict[str, float]) -> None:
        """Store the times and compare them."""
        scale = 1e6 * self.cells_per_pair
        self.microseconds = {name: scale * s for name, s in seconds_per_cell.items()}
        peers = {name: us for name, us in self.microseconds.items() if name not in OURS}
        if peers:
            self.fastest_peer = min(peers, key=lambda name: peers[name])
            best = peers[self.fastest_peer]
            self.ratio = best / self.microseconds["slts"]
            if "slts f32" in self.microseconds:
                self.ratio_float32 = best / self.microseconds["slts f32"]

    def add_share(self, peak: float) -> None:
        """Compute the share of the float64 limit that slts reaches."""
        rate = self.cells_per_pair * self.channels / (self.microseconds["slts"] * 1e-6)
        self.share_of_peak = rate / (peak * self.cores)


@dataclass(frozen=True, slots=True)
class Requirement:
    """A minimum for a ratio."""

    name: str
    value: float
    least: float

    @property
    def met(self) -> bool:
        """Whether the ratio reaches the minimum."""
        return self.value >= self.least


class Benchmark:
    """Runs the cases and stores their rows."""

    def __init__(self, peers: Sequence[type[Peer]], *, quick: bool, cores: Sequence[str]) -> None:
        self.peers, self.quick = peers, quick
        self.rows: list[Row] = []
        self.requirements: list[Requirement] = []
        self.seconds = 0.1 if quick else 0.25
        self.repeats = 3 if quick else 4
        self.n_jobs = [1] if "one" in cores else []
        if "all" in cores and usable_cores() > 1:
            self.n_jobs.append(-1)

    def headline(self) -> None:
        """Lengths from 20 to 60, d = 13; also for affinity, AVX2 and two cores."""
        problem = random_problem(160, 120, 13, 20, 60)
        assert_agreement(problem, self.peers)
        needs = {"score": (10.0, 5.0), "products": (8.0, 4.0)}
        has_avx2 = "avx2" in (target.name for target in available_targets())
        for what, (best, avx2) in needs.items():
            for n_jobs in self.n_jobs:
                row = self._all_pairs("headline", problem, what, n_jobs)
                if n_jobs != 1:
                    continue
                title = f"{what}, d=13, lengths 20-60, one core"
                self._require(title, row.ratio, best)
                self._require(f"{title}, float32", row.ratio_float32, best)
                self._all_pairs("headline", problem, what, 1, objective="affinity")
                if has_avx2:
                    row = self._all_pairs("headline", problem, what, 1, isa="avx2")
                    self._require(f"{what}, the same with SLTS_ISA=avx2", row.ratio, avx2)
            if -1 in self.n_jobs:
                # Large enough to make the start of threads and the layouts negligible.
                self._two_cores(random_problem(480, 360, 13, 20, 60), what)

    def univariate(self) -> None:
        """One channel, length 1000, 60 x 60 pairs."""
        problem = random_problem(60, 60, 1, 1000, 1000)
        assert_agreement(problem, self.peers)
        for n_jobs in self.n_jobs:
            row = self._all_pairs("60 x 60", problem, "score", n_jobs)
            if n_jobs == 1:
                self._require("score, d=1, length 1000, 60 x 60 pairs, one core", row.ratio, 5.0)

    def grid(self) -> None:
        """All numbers of channels and lengths."""
        for d in CHANNELS:
            for length in LENGTHS:
                problem = sized_problem(d, length, self.seconds, usable_cores())
                assert_agreement(problem, self.peers)
                for what in ("score", "products"):
                    for n_jobs in self.n_jobs:
                        self._all_pairs("grid", problem, what, n_jobs)

    def one_pair(self) -> None:
        """One pair of each size."""
        for d in CHANNELS:
            for length in LENGTHS:
                problem = random_problem(1, 1, d, length, length)
                assert_agreement(problem, self.peers)
                for what in ("one score", "one path"):
                    row = self._new_row("one pair", problem, what, 1)
                    contenders = one_pair_contenders(problem, self.peers, what)
                    self._measure(row, contenders, least_s=0.005 if self.quick else 0.02)
                    # aeon's score checks no values, which is most of the time of a short pair.
                    least = 1.0 if what == "one path" else 1.0 / 1.3
                    self._require(f"{what}, d={d}, length {length}", row.ratio, least)

    def _all_pairs(
        self,
        case: str,
        problem: Problem,
        what: str,
        n_jobs: int,
        *,
        objective: str = "cost",
        isa: str | None = None,
    ) -> Row:
        part = for_products(problem) if what == "products" else problem
        row = self._new_row(case, part, what, n_jobs)
        row.objective, row.isa = objective, isa
        contenders = slts_contenders(part, what, n_jobs, objective=objective, isa=isa)
        contenders |= peer_contenders(part, self.peers, what, n_jobs, self.seconds)
        self._measure(row, contenders)
        return row

    def _two_cores(self, problem: Problem, what: str) -> None:
        calls = {
            str(n_jobs): slts_contenders(problem, what, n_jobs, objective="cost")["slts"]
            for n_jobs in (1, 2)
        }
        best = best_per_cell(calls, repeats=3 * self.repeats, least_s=self.seconds)
        self._require(f"{what}, d=13, lengths 20-60, two cores to one", best["1"] / best["2"], 1.8)

    def _new_row(self, case: str, problem: Problem, what: str, n_jobs: int) -> Row:
        sizes = {len(x) for x in (*problem.X, *problem.Y)}
        lengths = str(*sizes) if len(sizes) == 1 else f"{min(sizes)}-{max(sizes)}"
        cores = 1 if n_jobs == 1 else usable_cores()
        cells = problem.cells / problem.pairs
        return Row(case, what, problem.n_channels, lengths, cores, problem.pairs, cells)

    def _measure(self, row: Row, contenders: dict[str, Contender], least_s: float = 0.05) -> None:
        repeats = 2 * self.repeats if row.case == "headline" else self.repeats
        row.fill(best_per_cell(contenders, repeats=repeats, least_s=least_s))
        self.rows.append(row)
        if sys.stderr.isatty():
            sys.stderr.write(f"\r{len(self.rows)} rows measured ")

    def _require(self, name: str, value: float | None, least: float) -> None:
        if value is not None:
            self.requirements.append(Requirement(name, value, least))


def table(rows: Sequence[Row], peers: Sequence[type[Peer]]) -> str:
    """Format rows as a table in plain text."""
    names = [*OURS, *(peer.name for peer in peers)]
    head = ("case", "what", "d", "lengths", "cores", "pairs")
    lines = [[*head, *names, "fastest", "ratio", "f32", "peak"]]
    for row in rows:
        marks = (row.isa, row.objective if row.objective != "cost" else None)
        case = ", ".join([row.case, *(mark for mark in marks if mark)])
        times = [_number(row.microseconds.get(name)) for name in names]
        share = "-" if row.share_of_peak is None else f"{row.share_of_peak:.1%}"
        size = (str(row.channels), row.lengths, str(row.cores), str(row.pairs))
        ratios = (_number(row.ratio), _number(row.ratio_float32), share)
        lines.append([case, row.what, *size, *times, row.fastest_peer or "-", *ratios])
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    return "\n".join(
        "  ".join(
            cell.ljust(width) if k < 2 else cell.rjust(width)
            for k, (cell, width) in enumerate(zip(line, widths, strict=True))
        )
        for line in lines
    )


def _number(value: float | None) -> str:
    if value is None:
        return "-"
    return f"{value:.2f}" if value < 100 else f"{value:.0f}"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the benchmark. Returns 1 if `--check` is given and a ratio is too small."""
    parser = argparse.ArgumentParser(description="slts against other DTW libraries")
    parser.add_argument("--quick", action="store_true", help="headline and single pairs only")
    parser.add_argument("--check", action="store_true", help="exit 1 if a ratio is too small")
    parser.add_argument("--json", type=Path, metavar="PATH", help="write the rows to this file")
    parser.add_argument("--cores", nargs="+", choices=("one", "all"), default=["one", "all"])
    options = parser.parse_args(arguments)

    start, load_before, machine = time.monotonic(), load(), describe_machine()
    peers, notes = importable_peers()
    peaks = [{name: peak_rate(name) for name in ("float64", "float32")}]
    benchmark = Benchmark(peers, quick=options.quick, cores=options.cores)
    benchmark.headline()
    benchmark.one_pair()
    if not options.quick:
        benchmark.univariate()
        benchmark.grid()
    peaks.append({name: peak_rate(name) for name in ("float64", "float32")})
    peak = {name: max(rates[name] for rates in peaks) for name in peaks[0]}
    for row in benchmark.rows:
        row.add_share(peak["float64"])
    if sys.stderr.isatty():
        sys.stderr.write("\n")

    versions = {"slts": slts.__version__, **peer_versions(peers)}
    rates = " and ".join(f"{rate / 1e9:.1f} ({name})" for name, rate in peak.items())
    print(f"{machine['cpu']}, {machine['cores']} cores, Python {machine['python']}")
    print(", ".join(f"{name} {number}" for name, number in versions.items()))
    print(f"one core: {rates} billion multiply-adds per second")
    print(*notes, "Times in microseconds per pair:", sep="\n")
    print(table(benchmark.rows, peers))
    for need in benchmark.requirements:
        verdict = "PASS" if need.met else "FAIL"
        print(f"{verdict}  {need.name}: {need.value:.2f} (at least {need.least:g})")
    print(f"load average {load_before} before, {load()} after; {time.monotonic() - start:.0f} s")

    if options.json:
        report = {
            "command": "python benchmarks/alignment.py"
            + "".join(f" --{name}" for name in ("quick", "check") if getattr(options, name))
            + f" --cores {' '.join(options.cores)}",
            "machine": machine,
            "versions": versions,
            "notes": notes,
            "load_average": [load_before, load()],
            "peak_multiply_adds_per_second": peak,
            "rows": [asdict(row) for row in benchmark.rows],
            "requirements": [asdict(need) | {"met": need.met} for need in benchmark.requirements],
        }
        write_json(options.json, report)
    return int(options.check and not all(need.met for need in benchmark.requirements))


if __name__ == "__main__":
    sys.exit(main())
