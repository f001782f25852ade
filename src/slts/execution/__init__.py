"""Who maps the blocks: serial or threads.

blocks.py    cuts a (rows x columns) grid of weighted work into blocks
mapping.py   runs a task on every block, in this thread or in several, and can be interrupted
progress.py  turns "so much of so much is done" into a bar

Knows nothing of alignments: work is a callable, its size a number.
"""

from slts.execution.blocks import Block, partition
from slts.execution.mapping import map_blocks
from slts.execution.progress import Progress, progress_bar

__all__ = ["Block", "Progress", "map_blocks", "partition", "progress_bar"]
