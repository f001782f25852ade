"""Running a task on every block."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait

from joblib import effective_n_jobs

from slts.execution.blocks import Block
from slts.execution.progress import Progress, silent


def map_blocks(
    task: Callable[[Block], None],
    blocks: Sequence[Block],
    *,
    n_jobs: int | None = None,
    cancel: Callable[[], None] = lambda: None,
    progress: Progress = silent,
) -> None:
    """Call `task` on every block; each writes its own part of the result.

    Parameters
    ----------
    task
        Must release the GIL to profit from threads.
    blocks
        What to work on.
    n_jobs
        joblib's convention: None is 1 unless a ``joblib.parallel_config`` says otherwise, -1 is
        every core, -2 all but one.
    cancel
        Called when the work is cancelled (an error, Ctrl-C), so that a running `task` can return
        early.
    progress
        Called with (cost done, cost in all) as blocks finish.
    """
    total = sum(block.cost for block in blocks)
    workers = min(effective_n_jobs(n_jobs), len(blocks))
    if workers <= 1:
        done = 0.0
        for block in blocks:
            task(block)
            done += block.cost
            progress(done, total)
        return
    # Largest first, so that no thread is left with a large block at the end.
    waiting = sorted(blocks, key=lambda block: block.cost)
    done, running = 0.0, dict[Future[None], float]()
    with ThreadPoolExecutor(workers) as pool:
        try:
            while waiting or running:
                # Few at a time: what is queued cannot be taken back quickly.
                while waiting and len(running) < 2 * workers:
                    block = waiting.pop()
                    running[pool.submit(task, block)] = block.cost
                # A bounded wait lets Ctrl-C work on every platform.
                finished, _ = wait(running, timeout=0.1, return_when=FIRST_COMPLETED)
                for future in finished:
                    done += running.pop(future)
                    future.result()
                if finished:
                    progress(done, total)
        except BaseException:
            cancel()
            pool.shutdown(wait=True, cancel_futures=True)
            raise
