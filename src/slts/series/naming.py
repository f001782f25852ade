"""What users call their series and classes, and the times of their steps."""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np

from slts._typing import AnyArray

_NUMBER = re.compile(r"[-+]?\d+(\.0*)?")
# The end of a column's name that says "identifier": recording_id, RecordingID, id.
_IDENTIFIER = re.compile(r"(^|[\s_.-]+)(id|identifier|index|key|no|nr|number)$", re.IGNORECASE)
_CAPITAL_ID = re.compile(r"(?<=[a-z])(ID|Id)$")


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
