"""DaskRunner: results and errors in order, lost workers and a lost scheduler are reported."""

import asyncio
import dataclasses
import os
import signal
import subprocess
import sys
import threading
import time

import numpy as np
import pytest
from threadpoolctl import threadpool_info, threadpool_limits

from slts.execution import DaskRunner, dask_client, running_client

distributed = pytest.importorskip("distributed", reason="needs the extra dask")
dask = pytest.importorskip("dask", reason="needs the extra dask")


def cluster_of(**options):
    options |= {"threads_per_worker": 1, "dashboard_address": ":0", "silence_logs": 50}
    return distributed.LocalCluster(**options)


@pytest.fixture
def client():
    """Two workers in this process, which start quickly."""
    with cluster_of(n_workers=2, processes=False) as cluster:
        with distributed.Client(cluster) as connected:
            yield connected
        # A client that a test has closed leaves its scheduler behind, for tests of other files.
        dask.config.config.pop("scheduler", None)


def test_results_come_in_order_with_shared_and_own_arguments(client):
    received = []
    results = DaskRunner(client).map(
        lambda part, shared, own: (part, shared.size, own), range(20), np.zeros(2**21),
        own=lambda _: len(received), progress=lambda *now: received.append(now),
    )  # fmt: skip
    # Eight parts are submitted ahead. A warning of the large argument would be an error here.
    assert list(results) == [(k, 2**21, max(0, k - 7)) for k in range(20)]
    assert received == [(k, 20) for k in range(1, 21)]


@dataclasses.dataclass(frozen=True)
class Part:
    """A part of a Dask collection."""

    payload: object
    elements: object = None

    def holding(self, elements):
        return dataclasses.replace(self, payload=None, elements=elements)


def test_the_payload_of_a_part_is_computed_on_the_workers(client):
    parts = [Part(dask.delayed(lambda k: [k, distributed.get_worker().id])(k)) for k in range(3)]
    results = list(DaskRunner(client).map(lambda part, *_: (part.payload, part.elements), parts))
    assert [(payload, number) for payload, (number, _) in results] == [(None, k) for k in range(3)]


def test_blas_has_one_thread_in_tasks(client):
    def blas_threads(*_):
        return {pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"}

    with threadpool_limits(2, user_api="blas"):
        if blas_threads() != {2}:
            pytest.skip("needs a BLAS whose threads can be limited")
        assert list(DaskRunner(client).map(blas_threads, range(4))) == [{1}] * 4


@pytest.mark.parametrize("error", [ZeroDivisionError, TimeoutError])
def test_an_error_is_raised_and_cancels_the_rest(client, error):
    def task(part, shared, own):
        if part == 0:
            raise error("broken")

    # The traceback, which is held here, refers to all tasks.
    with pytest.raises(error, match="broken") as raised:
        list(DaskRunner(client).map(task, range(8)))
    tasks = client.cluster.scheduler.tasks
    for _ in range(600):
        if len(tasks) <= 1:
            break
        time.sleep(0.1)
    assert [task.state for task in tasks.values()] == ["erred"]
    assert raised.tb


def test_only_a_running_client_outside_of_tasks_runs_tasks(client):
    assert DaskRunner(client).n_workers == 2
    assert running_client() is dask_client() is client
    inside = client.submit(lambda: (dask_client() is None, running_client())).result()
    assert inside == (False, None)
    client.close()
    assert running_client() is dask_client() is None


def test_an_asynchronous_client_is_an_error():
    async def connect():
        async with distributed.Client(asynchronous=True, processes=False, dashboard_address=":0"):
            running_client()

    with pytest.raises(RuntimeError, match="asynchronous=True"):
        asyncio.run(connect())
    dask.config.config.pop("scheduler", None)


def kill_once(part, folder, own):
    """Kill the worker of the first part when it runs for the first time."""
    mark = folder / "killed"
    if part == 0 and not mark.exists():
        mark.touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return part


def kill(*_):
    os.kill(os.getpid(), signal.SIGKILL)


@pytest.mark.slow
def test_parts_of_lost_workers_run_again_but_not_for_ever(tmp_path):
    with cluster_of(n_workers=1) as cluster, distributed.Client(cluster) as client:
        assert list(DaskRunner(client).map(kill_once, range(4), tmp_path)) == [0, 1, 2, 3]
        with pytest.raises(distributed.KilledWorker, match=r"slts_kill-.* died"):
            list(DaskRunner(client).map(kill, [0]))
    dask.config.config.pop("scheduler", None)


CLUSTER = """
import distributed
cluster = distributed.LocalCluster(
    n_workers=1, threads_per_worker=1, processes=False, protocol="tcp://", dashboard_address=":0"
)
print(cluster.scheduler_address, flush=True)
input()
"""


@pytest.mark.slow
def test_a_lost_scheduler_is_reported_at_once():
    """Not after 30 seconds, in which the client tries to connect again."""
    pipes = dict.fromkeys(("stdin", "stdout"), subprocess.PIPE)
    process = subprocess.Popen([sys.executable, "-c", CLUSTER], text=True, **pipes)
    with process, distributed.Client(process.stdout.readline().strip()) as client:
        runner = DaskRunner(client)
        threading.Timer(1.0, process.kill).start()
        begun = time.monotonic()
        with pytest.raises(ConnectionError, match=r"scheduler tcp://.* is lost"):
            list(runner.map(lambda *_: time.sleep(60), range(2)))
        assert time.monotonic() - begun < 15
        for call in (running_client, lambda: runner.n_workers):
            with pytest.raises(ConnectionError, match=r"scheduler tcp://.* is lost"):
                call()
    dask.config.config.pop("scheduler", None)
