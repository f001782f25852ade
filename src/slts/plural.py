"""Numbers with their nouns, for messages."""

from __future__ import annotations

__all__ = ["count"]


def count(number: int, noun: str, nouns: str | None = None) -> str:
    """Return a number and a noun, in the plural unless the number is 1.

    Examples
    --------
    >>> from slts.plural import count
    >>> count(1, "channel"), count(3, "channel")
    ('1 channel', '3 channels')
    """
    return f"{number:,} {noun if number == 1 else nouns or noun + 's'}"
