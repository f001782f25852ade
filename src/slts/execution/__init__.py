"""Who maps the work: serial, threads, or a cluster.

blocks.py      cuts a (rows x columns) grid of weighted work into blocks
mapping.py     runs a task on every block, in this thread or in several, and can be interrupted
parts.py       runs tasks on parts of something larger than memory; holds what they make
shelf.py       holds arrays in memory while there is room, in temporary files beyond
dask_parts.py  the same on the workers of a Dask cluster
machine.py     knows how much memory this process may use, and gives back what it does not
progress.py    turns "so much of so much is done" into a bar, or into lines of a log

Knows nothing of alignments: work is a callable, its size a number.
"""

from slts.execution.blocks import Block, partition
from slts.execution.dask_parts import DaskMapper
from slts.execution.machine import give_back_memory, usable_memory
from slts.execution.mapping import map_blocks
from slts.execution.parts import Mapper, ThreadMapper, check_stopped
from slts.execution.progress import Progress, duration, progress_bar, progress_lines
from slts.execution.shelf import free_disk

__all__ = [
    "Block",
    "DaskMapper",
    "Mapper",
    "Progress",
    "ThreadMapper",
    "check_stopped",
    "duration",
    "free_disk",
    "give_back_memory",
    "map_blocks",
    "partition",
    "progress_bar",
    "progress_lines",
    "usable_memory",
]
