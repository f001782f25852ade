"""The Dask client of this process, and tasks that run on the workers of its cluster."""

from __future__ import annotations

import dataclasses
import sys
import uuid
import warnings
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from typing import Any

from slts.execution.progress import Progress, silent
from slts.execution.threads import Result, Task, one_blas_thread

# Tasks submitted ahead of the next result, for every thread of the cluster.
_AHEAD = 4


def dask_client() -> Any | None:
    """Return the running Dask client of this process, or None. Dask is not imported for this."""
    try:
        # Not `dask.base.get_scheduler`: it fails if the configuration still names a closed client.
        client: Any = sys.modules["distributed"].default_client()
    except (KeyError, ValueError, AttributeError):
        # It is not imported, or another thread imports it: there is no client yet.
        return None
    if client.status == "connecting":
        raise _lost_connection(client.scheduler.address)
    return client if client.status == "running" else None


def running_client() -> Any | None:
    """Return the Dask client that can run tasks, or None.

    It is None inside a Dask task: a task that waits for other tasks could block all workers.
    """
    client = dask_client()
    if client is None:
        return None
    with suppress(ValueError):
        sys.modules["distributed"].get_worker()
        return None
    if client.asynchronous:
        raise RuntimeError(
            "the Dask client is asynchronous, and slts waits for its results: create the client "
            "without asynchronous=True"
        )
    return client


class DaskRunner:
    """Runs tasks on the workers of a cluster.

    If a worker is lost, the scheduler runs its tasks again. Dask raises `KilledWorker` if that does
    not help: the workers may need more memory.

    Parameters
    ----------
    client
        A `distributed.Client`.
    """

    def __init__(self, client: Any) -> None:
        self._client, self._address = client, client.scheduler.address
        self._run, self._count = uuid.uuid4().hex[:8], 0

    @property
    def n_workers(self) -> int:
        """Number of threads of all workers."""
        if self._client.status != "running":
            raise _lost_connection(self._address)
        return max(1, int(sum(self._client.nthreads().values())))

    def map(
        self,
        task: Task[Result],
        parts: Sequence[Any],
        shared: Any = None,
        own: Callable[[int], Any] | None = None,
        *,
        progress: Progress = silent,
    ) -> Iterator[Result]:
        """See `ThreadRunner.map`."""
        ahead, argument = _AHEAD * self.n_workers, self._submit_shared(shared)
        futures = deque[Any]()
        try:
            for number in range(len(parts)):
                while len(futures) < min(ahead, len(parts) - number):
                    k = number + len(futures)
                    mine = None if own is None else own(k)
                    futures.append(self._submit(task, parts[k], argument, mine))
                yield futures.popleft().result()
                progress(number + 1, len(parts))
        except BaseException as error:
            if self._client.status == "running":
                self._client.cancel(list(futures))
            elif isinstance(error, Exception):
                # A client that loses its scheduler cancels its tasks.
                raise _lost_connection(self._address) from error
            raise

    def _submit_shared(self, shared: Any) -> Any:
        """Submit the shared argument as a task: scattered data would be lost with a worker."""
        if shared is None:
            return None
        with warnings.catch_warnings():
            # It may be large, but it is sent once.
            warnings.filterwarnings("ignore", "Sending large graph")
            return self._client.submit(_identity, shared, key=self._key("shared"), pure=False)

    def _submit(self, task: Task[Any], part: Any, shared: Any, own: Any) -> Any:
        key = self._key(getattr(task, "__name__", type(task).__name__))
        payload = getattr(part, "payload", None)
        if payload is not None:
            # The collection is computed on the workers.
            part, payload = dataclasses.replace(part, payload=None), self._client.compute(payload)
        return self._client.submit(_call, task, part, payload, shared, own, key=key, pure=False)

    def _key(self, name: str) -> str:
        """Return a unique key. The dashboard groups keys by the name before the number."""
        self._count += 1
        return f"slts_{name.strip('_')}-{self._run}{self._count:08d}"


def _lost_connection(address: str) -> ConnectionError:
    return ConnectionError(
        f"The connection to the Dask scheduler {address} is lost. Connect to a running cluster and "
        "start again, or close the client to use the threads of this machine."
    )


def _identity(value: Any) -> Any:
    return value


def _call(task: Task[Result], part: Any, payload: Any, shared: Any, own: Any) -> Result:
    """Run a task on a worker, with one thread of BLAS."""
    with one_blas_thread():
        return task(part if payload is None else part.holding(payload), shared, own)
