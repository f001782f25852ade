"""The time: the column that orders the steps of a series, found by its name or its values."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from slts.columns.facts import (
    TIME_NAMES,
    ColumnFacts,
    IncreasingCounts,
    SeriesRows,
    is_counter_name,
    is_time_name,
    simplified,
)
from slts.errors import DataError

TIMES = (
    "numbers or times such as 2024-01-31T12:00:00, 2024-01-31 12:00:00.5, 2024/01/31 or 31.01.2024"
)
# Number of increasing steps from which a column is like a time, and share of the series in which it
# increases. Random values increase in 20 steps with a probability below 1e-6.
_LEAST_INCREASES, _NEARLY = 20, 0.9


class Time(NamedTuple):
    """The time, columns that only count or repeat it, and whether it was found by its values."""

    column: str | None
    clocks: tuple[str, ...] = ()
    rising: bool = False


def can_be_time(facts: ColumnFacts, name: str) -> bool:
    """Whether the values of a column can order steps."""
    kinds = ("number", "integer", "timestamp")
    return facts.kinds[name] in kinds or facts.time_form(name) is not None


def is_like_time(facts: ColumnFacts, name: str) -> bool:
    """Whether the name or the values of a column are those of a time."""
    if is_time_name(name) and can_be_time(facts, name):
        return True
    return facts.time_form(name) not in (None, "number") or facts.looks_like_time(name)


def find_time(
    facts: ColumnFacts,
    names: Sequence[str],
    rows: SeriesRows,
    requested: str | None,
    identifiers: Collection[str],
    finds_channels: bool,
) -> Time:
    """Find the time, and the other columns that only count or repeat it.

    Parameters
    ----------
    facts, names
        The table, and its columns without a role.
    rows
        Which rows belong to one series.
    requested
        The time, if it is known.
    identifiers
        Columns that are named like an identifier, perhaps of rows.
    finds_channels
        Whether the channels are guessed; if not, a column that increases need not be classified.

    Raises
    ------
    DataError
        If several columns may be the time, or text that seems to be the time cannot be read.
    """
    varying = [name for name in names if not facts.is_constant_in_series(name, rows)]
    named = _with_time_names(facts, varying, rows)
    increases = {
        name: rows.count_increasing(facts.numbers(name))
        for name in varying
        if facts.kinds[name] in ("number", "integer")
    }
    clocks = tuple(
        name
        for name, found in increases.items()
        if found.always
        and (name in named or _counts(facts, name, rows))
        and (name in named or name in identifiers or found.n_steps >= _LEAST_INCREASES)
    )
    if requested is not None:
        return Time(requested, (*clocks, *_repeating(facts, requested, increases, rows)))
    timestamps = [
        name
        for name in varying
        if facts.kinds[name] == "timestamp" or facts.time_form(name) not in (None, "number")
    ]
    increasing = [
        name
        for name, found in increases.items()
        if found.n_steps >= _LEAST_INCREASES and found.n_increasing >= _NEARLY * found.n_series
    ]
    # Row numbers come after timestamps: rows need not be in order.
    counters = [name for name in named if is_counter_name(name) or simplified(name) == "index"]
    times = [name for name in named if name not in counters]
    if times or len(timestamps) == 1 or (counters and not timestamps):
        # Times that are repeated within a series cannot order its steps.
        time = min(times or timestamps or counters, key=lambda name: has_ties(facts, name, rows))
        clocks = (*clocks, *_repeating(facts, time, increases, rows))
        unclear = [name for name in increasing if name not in (*named, *clocks)]
        if finds_channels and unclear:
            raise _unclear(facts, [time, *unclear], "may be the time")
        return Time(time, clocks)
    if timestamps:
        raise _unclear(facts, timestamps, "may be the time")
    for name in varying:
        _raise_if_unreadable(facts, name)
    if not increasing or not finds_channels:
        return Time(None, clocks)
    # Clocks that differ by unit and offset are one.
    repeating = _repeating(facts, increasing[0], increases, rows)
    increasing = [name for name in increasing if name not in repeating]
    # A number that grows by the same amount at every step only counts. Others may be channels.
    if len(increasing) > 1 or not rows.is_regular(facts.numbers(increasing[0])):
        raise _unclear(facts, increasing, "increases in nearly every series and may be the time")
    return Time(increasing[0], repeating, rising=True)


def _with_time_names(facts: ColumnFacts, names: Sequence[str], rows: SeriesRows) -> list[str]:
    """Columns that are named like a time and can be one, the best names first."""
    times = [name for name in names if can_be_time(facts, name)]
    exact = [name for wanted in TIME_NAMES for name in times if simplified(name) == wanted]
    longer = [name for name in times if is_time_name(name)]
    counters = [
        name
        for name in times
        if is_counter_name(name)
        and facts.kinds[name] in ("number", "integer")
        and rows.count_increasing(facts.numbers(name)).always
    ]
    return list(dict.fromkeys([*exact, *longer, *counters]))


def _counts(facts: ColumnFacts, name: str, rows: SeriesRows) -> bool:
    """Whether a column of integers grows by one at every step."""
    return facts.kinds[name] == "integer" and rows.counts(facts.numbers(name))


def _repeating(
    facts: ColumnFacts, time: str, increases: Mapping[str, IncreasingCounts], rows: SeriesRows
) -> tuple[str, ...]:
    """Columns of numbers that are the time in another unit, with its own start in each series."""
    clock = facts.times(time)
    return tuple(
        name
        for name, found in increases.items()
        if name != time
        and found.n_steps >= _LEAST_INCREASES
        and rows.is_affine(facts.numbers(name), clock)
    )


def has_ties(facts: ColumnFacts, name: str, rows: SeriesRows) -> bool:
    """Whether a value is repeated within a series."""
    pairs = np.unique(np.stack([rows.codes, facts.codes(name)]), axis=1)
    return bool(pairs.shape[1] < facts.n_rows)


def _unclear(facts: ColumnFacts, names: Sequence[str], what: str) -> DataError:
    each = " or ".join(map(repr, names[:6]))
    return DataError(
        f"{facts.file}: column {each} {what}. Name the time with --time {names[0]} (time=): other "
        f"columns of numbers are then channels. If none is the time, name all channels with "
        f"--channels (channels=)"
    )


def _raise_if_unreadable(facts: ColumnFacts, name: str) -> None:
    """Raise an error for text that seems to be the time but cannot be read as such."""
    if facts.kinds[name] != "text" or facts.time_form(name) is not None:
        return
    if not (is_time_name(name) or facts.looks_like_time(name)):
        return
    for times in (False, True):
        facts.raise_if_misspelt(name, "column {}", times=times)
    raise DataError(
        f"{facts.file}: column {name!r} holds {facts.example(name)}. It may be the time, but it "
        f"cannot be read: expected {TIMES}. Convert it, for example with pandas.to_datetime, drop "
        f"the column, or name another column with --time (time=)"
    )
