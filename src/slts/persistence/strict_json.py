"""JSON as a model file may hold it; everything else is refused before it costs anything."""

from __future__ import annotations

import json
import math
import re
from typing import Any

import numpy as np

from slts.errors import ModelFileError

DEEPEST = 32
# Digits of the longest number: 64-bit integers have 20, and repr of a float has at most 24.
_LONGEST_NUMBER = 32
# Possessive, and without need of a closing quote: linear in the text whatever it holds.
_STRING = re.compile(r'"(?:[^"\\]++|\\.)*+"?', re.DOTALL)


def parse(text: str) -> Any:
    """Parse a JSON text of any origin.

    Parameters
    ----------
    text
        Of bounded length: that is the caller's business.

    Returns
    -------
    Any
        None, bool, int, finite float, str, list or dict.

    Raises
    ------
    ModelFileError
        If the text is no JSON, nests deeper than 32 levels, repeats a key, or has a number that is
        no 64-bit integer or finite float.
    """
    _check_depth(text)
    try:
        return json.loads(
            text,
            object_pairs_hook=_object,
            parse_int=_integer,
            parse_float=_float,
            parse_constant=_constant,
        )
    except (ValueError, RecursionError) as error:
        raise ModelFileError(f"its header is not valid JSON ({error})") from error


def dump(value: Any) -> str:
    """ASCII, without spaces, keys as they come: the same text for the same value."""
    return json.dumps(value, allow_nan=False, ensure_ascii=True, separators=(",", ":"))


def _check_depth(text: str) -> None:
    # Before the parser sees it: it recurses, and a raised recursion limit would crash it.
    bare = np.frombuffer(_STRING.sub("", text).encode("utf-8", "replace"), dtype=np.uint8)
    opening = (bare == ord("[")) | (bare == ord("{"))
    closing = (bare == ord("]")) | (bare == ord("}"))
    steps = opening.astype(np.int32) - closing
    if len(steps) and int(np.cumsum(steps, dtype=np.int64).max()) > DEEPEST:
        raise ModelFileError(f"its header nests deeper than {DEEPEST} levels")


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    result = dict(pairs)
    if len(result) != len(pairs):
        raise ModelFileError("its header repeats a key")
    return result


def _integer(digits: str) -> int:
    if len(digits) > _LONGEST_NUMBER or not -(2**63) <= int(digits) < 2**64:
        raise ModelFileError(f"its header has an integer beyond 64 bits, {digits[:24]}")
    return int(digits)


def _float(digits: str) -> float:
    if len(digits) > _LONGEST_NUMBER or not math.isfinite(float(digits)):
        raise ModelFileError(f"its header has a number that no float holds, {digits[:24]}")
    return float(digits)


def _constant(name: str) -> Any:
    raise ModelFileError(f"its header has {name}, which is not JSON")
