"""Text for people: counts of things, lists of names, classes, times, and sizes in bytes."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from typing import Any

import numpy as np

from slts._typing import AnyArray

_UNITS = {"": 1, "K": 10**3, "M": 10**6, "G": 10**9, "T": 10**12}
_UNITS |= {f"{unit}I": 1024**k for k, unit in enumerate(_UNITS) if unit}
# Precision of dates in seconds, coarsest first.
_DATE_UNITS = {"D": 86400.0, "s": 1.0, "ms": 1e-3, "us": 1e-6}


def count(number: int, noun: str, nouns: str | None = None) -> str:
    """Return a number and a noun, in the plural unless the number is 1.

    Examples
    --------
    >>> from slts.quantities import count
    >>> count(1, "channel"), count(3, "channel")
    ('1 channel', '3 channels')
    """
    return f"{number:,} {noun if number == 1 else nouns or noun + 's'}"


def list_first(names: Sequence[str], most: int = 6, separator: str = ", ") -> str:
    """List names: the first and the last if they are numbered, else the first ones.

    Examples
    --------
    >>> from slts.quantities import list_first
    >>> list_first(["x", "y"], 2), list_first(["c1", "c2", "c3"], 2), list_first(["x", "y", "z"], 2)
    ('x, y', 'c1..c3', 'x, y and 1 more')
    """
    matches = [re.fullmatch(r"(.*?)(\d+)", name) for name in names]
    numbers = [(match[1], int(match[2])) for match in matches if match]
    stem, first = numbers[0] if numbers else ("", 0)
    # Plain numbers, such as classes, are listed if they are few.
    is_long = len(names) > (2 if stem else most)
    if is_long and numbers == [(stem, first + k) for k in range(len(names))]:
        return f"{names[0]}..{names[-1]}"
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return separator.join(names[:most]) + more


def class_name(label: str) -> str:
    """A label in a sentence: "class 3" for a number or letter, other labels unchanged."""
    bare = len(label) == 1 or re.fullmatch(r"[-+.\d]+", label)
    return f"class {label}" if bare else label


def time_texts(times: AnyArray) -> list[str]:
    """Return times as text, as precisely as it takes to tell neighbouring steps apart.

    Examples
    --------
    >>> import numpy as np
    >>> from slts.quantities import time_texts
    >>> time_texts(np.array([0.0, 0.5, 1.000000001]))
    ['0', '0.5', '1']
    >>> time_texts(np.array(["2024-03-01T12:00:00", "2024-03-01T12:00:20"], "datetime64[ns]"))
    ['2024-03-01T12:00:00', '2024-03-01T12:00:20']
    """
    gaps = np.sort(np.diff(times))
    gap = gaps[len(gaps) // 2] if len(gaps) else None
    if times.dtype.kind == "M":
        seconds = 0.0 if gap is None else gap / np.timedelta64(1, "s")
        unit = next((unit for unit, size in _DATE_UNITS.items() if seconds >= size), "ns")
        return list(map(str, times.astype(f"datetime64[{unit}]")))
    decimals = 2 - math.floor(math.log10(min(1.0, gap or 1.0)))
    return [f"{time:.{decimals}f}".rstrip("0").rstrip(".") for time in times.tolist()]


def parse_bytes(size: Any, name: str = "memory_limit", owner: str = "slts") -> int:
    """Return a number of bytes from a number or from text such as "2GB" or "512 MiB".

    `name` and `owner` are for the error message: the parameter, and whose it is.

    Examples
    --------
    >>> from slts.quantities import parse_bytes
    >>> parse_bytes("1.5GB"), parse_bytes("1 GiB"), parse_bytes(500)
    (1500000000, 1073741824, 500)
    """
    number = -1.0
    if isinstance(size, str):
        found = re.fullmatch(r"\s*(\d+(?:\.\d*)?)\s*([KMGT]?I?)B?\s*", size.upper())
        if found and found[2] in _UNITS:
            number = float(found[1]) * _UNITS[found[2]]
    elif isinstance(size, int | float | np.number) and not isinstance(size, bool):
        number = float(size)
    if not 1 <= number < float("inf"):
        raise ValueError(
            f"The '{name}' parameter of {owner} must be None, a positive number of bytes, or text "
            f"such as '2GB' or '512 MiB'. Got {size!r} instead."
        )
    return int(number)


def format_bytes(size: float) -> str:
    """Return a size for people, rounded by at most 5%.

    Examples
    --------
    >>> from slts.quantities import format_bytes
    >>> format_bytes(2_340_000_000), format_bytes(45_600_000), format_bytes(7_000), format_bytes(2)
    ('2.3 GB', '46 MB', '7 kB', '2 bytes')
    """
    for unit, name, digits in ((1e9, "GB", 1), (1e6, "MB", 0), (1e3, "kB", 0)):
        if size >= 0.9995 * unit:
            number = size / unit
            return f"{number:.2g} {name}" if number < 9.95 else f"{number:.{digits}f} {name}"
    return f"{size:.0f} bytes"
