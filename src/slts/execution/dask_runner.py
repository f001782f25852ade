"""The Dask client of this process, and tasks that run on the workers of its cluster."""

from __future__ import annotations

import dataclasses
import sys
import uuid
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from queue import Empty, SimpleQueue
from typing import Any

from slts.execution.memory import ArrayBlock
from slts.execution.progress import Progress, silent
from slts.execution.task_runner import Result, Start, Task, TaskRunner
from slts.execution.threads import one_blas_thread

# Tasks submitted ahead of the next result, for every thread of the cluster.
_AHEAD = 4
# Seconds between checks of the cluster while no result arrives, and for an answer of the scheduler.
_CHECK_EVERY, _PATIENCE = 3.0, 60.0
# Losses of workers without a result in between, for each worker at the start.
_LOSSES_PER_WORKER = 5


def dask_client() -> Any | None:
    """Give the running Dask client of this process, or None. Dask is not imported for this."""
    # Not `dask.base.get_scheduler`: it fails if the configuration still names a closed client.
    distributed: Any = sys.modules.get("distributed")
    try:
        client = None if distributed is None else distributed.default_client()
    except ValueError:
        return None
    if client is not None and client.status == "connecting":
        raise ConnectionError(
            f"The connection to the Dask scheduler {client.scheduler.address} is lost. Connect to "
            "a running cluster, or close the client to use the threads of this machine."
        )
    return client if client is not None and client.status == "running" else None


def running_client() -> Any | None:
    """Give the Dask client that can run tasks, or None.

    It is None inside a Dask task: a task that waits for other tasks could block all workers.
    """
    client = dask_client()
    if client is None:
        return None
    try:
        sys.modules["distributed"].get_worker()
    except ValueError:
        if client.asynchronous:
            raise RuntimeError(
                "the Dask client is asynchronous, and slts waits for its results: create the "
                "client without asynchronous=True"
            ) from None
        return client
    return None


