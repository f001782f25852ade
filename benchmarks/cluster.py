"""Learning on a Dask cluster of two single-thread workers against two threads, in one run.

Both read the same Parquet file part by part. The models are compared before anything is timed: same
landmarks, same objectives. A fit of a small file goes before, so that workers have imported
everything; the two then take turns.

    python benchmarks/cluster.py --series 200000
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from pathlib import Path

import distributed
import numpy as np
from large import write_file
from measure import describe_machine

import slts


def fitted(path: Path) -> tuple[slts.SLTSClassifier, float]:
    """A model, and the seconds it took; the running client does the work, if there is one."""
    start = time.perf_counter()
    model = slts.SLTSClassifier(gamma=1e-3, lam=0.1, n_jobs=2, random_state=0).fit(path)
    return model, time.perf_counter() - start


def assert_same(one: slts.SLTSClassifier, other: slts.SLTSClassifier) -> None:
    """Same landmarks, objectives within 1e-6."""
    np.testing.assert_array_equal(one.landmark_indices_, other.landmark_indices_)
    for a, b in zip(one.reports_, other.reports_, strict=True):
        np.testing.assert_allclose(a.objective, b.objective, rtol=1e-6, atol=1e-6)


def main() -> None:
    """Print the seconds of both, and their ratio."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--series", type=int, default=20_000)
    parser.add_argument("--repeats", type=int, default=1)
    parser.add_argument("--folder", type=Path, help="keep the file there, or take it from there")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    with (
        tempfile.TemporaryDirectory() as scratch,
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, dashboard_address=":0", memory_limit="4GB"
        ) as cluster,
    ):
        folder = options.folder or Path(scratch)
        data, small = folder / f"{options.series}.parquet", Path(scratch) / "small.parquet"
        if not data.exists():
            write_file(data, options.series)
        write_file(small, 2_000)

        def on_cluster(path: Path) -> tuple[slts.SLTSClassifier, float]:
            with distributed.Client(cluster):
                return fitted(path)

        assert_same(fitted(small)[0], on_cluster(small)[0])
        times: dict[str, list[float]] = {"threads": [], "cluster": []}
        for _ in range(options.repeats):
            (one, threads), (other, workers) = fitted(data), on_cluster(data)
            assert_same(one, other)
            times["threads"].append(threads)
            times["cluster"].append(workers)
    best = {name: min(seconds) for name, seconds in times.items()}
    result = {
        "machine": describe_machine(),
        "series": options.series,
        "seconds": best,
        "speed of the cluster in units of two threads": best["threads"] / best["cluster"],
    }
    print(json.dumps(result, indent=1))
    if options.json:
        options.json.parent.mkdir(parents=True, exist_ok=True)
        options.json.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
