"""Tables in wide form: one series per row, one column per step."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence

from slts.columns.facts import ColumnFacts
from slts.errors import DataError


def numbered_columns(names: Iterable[str], numeric: Collection[str]) -> tuple[str, ...]:
    """Return the longest run of numeric columns with successive numbers in their names.

    Names that are only numbers may be times, such as 0.0, 0.1, 0.2.
    """
    runs: list[list[str]] = [[]]
    last: tuple[str, float] | None = None
    for name in names:
        match = re.fullmatch(r"(.*?)(\d+(?:\.\d+)?)", name)
        if match is None or name not in numeric:
            last = None
            continue
        stem, number = match[1], float(match[2])
        if last is None or not _follows(stem, number, *last):
            runs.append([])
        runs[-1].append(name)
        last = stem, number
    longest: list[str] = max(runs, key=len)
    return tuple(longest)


def _follows(stem: str, number: float, last_stem: str, last: float) -> bool:
    return stem == last_stem and (number == last + 1 or (stem == "" and number > last))


def label_at_an_end(facts: ColumnFacts, steps: Sequence[str], texts: Sequence[str]) -> str | None:
    """Find the label in a file without header: the first or the last column, or neither.

    `texts` are the columns that do not hold numbers.
    """
    ends = steps[0], steps[-1]
    inside = [name for name in texts if name not in ends]
    if inside:
        facts.refuse_misspelt(inside[0], "column {}")
        raise DataError(
            f"{facts.file}: column {inside[0]!r} holds {facts.example(inside[0])}, expected "
            f"numbers, or a first line with the names of the columns"
        )
    if len(texts) == 1:
        return texts[0]
    if not texts:
        whole = [name for name in ends if facts.is_whole(name)]
        if not whole:
            return None
        varying = [name for name in whole if facts.n_distinct(name) > 1] or whole
        if len(varying) == 1 and not all(map(facts.is_whole, steps[1:-1])):
            return varying[0]
    raise DataError(
        f"{facts.file} has no header, and it is not clear which column is the label: name it with "
        f"--label {ends[0]} (the first) or --label {ends[1]} (the last), or name the values with "
        f"--channels {ends[0]}..{ends[1]} if there is none"
    )
