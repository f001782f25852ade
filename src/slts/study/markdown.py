"""The report as Markdown."""

from __future__ import annotations

from collections.abc import Sequence

from slts.study.blocks import Block, Grid, Heading, Items, Listing, Paragraph, Picture


def to_markdown(blocks: Sequence[Block], *, pictures: bool = True) -> str:
    """Write blocks as Markdown; `pictures` links the figures, which lie beside it."""
    return "\n\n".join(filter(None, (_block(block, pictures) for block in blocks))) + "\n"


def _block(block: Block, pictures: bool) -> str:
    if isinstance(block, Heading):
        return f"{'#' * block.level} {block.text}"
    if isinstance(block, Paragraph):
        return block.text
    if isinstance(block, Items):
        return "\n".join(f"- {text}" for text in block.texts)
    if isinstance(block, Listing):
        return f"```\n{block.text}\n```"
    if isinstance(block, Picture):
        return f"![{block.caption}]({block.name}.png)" if pictures else ""
    return _grid(block)


def _grid(grid: Grid) -> str:
    lines = [_row(grid.header), _row(["---"] * len(grid.header)), *map(_row, grid.rows)]
    return f"{grid.caption}\n\n" + "\n".join(lines)


def _row(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|").replace("*", "\\*") for cell in cells) + " |"
