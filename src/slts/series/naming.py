"""What users call their series and classes, and the times of their steps."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence

import numpy as np

from slts._typing import AnyArray

_NUMBER = re.compile(r"[-+]?\d+(\.0*)?")
# The end of a column's name that says "identifier": recording_id, RecordingID, id.
_IDENTIFIER = re.compile(r"(^|[\s_.-]+)(id|identifier|index|key|no|nr|number)$", re.IGNORECASE)
_CAPITAL_ID = re.compile(r"(?<=[a-z])(ID|Id)$")
# Precision of dates in seconds, coarsest first.
_UNITS = {"D": 86400.0, "s": 1.0, "ms": 1e-3, "us": 1e-6}


def names_of(ids: Sequence[object] | AnyArray, column: str | None = None) -> AnyArray:
    """Return a name for every identifier, as an array of text.

    A number gets the noun of its column: 17 in ``recording_id`` is "recording 17". Without a noun
    it is "series 17". Other identifiers are names already.

    Examples
    --------
    >>> from slts.series.naming import names_of
    >>> names_of([17, 18.0], "recording_id").tolist()
    ['recording 17', 'recording 18']
    >>> names_of(["4", "left hand"], "id").tolist()
    ['series 4', 'left hand']
    """
    noun = "" if column is None else _CAPITAL_ID.sub("", _IDENTIFIER.sub("", column.strip()))
    names = np.empty(len(ids), dtype=object)
    for k, id in enumerate(ids.tolist() if isinstance(ids, np.ndarray) else ids):
        text = str(id)
        if _NUMBER.fullmatch(text):
            text = f"{noun or 'series'} {text.partition('.')[0]}"
        names[k] = text
    return names


def class_name(label: str) -> str:
    """A label in a sentence: "class 3" for a number or letter, other labels unchanged."""
    bare = len(label) == 1 or re.fullmatch(r"[-+.\d]+", label)
    return f"class {label}" if bare else label


def plain_times(times: AnyArray) -> AnyArray | None:
    """Return times as float64 or datetime64[ns], durations in seconds; None for other types."""
    kind = times.dtype.kind
    if kind in "iuf":
        return times.astype(np.float64)
    if kind == "M":
        return times.astype("datetime64[ns]")
    return times / np.timedelta64(1, "s") if kind == "m" else None


def time_texts(times: AnyArray) -> list[str]:
    """Return times as text, as precisely as it takes to tell neighbouring steps apart.

    Examples
    --------
    >>> import numpy as np
    >>> from slts.series.naming import time_texts
    >>> time_texts(np.array([0.0, 0.5, 1.000000001]))
    ['0', '0.5', '1']
    >>> time_texts(np.array(["2024-03-01T12:00:00", "2024-03-01T12:00:20"], "datetime64[ns]"))
    ['2024-03-01T12:00:00', '2024-03-01T12:00:20']
    """
    gaps = np.sort(np.diff(times))
    gap = gaps[len(gaps) // 2] if len(gaps) else None
    if times.dtype.kind == "M":
        seconds = 0.0 if gap is None else gap / np.timedelta64(1, "s")
        unit = next((unit for unit, size in _UNITS.items() if seconds >= size), "ns")
        return list(map(str, times.astype(f"datetime64[{unit}]")))
    decimals = 2 - math.floor(math.log10(min(1.0, gap or 1.0)))
    return [f"{time:.{decimals}f}".rstrip("0").rstrip(".") for time in times.tolist()]
