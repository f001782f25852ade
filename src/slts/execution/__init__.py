"""Where work runs: in this thread, in several threads, or on a cluster.

threads.py      how many threads there are, ours and those of BLAS; maps over parts and blocks
dask_runner.py  map tasks over parts on the workers of a Dask cluster; the client of this process
memory.py       how much memory this process may use; how freed memory is returned
progress.py     progress bars, and lines of progress for logs

This package is independent of alignments: work is a callable, and its size is a number.
"""

from slts.execution.dask_runner import DaskRunner, dask_client, running_client
from slts.execution.memory import memory_limit, release_memory, usable_memory
from slts.execution.progress import Bar, Progress, duration, progress_bar, progress_lines, silent
from slts.execution.threads import (
    Block,
    ThreadRunner,
    check_stopped,
    fit_threads,
    map_blocks,
    map_threads,
    one_blas_thread,
    partition,
    thread_count,
    use_fit_threads,
)

__all__ = [
    "Bar",
    "Block",
    "DaskRunner",
    "Progress",
    "ThreadRunner",
    "check_stopped",
    "dask_client",
    "duration",
    "fit_threads",
    "map_blocks",
    "map_threads",
    "memory_limit",
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
