"""The report as one HTML page, readable on a phone, light and dark."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from slts.study.blocks import Block, Grid, Heading, Items, Listing, Paragraph, Picture

_STYLE = """
:root { color-scheme: light dark; --ink: #1c1c1c; --paper: #fdfdfb; --line: #cfcfca;
  --mark: #9a3b00; --soft: #f1f1ec; }
@media (prefers-color-scheme: dark) { :root { --ink: #e6e6e1; --paper: #16171a; --line: #3a3c41;
  --mark: #ffb27a; --soft: #202226; } }
body { margin: 0 auto; max-width: 60rem; padding: 1rem; font: 1rem/1.55 Georgia, serif;
  color: var(--ink); background: var(--paper); }
h1 { font-size: 1.7rem; line-height: 1.25; } h2 { font-size: 1.25rem; margin-top: 2.2rem; }
figure { margin: 1.5rem 0; } figcaption { font-size: .9rem; margin: .4rem 0; }
img { display: block; width: 100%; height: auto; background: #fff; border-radius: 4px; }
img.small { max-width: 30rem; margin: 0 auto; }
.wide { overflow-x: auto; }
table { border-collapse: collapse; font: .85rem/1.4 system-ui, sans-serif; min-width: 100%;
  border-top: 2px solid var(--ink); border-bottom: 2px solid var(--ink); }
th, td { padding: .3rem .7rem; text-align: left; vertical-align: top; white-space: nowrap; }
thead th { border-bottom: 1px solid var(--ink); }
tbody tr + tr > * { border-top: 1px solid var(--line); }
th[scope=row] { font-weight: 500; }
td small { display: block; font-size: .75rem; opacity: .8; }
td.mark { color: var(--mark); font-weight: 600; } td.mark small { font-weight: 400; opacity: 1; }
summary { cursor: pointer; font-size: .9rem; margin: .4rem 0; }
th.text { white-space: normal; min-width: 13rem; }
@media (max-width: 40rem) { th, td { padding: .3rem .45rem; } th.text { min-width: 10rem; }
  th[scope=row] { position: sticky; left: 0; background: var(--paper); }
  .wide > img:not(.small) { width: 38rem; } }
pre { background: var(--soft); padding: .7rem; overflow-x: auto; border-radius: 4px; }
"""


# Row titles of more characters may break.
_LONG = 30


def to_page(blocks: Sequence[Block], *, language: str = "en") -> str:
    """Write blocks as a page; the figures (SVG) lie beside it."""
    title = next((b.text for b in blocks if isinstance(b, Heading)), "Report")
    body = "\n".join(_block(block) for block in blocks)
    return (
        f'<!doctype html>\n<html lang="{language}">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{escape(title)}</title>\n<style>{_STYLE}</style>\n</head>\n"
        f"<body>\n<main>\n{body}\n</main>\n</body>\n</html>\n"
    )


def _block(block: Block) -> str:
    if isinstance(block, Heading):
        return f"<h{block.level}>{escape(block.text)}</h{block.level}>"
    if isinstance(block, Paragraph):
        return f"<p>{escape(block.text)}</p>"
    if isinstance(block, Items):
        return "<ul>" + "".join(f"<li>{escape(text)}</li>" for text in block.texts) + "</ul>"
    if isinstance(block, Listing):
        return f"<pre><code>{escape(block.text)}</code></pre>"
    if isinstance(block, Picture):
        caption = escape(block.caption)
        size = ' class="small"' if block.small else ""
        return (
            f'<figure><div class="wide" tabindex="0">'
            f'<img{size} src="{block.name}.svg" alt="{caption}"></div>'
            f"<figcaption>{caption}</figcaption></figure>"
        )
    return _grid(block)


def _grid(grid: Grid) -> str:
    head = "".join(f'<th scope="col">{escape(cell)}</th>' for cell in grid.header)
    rows = []
    for r, row in enumerate(grid.rows):
        text = ' class="text"' if len(row[0]) > _LONG else ""
        cells = [f'<th scope="row"{text}>{escape(row[0])}</th>']
        for c, cell in enumerate(row[1:], start=1):
            mark = ' class="mark"' if (r, c) in grid.marked else ""
            cells.append(f"<td{mark}>{_cell(cell)}</td>")
        rows.append(f"<tr>{''.join(cells)}</tr>")
    table = (
        f'<div class="wide" tabindex="0"><table><thead><tr>{head}</tr></thead>'
        f"<tbody>{''.join(rows)}</tbody></table></div>"
    )
    caption = escape(grid.caption)
    if grid.folded:
        return f"<details><summary>{caption}</summary>{table}</details>"
    return f"<figure><figcaption>{caption}</figcaption>{table}</figure>"


def _cell(cell: str) -> str:
    """What stands in brackets, the paper's figure, goes on a line of its own."""
    ours, bracket, rest = cell.partition(" (")
    return f"{escape(ours)} <small>({escape(rest)}</small>" if bracket else escape(cell)