class DaskRunner(TaskRunner):
    """Runs tasks on the workers of a cluster.

    Kept blocks stay on the workers. If a worker is lost, the scheduler computes its blocks again
    from the tasks that led to them. Workers that are lost again and again, and a scheduler that is
    gone, raise an error.

    Parameters
    ----------
    client
        A `distributed.Client`.
    """

    def __init__(self, client: Any) -> None:
        super().__init__()
        self._client, self._address = client, client.scheduler.address
        self._run = uuid.uuid4().hex[:8]
        self._count = 0
        self._most_losses = _LOSSES_PER_WORKER * max(1, len(client.nthreads()))
        # Number of lost workers when the wait for the next result began.
        self._lost_before: int | None = None

    @property
    def n_workers(self) -> int:
        """Number of threads of all workers."""
        self._check_connection()
        return max(1, int(sum(self._client.nthreads().values())))

    @property
    def is_remote(self) -> bool:
        """Kept blocks lie on the workers."""
        return True

    @contextmanager
    def starting(
        self, task: Task[Result], parts: Sequence[Any], shared: Any
    ) -> Iterator[tuple[Start[Result], int]]:
        """See `TaskRunner.starting`."""
        argument = self._shared_argument(shared)
        running: list[Any] = []

        def start(number: int, mine: Any) -> Callable[[], Result]:
            running.append(self._submit(task, parts[number], argument, mine))
            return result

        def result() -> Result:
            next(self._ended(running[:1]))
            found: Result = running.pop(0).result()
            return found

        try:
            yield start, _AHEAD * self.n_workers
        except BaseException:
            self._cancel(running)
            raise

    def keep(
        self,
        task: Task[Iterator[ArrayBlock]],
        parts: Sequence[Any],
        shared: Any = None,
        *,
        memory: float,
        progress: Progress = silent,
    ) -> Sequence[Any]:
        """See `TaskRunner.keep`; Dask manages the memory and the files of its workers."""
        argument = self._shared_argument(shared)
        listed = partial(_listed, task)
        kept = [self._submit(listed, part, argument, None) for part in parts]
        self._kept.append(kept)
        try:
            for done, future in enumerate(self._ended(kept), 1):
                if future.status in ("error", "cancelled"):
                    future.result()
                progress(done, len(kept))
        except BaseException:
            self._cancel(kept)
            raise
        return kept

    def _ended(self, futures: Sequence[Any]) -> Iterator[Any]:
        """Yield tasks in the order in which they end, and check the cluster meanwhile."""
        ended: SimpleQueue[Any] = SimpleQueue()
        for future in futures:
            future.add_done_callback(ended.put)
        for _ in futures:
            while True:
                try:
                    future = ended.get(timeout=_CHECK_EVERY)
                    break
                except Empty:
                    self._check_losses()
            # A client that loses its scheduler cancels its tasks.
            self._check_connection()
            self._lost_before = None
            yield future

    def _check_connection(self) -> None:
        if self._client.status != "running":
            raise self._lost_connection()

    def _lost_connection(self) -> ConnectionError:
        return ConnectionError(
            f"The connection to the Dask scheduler {self._address} is lost, and "
            "with it the results of the workers. Connect to a running cluster and start again."
        )

    def _check_losses(self) -> None:
        """Raise an error if workers are lost again and again: out of memory, most of the time."""
        self._check_connection()
        try:
            events = self._client.sync(
                self._client.scheduler.events, topic="all", callback_timeout=_PATIENCE
            )
        except (OSError, TimeoutError) as error:
            raise self._lost_connection() from error
        lost = sum(
            event["action"] == "remove-worker" and not event.get("expected") for _, event in events
        )
        if self._lost_before is None:
            self._lost_before = lost
        times = lost - self._lost_before
        if times >= self._most_losses:
            raise RuntimeError(
                f"Dask workers were lost {times} times, and no task was finished in between. Their "
                "logs give the reason; they may need more memory."
            )

    def _cancel(self, futures: list[Any]) -> None:
        # Without a scheduler, the call would wait for one.
        if self._client.status == "running":
            self._client.cancel(futures)

    def _forget(self, kept: Sequence[Any]) -> None:
        for future in kept:
            future.release()

    def _shared_argument(self, shared: Any) -> Any:
        """Submit the shared argument as a task: scattered data would be lost with a worker."""
        if shared is None:
            return None
        with warnings.catch_warnings():
            # It may be large, but it is sent once.
            warnings.filterwarnings("ignore", "Sending large graph")
            return self._client.submit(_given, shared, key=self._key("common"), pure=False)

    def _submit(self, task: Task[Any], part: Any, shared: Any, mine: Any) -> Any:
        named = task.args[0] if isinstance(task, partial) else task
        key = self._key(getattr(named, "__name__", type(named).__name__))
        payload = getattr(part, "payload", None)
        if payload is None:
            return self._client.submit(_limited, task, part, shared, mine, key=key, pure=False)
        return self._client.submit(
            _limited, _with_payload, task, dataclasses.replace(part, payload=None),
            self._client.compute(payload), shared, mine, key=key, pure=False,
        )  # fmt: skip

    def _key(self, name: str) -> str:
        """Return a unique key. The dashboard groups keys by the name before the number."""
        self._count += 1
        return f"slts_{name.strip('_')}-{self._run}{self._count:08d}"


def _listed(task: Task[Iterator[ArrayBlock]], part: Any, shared: Any, own: Any) -> list[ArrayBlock]:
    return list(task(part, shared, own))


def _given(value: Any) -> Any:
    return value


def _limited(task: Callable[..., Result], *args: Any) -> Result:
    """Run a task on a worker, with one thread of BLAS."""
    with one_blas_thread():
        return task(*args)


def _with_payload(task: Task[Any], part: Any, payload: Any, shared: Any, own: Any) -> Any:
    return task(part.holding(payload), shared, own)
