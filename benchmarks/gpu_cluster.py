"""Learning with GPUs: threads of one process, and Dask workers that have a GPU each.

Every worker sees one GPU (CUDA_VISIBLE_DEVICES); with more workers than GPUs some share one. A
model must have the landmarks, objectives and predictions of the first before its times are printed.
Series are a Dask bag (13 channels, 20 to 60 steps, 5 classes), drawn before the clock starts and
held by whoever aligns them.

    python benchmarks/gpu_cluster.py --series 20000 --workers 1 2 --gpus 1
"""

from __future__ import annotations

import argparse
import functools
import json
import logging
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

import dask.bag
import distributed
import numpy as np

import slts
from slts.execution import DaskMapper, ThreadMapper
from slts.extras import running_client

_CHANNELS, _CLASSES = 13, 5
_PER_PART = 1_000


def draw(numbers: list[int], longest: int) -> list[tuple[np.ndarray, int]]:
    """Noise around curves of different frequency, with their class."""
    series = []
    for seed in numbers:
        rng = np.random.default_rng(seed)
        for _ in range(_PER_PART):
            label, n = int(rng.integers(_CLASSES)), int(rng.integers(longest // 3, longest + 1))
            angle = np.linspace(0, 2 * np.pi, n) * (1 + label)
            curves = np.sin(angle + np.arange(_CHANNELS)[:, np.newaxis])
            series.append((curves + rng.normal(size=curves.shape), label))
    return series


@dataclass
class Run:
    """A way to learn; seconds of the whole fit, of its two alignment passes, and of predict."""

    name: str
    model: slts.SLTSClassifier
    labels: np.ndarray
    seconds: dict[str, float] = field(default_factory=dict)

    def assert_same(self, other: Run) -> None:
        """Same landmarks, objectives within 1e-6, same predictions."""
        one, two = self.model, other.model
        np.testing.assert_array_equal(one.landmark_indices_, two.landmark_indices_)
        for a, b in zip(one.reports_, two.reports_, strict=True):
            np.testing.assert_allclose(a.objective, b.objective, rtol=1e-6, atol=1e-6)
        np.testing.assert_array_equal(self.labels, other.labels)


@contextmanager
def passes(seconds: list[float]) -> Iterator[None]:
    """Note the time of every pass whose results are held: those that align."""
    originals = {mapper: mapper.hold for mapper in (ThreadMapper, DaskMapper)}

    def timed(hold):
        @functools.wraps(hold)
        def call(*args, **kwargs):
            start = time.perf_counter()
            held = hold(*args, **kwargs)
            seconds.append(time.perf_counter() - start)
            return held

        return call

    for mapper, hold in originals.items():
        mapper.hold = timed(hold)
    try:
        yield
    finally:
        for mapper, hold in originals.items():
            mapper.hold = hold


def run(name: str, bag, landmarks: int, device: str, n_jobs: int) -> Run:
    """Fit and predict; the running client does the work, if there is one."""
    if running_client() is None:
        bag = bag.persist(scheduler="synchronous")
    else:
        bag = bag.persist()
        distributed.wait(bag)
    model = slts.SLTSClassifier(
        n_landmarks=landmarks, gamma=1e-3, lam=0.1, calibration_cv=None, memory_limit="16GB",
        device=device, n_jobs=n_jobs, random_state=0,
    )  # fmt: skip
    align: list[float] = []
    start = time.perf_counter()
    with passes(align):
        model.fit(bag)
    fitted = time.perf_counter()
    labels = model.predict(bag.map(lambda pair: pair[0]))
    seconds = {"fit": fitted - start, "predict": time.perf_counter() - fitted}
    for number, took in enumerate(align, 1):
        seconds[f"alignment pass {number}"] = took
    return Run(name, model, labels, {key: round(took, 3) for key, took in seconds.items()})


def workers_with_gpus(n_workers: int, n_gpus: int) -> distributed.SpecCluster:
    """Worker processes of one thread, each of which sees one GPU."""
    workers = {
        k: {
            "cls": distributed.Nanny,
            "options": {
                "nthreads": 1,
                "env": {"CUDA_VISIBLE_DEVICES": str(k % n_gpus)},
                "silence_logs": logging.WARNING,
            },
        }
        for k in range(n_workers)
    }
    scheduler = {"cls": distributed.Scheduler, "options": {"dashboard_address": ":0"}}
    return distributed.SpecCluster(
        workers=workers, scheduler=scheduler, silence_logs=logging.WARNING
    )


def main() -> None:
    """Compare, and print seconds."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--series", type=int, default=20_000)
    parser.add_argument("--landmarks", type=int, default=100)
    parser.add_argument("--longest", type=int, default=60)
    parser.add_argument("--threads", type=int, nargs="*", default=[1, 4])
    parser.add_argument("--workers", type=int, nargs="*", default=[1, 2])
    parser.add_argument("--gpus", type=int, default=1)
    parser.add_argument("--cpu", type=int, default=0, help="threads of a fit without a GPU")
    options = parser.parse_args()

    def bag_of(count: int):
        parts = -(-count // _PER_PART)
        numbers = dask.bag.from_sequence(range(parts), npartitions=parts)
        return numbers.map_partitions(functools.partial(draw, longest=options.longest))

    small, large = bag_of(2 * _PER_PART), bag_of(options.series)
    runs: list[Run] = []

    def measure(name: str, device: str, n_jobs: int) -> None:
        # A fit of few series goes first: imports, kernels.
        run(name, small, options.landmarks, device, n_jobs)
        runs.append(run(name, large, options.landmarks, device, n_jobs))
        runs[0].assert_same(runs[-1])
        print(json.dumps({name: runs[-1].seconds}), flush=True)

    for n_jobs in options.threads:
        measure(f"no cluster, threads: {n_jobs}", "cuda", n_jobs)
    for count in options.workers:
        with workers_with_gpus(count, options.gpus) as cluster, distributed.Client(cluster):
            cluster.wait_for_workers(count)
            measure(f"workers: {count}, GPUs: {options.gpus}", "cuda", 1)
    if options.cpu:
        measure(f"CPU, threads: {options.cpu}", "cpu", options.cpu)


if __name__ == "__main__":
    main()
