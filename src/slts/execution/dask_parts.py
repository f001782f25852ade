"""Parts on the workers of a Dask cluster."""

from __future__ import annotations

import dataclasses
import sys
import uuid
from collections.abc import Iterator, Sequence
from types import TracebackType
from typing import Any, Self

from slts.execution.parts import Own, Result, Task
from slts.execution.progress import Progress
from slts.execution.shelf import Block

# Tasks submitted beyond what is wanted next, for every thread of the cluster.
_AHEAD = 4


def running_client() -> Any | None:
    """Give the Dask client of this process, if there is one; Dask is not imported for it.

    Inside a task there is none: it would wait for workers that wait for it.
    """
    distributed = sys.modules.get("distributed")
    if distributed is None or _is_in_a_task(distributed):
        return None
    try:
        client = distributed.default_client()
    except ValueError:
        return None
    return client if client.status == "running" else None


def _is_in_a_task(distributed: Any) -> bool:
    try:
        distributed.get_worker()
    except ValueError:
        return False
    return True


class DaskMapper:
    """Parts on the workers of a cluster.

    What is held stays on the workers. What is lost with a worker is computed again by the
    scheduler, which knows all tasks that led to it.

    Parameters
    ----------
    client
        A `distributed.Client`.
    """

    def __init__(self, client: Any) -> None:
        self._client = client
        self._run = uuid.uuid4().hex[:8]
        self._count = 0
        self._held: list[Sequence[Any]] = []

    @property
    def n_workers(self) -> int:
        """Threads of all workers together."""
        return max(1, int(sum(self._client.nthreads().values())))

    def map(
        self,
        task: Task[Result],
        parts: Sequence[Any],
        common: Any = None,
        own: Own | None = None,
        *,
        progress: Progress | None = None,
    ) -> Iterator[Result]:
        """See `Mapper.map`."""
        shared = self._shared(common)
        ahead = _AHEAD * self.n_workers
        running: dict[int, Any] = {}
        begun = 0
        try:
            for number in range(len(parts)):
                while begun < min(len(parts), number + ahead):
                    mine = None if own is None else own(begun)
                    running[begun] = self._submit(task, parts[begun], shared, mine)
                    begun += 1
                yield running.pop(number).result()
                if progress is not None:
                    progress(number + 1, len(parts))
        except BaseException:
            self._client.cancel(list(running.values()))
            raise

    def hold(
        self,
        task: Task[Iterator[Block]],
        parts: Sequence[Any],
        common: Any = None,
        *,
        memory: float,
        progress: Progress | None = None,
    ) -> Sequence[Any]:
        """See `Mapper.hold`; memory is what Dask gives its workers, and so are files."""
        shared = self._shared(common)
        held = [self._submit(_Listed(task), part, shared, None) for part in parts]
        self._held.append(held)
        finished = sys.modules["distributed"].as_completed(held, raise_errors=True)
        try:
            for done, future in enumerate(finished):
                if future.status == "error":
                    future.result()
                if progress is not None:
                    progress(done + 1, len(held))
        except BaseException:
            self._client.cancel(held)
            raise
        return held

    def release(self, held: Sequence[Any]) -> None:
        """See `Mapper.release`."""
        for future in held:
            future.release()
        self._held = [others for others in self._held if others is not held]

    def __enter__(self) -> Self:
        """Use as a context."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Let the workers forget what is held; a traceback may still refer to it."""
        for held in list(self._held):
            self.release(held)

    def _shared(self, common: Any) -> Any:
        """What all tasks need, as a task of its own: scattered data would be lost with a worker."""
        if common is None:
            return None
        return self._client.submit(_given, common, key=self._key("common"), pure=False)

    def _submit(self, task: Task[Any], part: Any, shared: Any, mine: Any) -> Any:
        key = self._key(getattr(task, "__name__", type(task).__name__))
        payload = getattr(part, "payload", None)
        if payload is None:
            return self._client.submit(task, part, shared, mine, key=key, pure=False)
        return self._client.submit(
            _with_payload, task, dataclasses.replace(part, payload=None),
            self._client.compute(payload), shared, mine, key=key, pure=False,
        )  # fmt: skip

    def _key(self, name: str) -> str:
        """Names as the dashboard groups them: by what stands before the last numbers."""
        self._count += 1
        return f"slts_{name.strip('_')}-{self._run}{self._count:08d}"


class _Listed:
    """A task whose blocks are all made before it ends."""

    def __init__(self, task: Task[Iterator[Block]]) -> None:
        self._task = task
        self.__name__ = getattr(task, "__name__", "hold")

    def __call__(self, part: Any, common: Any, own: Any) -> list[Block]:
        return list(self._task(part, common, own))


def _given(value: Any) -> Any:
    return value


def _with_payload(task: Task[Any], part: Any, payload: Any, common: Any, own: Any) -> Any:
    return task(part.holding(payload), common, own)
