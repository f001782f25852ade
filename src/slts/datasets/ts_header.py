"""The lines of a `.ts` file before the data: comments, and facts announced with `@`."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator

from slts.errors import DataError

__all__ = ["TsHeader", "is_comment", "parse_header"]

_FLAGS = {"timestamps", "missing", "univariate", "equallength", "targetlabel"}
_COUNTS = {"dimensions", "serieslength"}


@dataclasses.dataclass(frozen=True)
class TsHeader:
    """What a `.ts` file says about its data; None where it says nothing.

    Attributes
    ----------
    problem_name : str or None
        Name of the data set.
    univariate, equal_length, missing : bool or None
        Whether series have one channel, the same length, gaps.
    dimensions, series_length : int or None
        Number of channels, common number of steps.
    class_labels : tuple of str or None
        The classes; None if the series have no class.
    target : bool
        Whether each series has a number to predict instead.
    """

    problem_name: str | None = None
    univariate: bool | None = None
    equal_length: bool | None = None
    missing: bool | None = None
    dimensions: int | None = None
    series_length: int | None = None
    class_labels: tuple[str, ...] | None = None
    target: bool = False


def is_comment(line: str) -> bool:
    """Tell whether a stripped line is blank or a comment; `%` opens one in some old files."""
    return not line or line[0] in "#%"


def parse_header(lines: Iterator[tuple[int, str]], where: str) -> TsHeader:
    """Read a header up to and including its `@data`.

    Parameters
    ----------
    lines : iterator of (int, str)
        Numbered lines of the file; those after the header remain in it.
    where : str
        Name of the file, for error messages.

    Returns
    -------
    TsHeader
        The facts announced. Identifiers that are not part of the format are passed over.

    Raises
    ------
    DataError
        If the header is malformed or contradicts itself, or the series have time stamps.
    """
    found: dict[str, list[str]] = {}
    for number, raw in lines:
        line = raw.strip()
        if is_comment(line):
            continue
        if line[0] != "@":
            raise DataError(
                f"{where}, line {number}: expected a header line that begins with @, got "
                f"{line[:40]!r}; the data begin after a line @data"
            )
        identifier, *values = line[1:].split()
        key = {"dimension": "dimensions"}.get(identifier.lower(), identifier.lower())
        if key == "data":
            if values:
                raise DataError(f"{where}, line {number}: @data stands alone on its line")
            return _header(found, where)
        # Files exist that name their problem twice; the last name holds.
        if key != "problemname" and found.get(key, values) != values:
            raise DataError(
                f"{where}, line {number}: @{identifier} {' '.join(values)} contradicts the earlier "
                f"@{identifier} {' '.join(found[key])}"
            )
        found[key] = values
    raise DataError(f"{where} has no line @data: it is not a .ts file, or it is cut off")


def _header(found: dict[str, list[str]], where: str) -> TsHeader:
    flags = {key: _flag(key, found[key], where) for key in _FLAGS & found.keys()}
    counts = {key: _count(key, found[key], where) for key in _COUNTS & found.keys()}
    if flags.get("timestamps"):
        raise DataError(
            f"{where} has time stamps (@timeStamps true), which slts does not read: bring the "
            "series to even steps and write them as plain values"
        )
    classes = _class_labels(found.get("classlabel"), where)
    target = flags.get("targetlabel", False)
    if "classlabel" not in found and not target:
        raise DataError(
            f"{where} does not say whether its series have labels: add @classLabel true followed "
            "by the labels, @classLabel false, or @targetLabel true"
        )
    if classes and target:
        raise DataError(f"{where} has both @classLabel true and @targetLabel true: choose one")
    return TsHeader(
        problem_name=" ".join(found.get("problemname", [])) or None,
        univariate=flags.get("univariate"),
        equal_length=flags.get("equallength"),
        missing=flags.get("missing"),
        dimensions=counts.get("dimensions"),
        series_length=counts.get("serieslength"),
        class_labels=classes,
        target=target,
    )


def _flag(key: str, values: list[str], where: str) -> bool:
    text = " ".join(values).lower()
    if text not in ("true", "false"):
        raise DataError(f"{where}: @{key} must be true or false, got {text!r}")
    return text == "true"


def _count(key: str, values: list[str], where: str) -> int:
    text = " ".join(values)
    if not (text.isascii() and text.isdigit() and int(text) > 0):
        raise DataError(f"{where}: @{key} must be a positive integer, got {text!r}")
    return int(text)


def _class_labels(values: list[str] | None, where: str) -> tuple[str, ...] | None:
    """Return the labels after `@classLabel true`, None after `@classLabel false`."""
    if values is None:
        return None
    if not _flag("classLabel", values[:1], where):
        return None
    labels = tuple(values[1:])
    if not labels:
        raise DataError(f"{where}: @classLabel true must be followed by the labels")
    return labels
