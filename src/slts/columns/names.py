"""Names of columns: those of identifiers, times, labels, and of numbered steps."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable

ID_NAMES = (
    "id", "seriesid", "series", "caseid", "case", "instanceid", "instance", "sampleid", "rec",
    "recordingid", "recording", "recordid", "record", "sequenceid", "sequence", "seqid", "seq",
    "trialid", "trial", "sessionid", "session", "episodeid", "episode", "runid", "run", "trackid",
    "track", "utterance", "unitid", "unit", "uid", "uuid", "key", "sample", "subject", "patient",
    "participant", "file", "filename", "name",
)  # fmt: skip
TIME_NAMES = (
    "time", "t", "timestamp", "timestep", "datetime", "date", "timepoint", "timeindex", "step",
    "tick", "frame", "index", "elapsed", "ts", "seconds", "second", "secs", "sec", "milliseconds",
    "millis", "msec", "ms", "usec",
)  # fmt: skip
# Words beside such a name, as in "Time (s)" and "unix_time"; after "t" only the first ones, because
# t_min may be a temperature.
_SECONDS = ("s", "sec", "secs", "seconds", "ms", "msec", "us", "usec", "ns")
_BESIDE_TIME = (
    *_SECONDS, "min", "minutes", "h", "hours", "unix", "epoch", "posix", "utc", "local", "stamp",
    "point", "number", "no", "nr", "idx",
)  # fmt: skip
# Names of counters, which are times if they rise in every series.
_COUNTER_NAMES = ("sample", "samples", "row", "line", "packet", "counter", "measurement")
LABEL_NAMES = ("label", "class", "classlabel", "target", "category", "y")
# Identifiers of people, who may have several series.
PEOPLE = ("subject", "patient", "participant")
# Row numbers that pandas and Dask write with a frame.
ROW_NUMBERS = re.compile(r"|Unnamed: \d+|__index_level_\d+__|__null_dask_index__")


def simplified(name: str) -> str:
    """Return the letters and digits of a name in lower case."""
    return re.sub(r"[^a-z0-9]", "", name.lower())


def _words(name: str) -> list[str]:
    return re.findall(r"[a-z]+|\d+", re.sub(r"([a-z])([A-Z])", r"\1 \2", name).lower())


def is_time_name(name: str) -> bool:
    """Tell whether a name is that of a time, perhaps with its unit.

    Examples
    --------
    >>> from slts.columns.names import is_time_name
    >>> [is_time_name(name) for name in ("Time (s)", "elapsed_ms", "t_sec", "unixTime")]
    [True, True, True, True]
    >>> [is_time_name(name) for name in ("t_min", "start_time", "t1", "s")]
    [False, False, False, False]
    """
    if simplified(name) in TIME_NAMES:
        return True
    words = _words(name)
    rest = _SECONDS if "t" in words else _BESIDE_TIME
    return any(word in TIME_NAMES for word in words) and all(
        word in TIME_NAMES or word in rest for word in words
    )


def is_counter_name(name: str) -> bool:
    """Tell whether a name is that of a number of rows or samples."""
    words = _words(name)
    return any(word in _COUNTER_NAMES for word in words) and all(
        word in _COUNTER_NAMES or word in _BESIDE_TIME or word == "index" for word in words
    )


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
