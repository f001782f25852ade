"""Parts on the workers of a Dask cluster."""

from __future__ import annotations

import dataclasses
import sys
import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from slts.execution.parts import Crew, Mapper, Result, Task
from slts.execution.progress import Progress
from slts.execution.shelf import Block

# Tasks submitted beyond what is wanted next, for every thread of the cluster.
_AHEAD = 4


class DaskMapper(Mapper):
    """Parts on the workers of a cluster.

    What is held stays on the workers. What is lost with a worker is computed again by the
    scheduler, which knows all tasks that led to it.

    Parameters
    ----------
    client
        A `distributed.Client`.
    """

    def __init__(self, client: Any) -> None:
        super().__init__()
        self._client = client
        self._run = uuid.uuid4().hex[:8]
        self._count = 0

    @property
    def n_workers(self) -> int:
        """Threads of all workers together."""
        return max(1, int(sum(self._client.nthreads().values())))

    @contextmanager
    def _crew(
        self, task: Task[Result], parts: Sequence[Any], common: Any
    ) -> Iterator[Crew[Result]]:
        shared = self._shared(common)
        running: dict[int, Any] = {}

        def begin(number: int, mine: Any) -> None:
            running[number] = self._submit(task, parts[number], shared, mine)

        try:
            yield Crew(begin, lambda n: running.pop(n).result(), _AHEAD * self.n_workers)
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

    def _forget(self, held: Sequence[Any]) -> None:
        for future in held:
            future.release()

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
