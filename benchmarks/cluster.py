"""Learning on a Dask cluster of two single-thread workers against two threads, in one run.

Both read the same Parquet file part by part: once for a sample, and once for the sums over all
series. They take turns, after a fit in which the workers import everything. Every pair of models
must have the same landmarks and objectives.

    python benchmarks/cluster.py --series 200000
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from pathlib import Path

import distributed
from inputs import assert_same_model, write_parquet
from measure import describe_machine, write_json

import slts

# With this limit, more than about 8,000 series are not learned from in memory.
_LIMIT, _IN_PARTS = "125MB", 11_000


def fit(path: Path, limit: str) -> tuple[slts.LocalSLTSClassifier, float]:
    """Return a model and its seconds; a running Dask client does the work."""
    start = time.perf_counter()
    model = slts.LocalSLTSClassifier(memory_limit=limit, n_jobs=2, random_state=0)
    model.fit(slts.scan_series(path, label="label"))
    return model, time.perf_counter() - start


def main() -> None:
    """Print the seconds of both, and their ratio."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--series", type=int, default=20_000)
    parser.add_argument("--repeats", type=int, default=1)
    parser.add_argument("--memory-limit", default=_LIMIT)
    parser.add_argument("--folder", type=Path, help="keep the data here, and use data that is here")
    parser.add_argument("--json", type=Path, help="write the results to this file")
    options = parser.parse_args()
    with (
        tempfile.TemporaryDirectory() as scratch,
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, dashboard_address=":0", memory_limit="4GB"
        ) as cluster,
    ):

        def fit_both(path: Path, limit: str) -> tuple[float, float]:
            one, on_threads = fit(path, limit)
            with distributed.Client(cluster):
                other, on_cluster = fit(path, limit)
            assert_same_model(one, other)
            return on_threads, on_cluster

        data = write_parquet(
            (options.folder or Path(scratch)) / f"{options.series}.parquet", options.series
        )
        first = write_parquet(Path(scratch) / "first.parquet", min(_IN_PARTS, options.series))
        fit_both(first, _LIMIT)
        times = [fit_both(data, options.memory_limit) for _ in range(options.repeats)]
    threads, cluster_seconds = map(min, zip(*times, strict=True))
    result = {
        "machine": describe_machine(),
        "series": options.series,
        "memory limit": options.memory_limit,
        "seconds": {"threads": threads, "cluster": cluster_seconds},
        "speed of the cluster relative to two threads": threads / cluster_seconds,
    }
    print(json.dumps(result, indent=1))
    write_json(options.json, result)


if __name__ == "__main__":
    main()
