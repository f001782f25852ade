"""Where work runs: in this thread, in several threads, or on a cluster.

threads.py      how many threads there are, ours and those of BLAS
task_runner.py  run tasks on the parts of a source, keep what they compute; blocks of a grid of work
step_queue.py   a queue of steps that may add steps
dask_runner.py  the same on the workers of a Dask cluster; the client of this process
memory.py       how much memory this process may use; arrays in temporary files beyond a limit
progress.py     progress bars, and lines of progress for logs

This package is independent of alignments: work is a callable, and its size is a number.
"""

from slts.execution.dask_runner import DaskRunner, dask_client, running_client
from slts.execution.memory import free_disk, release_memory, usable_memory
from slts.execution.progress import Bar, Progress, duration, progress_bar, progress_lines, silent
from slts.execution.step_queue import StepQueue
from slts.execution.task_runner import (
    Block,
    TaskRunner,
    ThreadRunner,
    check_stopped,
    map_blocks,
    partition,
)
from slts.execution.threads import fit_threads, one_blas_thread, thread_count, use_fit_threads

__all__ = [
    "Bar",
    "Block",
    "DaskRunner",
    "Progress",
    "StepQueue",
    "TaskRunner",
    "ThreadRunner",
    "check_stopped",
    "dask_client",
    "duration",
    "fit_threads",
    "free_disk",
    "map_blocks",
    "one_blas_thread",
    "partition",
    "progress_bar",
    "progress_lines",
    "release_memory",
    "running_client",
    "silent",
    "thread_count",
    "usable_memory",
    "use_fit_threads",
]
