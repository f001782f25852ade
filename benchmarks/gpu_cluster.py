"""Learning with GPUs: threads of one process, and Dask workers with one GPU each.

Every worker sees one GPU (CUDA_VISIBLE_DEVICES); with more workers than GPUs, some share one. All
models must have the landmarks, objectives and predictions of the first; only then are times
printed. The series are a Dask bag (13 channels, 20 to 60 steps, 5 classes). They are drawn before
the clock starts, in the process that aligns them.

    python benchmarks/gpu_cluster.py --series 20000 --workers 1 2 --gpus 1
"""

from __future__ import annotations

import argparse
import functools
import json
import logging
import time
from typing import Any

import dask.bag
import distributed
import numpy as np
from inputs import assert_same_model, draw

import slts
from slts.execution import running_client

_PER_PART = 1_000
# With this limit, more than about 8,000 series are not learned from in memory.
_LIMIT, _IN_PARTS = "250MB", 11_000


def draw_parts(seeds: list[int], longest: int) -> list[tuple[np.ndarray, int]]:
    """Draw pairs of series and label."""
    pairs: list[tuple[np.ndarray, int]] = []
    for seed in seeds:
        rng = np.random.default_rng(seed)
        series, labels = draw(rng, _PER_PART, n_channels=13, longest=longest)
        pairs += zip(series, labels.tolist(), strict=True)
    return pairs


def run(
    bag: Any, limit: str, device: str, n_jobs: int
) -> tuple[slts.LocalSLTSClassifier, np.ndarray, dict[str, float]]:
    """Fit and predict; return model, labels and seconds. A running Dask client does the work."""
    if running_client() is None:
        bag = bag.persist(scheduler="synchronous")
    else:
        bag = bag.persist()
        distributed.wait(bag)
    model = slts.LocalSLTSClassifier(
        memory_limit=limit, device=device, n_jobs=n_jobs, random_state=0
    )
    start = time.perf_counter()
    model.fit(slts.scan_series(bag))
    fitted = time.perf_counter()
    labels = model.predict(slts.scan_series(bag.map(lambda pair: pair[0])))
    seconds = {"fit": fitted - start, "predict": time.perf_counter() - fitted}
    return model, labels, {name: round(took, 3) for name, took in seconds.items()}


def workers_with_gpus(n_workers: int, n_gpus: int) -> distributed.SpecCluster:
    """Start worker processes of one thread, each of which sees one GPU."""
    quiet = {"silence_logs": logging.WARNING}
    workers = {
        k: {
            "cls": distributed.Nanny,
            "options": {"nthreads": 1, "env": {"CUDA_VISIBLE_DEVICES": str(k % n_gpus)}, **quiet},
        }
        for k in range(n_workers)
    }
    scheduler = {"cls": distributed.Scheduler, "options": {"dashboard_address": ":0"}}
    return distributed.SpecCluster(workers=workers, scheduler=scheduler, **quiet)


def main() -> None:
    """Compare the models, and print seconds."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--series", type=int, default=20_000)
    parser.add_argument("--memory-limit", default=_LIMIT)
    parser.add_argument("--longest", type=int, default=60)
    parser.add_argument("--threads", type=int, nargs="*", default=[1, 4])
    parser.add_argument("--workers", type=int, nargs="*", default=[1, 2])
    parser.add_argument("--gpus", type=int, default=1)
    parser.add_argument("--cpu", type=int, default=0, help="threads of a fit without a GPU")
    parser.add_argument("--device", default="cuda", help="'cpu' tries the script without a GPU")
    options = parser.parse_args()

    def bag_of(count: int) -> Any:
        parts = -(-count // _PER_PART)
        seeds = dask.bag.from_sequence(range(parts), npartitions=parts)
        return seeds.map_partitions(functools.partial(draw_parts, longest=options.longest))

    runs: list[tuple[slts.LocalSLTSClassifier, np.ndarray]] = []

    def measure(name: str, device: str, n_jobs: int) -> None:
        # The first fit imports modules and compiles kernels.
        run(bag_of(min(_IN_PARTS, options.series)), _LIMIT, device, n_jobs)
        model, labels, seconds = run(bag_of(options.series), options.memory_limit, device, n_jobs)
        runs.append((model, labels))
        assert_same_model(runs[0][0], model)
        np.testing.assert_array_equal(runs[0][1], labels)
        print(json.dumps({name: seconds}), flush=True)

    for n_jobs in options.threads:
        measure(f"no cluster, threads: {n_jobs}", options.device, n_jobs)
    for count in options.workers:
        with workers_with_gpus(count, options.gpus) as cluster, distributed.Client(cluster):
            cluster.wait_for_workers(count)
            measure(f"workers: {count}, GPUs: {options.gpus}", options.device, 1)
    if options.cpu:
        measure(f"CPU, threads: {options.cpu}", "cpu", options.cpu)


if __name__ == "__main__":
    main()
