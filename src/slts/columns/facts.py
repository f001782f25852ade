"""What names and rows show about columns: distinct values, blocks, order within series."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence
from functools import cache, cached_property
from typing import Any, NamedTuple

import numpy as np

from slts._typing import AnyArray, FloatArray, IntArray
from slts.columns.rows import (
    NUMERIC,
    Chunk,
    Kind,
    TimeForm,
    is_number,
    is_timestamp,
    kind_of,
    parse_times,
    time_form,
)
from slts.errors import DataError
from slts.extras import LazyModule

compute: Any = LazyModule("pyarrow.compute", "io")

# Times and what grows with them may be rounded, to about this share of a step.
_ROUNDING = 0.01

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
# Names of counters, which are times if they increase in every series.
_COUNTER_NAMES = ("sample", "samples", "row", "line", "packet", "counter", "measurement")
LABEL_NAMES = ("label", "class", "classlabel", "target", "category", "y")
# Names of people, who may have several series.
PEOPLE = ("subject", "patient", "participant", "person", "user", "speaker", "volunteer")
# Marks columns that come from names of folders. The first rows hold few of their values, so that
# they are never guessed as time or channel, and as id or label only by their names.
FROM_FOLDER = {b"slts": b"folder"}
# Text such as 31.12.2024 or 8:15, which may be a time.
_LIKE_TIME = re.compile(r"\d{1,4}[-./]\d{1,2}[-./]\d{1,4}([ T,].*)?|\d{1,2}:\d\d(:\d\d.*)?")

# Cells that Arrow reads as missing values.
MISSING = (
    "", "#N/A", "#N/A N/A", "#NA", "-1.#IND", "-1.#QNAN", "-NaN", "-nan", "1.#IND", "1.#QNAN",
    "N/A", "NA", "NULL", "NaN", "n/a", "nan", "null",
)  # fmt: skip


# What a message says about other text. Nearly all of it is Windows-1252 or Latin-1.
NOT_UTF8 = (
    "is not UTF-8. It may be Windows-1252 or Latin-1: save it in UTF-8, as with iconv -f "
    "WINDOWS-1252 -t UTF-8"
)


def simplified(name: str) -> str:
    """Return the letters and digits of a name in lower case."""
    return re.sub(r"[^a-z0-9]", "", name.lower())


def _words(name: str) -> list[str]:
    return re.findall(r"[a-z]+|\d+", re.sub(r"([a-z])([A-Z])", r"\1 \2", name).lower())


def is_time_name(name: str) -> bool:
    """Tell whether a name is that of a time, perhaps with its unit.

    Examples
    --------
    >>> from slts.columns.facts import is_time_name
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


class IncreasingCounts(NamedTuple):
    """In how many series a column increases at every step, of how many; number of these steps."""

    n_increasing: int
    n_series: int
    n_steps: int

    @property
    def always(self) -> bool:
        """Whether the column increases in every series that has several steps."""
        return 0 < self.n_series == self.n_increasing


class Misspelt(NamedTuple):
    """A cell of a text column that is not as most others: numbers of right ones, and of all."""

    row: int
    cell: str
    n_right: int
    n_cells: int


class SeriesRows:
    """Which rows belong to one series.

    Parameters
    ----------
    codes
        Integers that are equal for rows of one series.

    Attributes
    ----------
    order
        The rows series by series, otherwise in their order.
    """

    def __init__(self, codes: IntArray) -> None:
        self.codes = codes
        self.order: IntArray = np.argsort(codes, kind="stable")
        self._sorted = codes[self.order]
        # For every row but the first, in this order: whether it continues a series.
        self._same = self._sorted[1:] == self._sorted[:-1]
        # The series of each change from row to row.
        self._changing = self._sorted[1:][self._same]

    @cached_property
    def n_series(self) -> int:
        """Number of series."""
        return len(np.unique(self.codes))

    def varying(self, values: AnyArray) -> IntArray:
        """Return the codes of the series in which a column of numbers varies; NaN is ignored."""
        values, codes = values[self.order], self._sorted
        if values.dtype.kind == "f" and np.isnan(values).any():
            present = ~np.isnan(values)
            values, codes = values[present], codes[present]
        differs = (codes[1:] == codes[:-1]) & (values[1:] != values[:-1])
        return np.unique(codes[1:][differs])

    def not_increasing(self, values: AnyArray) -> IntArray:
        """Return the codes of the series in which numbers do not increase at every row."""
        values = values[self.order]
        not_above = self._same & ~(values[1:] > values[:-1])
        return np.unique(self._sorted[1:][not_above])

    def starting_again(self, values: AnyArray, fall: float) -> IntArray:
        """Return the codes of the series in which numbers fall, always by more than `fall`."""
        changes, series = self._changes(values), self._changing
        return np.setdiff1d(series[changes <= 0], series[(changes <= 0) & (changes >= -fall)])

    def count_increasing(self, values: AnyArray) -> IncreasingCounts:
        """Count the series in which numbers increase from each row to the next."""
        n_series = len(np.unique(self._changing))
        n_increasing = n_series - len(self.not_increasing(values))
        return IncreasingCounts(n_increasing, n_series, len(self._changing))

    def is_affine(self, values: AnyArray, times: AnyArray) -> bool:
        """Whether numbers change in proportion to the times, by the same factor in every series."""
        if not np.isfinite(values).all() or not np.isfinite(times).all():
            return False
        changes, passed = self._changes(values), self._changes(times)
        if not np.any(passed):
            return False
        factor = changes @ passed / (passed @ passed)
        error = np.abs(changes - factor * passed).max(initial=0.0)
        return bool(factor != 0.0 and error <= _ROUNDING * np.abs(changes).mean())

    def is_regular(self, values: AnyArray) -> bool:
        """Whether numbers change by the same amount from each row to the next of a series.

        If there are series of two rows, all series must have the same change. There must be a
        series of several rows.
        """
        if not np.isfinite(values).all():
            return False
        changes = self._changes(values)
        _, series, counts = np.unique(self._changing, return_inverse=True, return_counts=True)
        if counts.min() < 2:
            series, counts = np.zeros_like(series), np.array([len(changes)])
        means = (np.bincount(series, changes) / counts)[series]
        return bool((np.abs(changes - means) <= _ROUNDING * np.abs(means)).all() and means.all())

    def _changes(self, values: AnyArray) -> FloatArray:
        """Return the changes from row to row of each series; those of large integers are exact."""
        exact = values.astype(np.int64) if values.dtype.kind in "iu" else values
        changes: FloatArray = np.diff(exact[self.order])[self._same].astype(np.float64)
        return changes

    def counts(self, values: AnyArray) -> bool:
        """Whether integers grow by one from each row to the next."""
        return bool((np.diff(values[self.order])[self._same] == 1).all())


class ColumnFacts:
    """Facts about the columns of some rows of a table.

    Parameters
    ----------
    sample
        The rows.
    """

    def __init__(self, sample: Chunk) -> None:
        self._sample = sample
        self._rows = sample.rows
        self.file = sample.file
        self.n_rows = len(sample)
        self.kinds: dict[str, Kind] = {f.name: kind_of(f.type) for f in self._rows.schema}
        self.from_folders = {f.name for f in self._rows.schema if f.metadata == FROM_FOLDER}
        self.codes = cache(self._codes)
        self.numbers = cache(self._numbers)
        self.time_form = cache(self._time_form)

    def _codes(self, name: str) -> IntArray:
        """Integers that are equal where the values of a column are equal."""
        column = self._rows[name].combine_chunks()
        if not hasattr(column, "indices"):
            column = column.dictionary_encode()
        codes: IntArray = column.indices.fill_null(-1).to_numpy(zero_copy_only=False)
        return codes

    def _numbers(self, name: str) -> AnyArray:
        """Values of a column of numbers; missing ones are NaN."""
        column = self._rows[name].combine_chunks()
        if self.kinds[name] == "integer" and column.null_count == 0:
            integers: AnyArray = column.to_numpy(zero_copy_only=False)
            return integers
        numbers: AnyArray = column.cast("float64", safe=False).to_numpy(zero_copy_only=False)
        return numbers

    def times(self, name: str) -> AnyArray:
        """Values of a column that can be the time, as numbers; missing ones are NaN."""
        column = self._rows[name].combine_chunks()
        form = self.time_form(name)
        if form is not None:
            text = column.cast("string")
            column = parse_times(compute.if_else(compute.equal(text, ""), None, text), form)
        if self.kinds[name] == "timestamp" or form not in (None, "number"):
            # A timestamp, a day or a time of day, each counted in its own unit.
            column = column.cast("int64" if column.type.bit_width == 64 else "int32")
        numbers: AnyArray = column.cast("float64", safe=False).to_numpy(zero_copy_only=False)
        return numbers

    def _time_form(self, name: str) -> TimeForm | None:
        if self.kinds[name] != "text":
            return None
        column = self._rows[name].combine_chunks()
        return time_form(column.cast("string"))

    def looks_like_time(self, name: str) -> bool:
        """Whether most values of a text column are written like dates or times of day."""
        if self.kinds[name] != "text":
            return False
        texts = [text for text in self._rows[name].drop_null()[:100].to_pylist() if text]
        return 2 * sum(bool(_LIKE_TIME.fullmatch(text.strip())) for text in texts) > len(texts)

    def n_distinct(self, name: str) -> int:
        """Number of different values; missing values count as one."""
        return len(np.unique(self.codes(name)))

    def repeats(self, name: str) -> bool:
        """Whether a value occurs in several rows."""
        return self.n_distinct(name) < max(2, self.n_rows)

    def n_blocks(self, name: str) -> int:
        """Number of blocks of consecutive rows with equal values."""
        return 1 + int(np.count_nonzero(np.diff(self.codes(name))))

    def is_contiguous(self, name: str) -> bool:
        """Whether equal values are always in consecutive rows."""
        return self.n_blocks(name) == self.n_distinct(name)

    def is_divided(self, name: str, by: str) -> bool:
        """Whether the rows of a value of `name` are several blocks of equal values of `by`."""
        pairs = np.stack([self.codes(name), self.codes(by)])
        n_blocks = 1 + int(np.count_nonzero(np.diff(pairs, axis=1).any(axis=0)))
        n_pairs = np.unique(pairs, axis=1).shape[1]
        return bool(self.n_distinct(name) < n_pairs == n_blocks <= self.n_rows // 2)

    def is_crossed(self, names: Sequence[str], key: str) -> bool:
        """Whether rows of equal `names` are several, one for each value of `key`, or for most."""

        def n_different(names: Sequence[str]) -> int:
            return int(np.unique(np.stack([self.codes(n) for n in names]), axis=1).shape[1])

        n_rows, n_equal = self.n_rows, n_different(names)
        # Half of the values may be missing: sensors may have different rates.
        is_filled = n_equal < n_rows and n_equal * self.n_distinct(key) < 2 * n_rows
        return is_filled and n_different([*names, key]) == n_rows

    def has_blocks(self, name: str) -> bool:
        """Whether a column has several values, each in one block of about two rows or more."""
        if self.kinds[name] not in ("text", "integer"):
            return False
        few = 1 < self.n_distinct(name) <= self.n_rows // 2
        return few and self.is_contiguous(name)

    def is_constant(self, name: str, codes: IntArray) -> bool:
        """Whether a column is constant among rows of equal codes."""
        pairs = np.unique(np.stack([codes, self.codes(name)]), axis=1)
        return bool(pairs.shape[1] == len(np.unique(codes)))

    def is_constant_in_series(self, name: str, rows: SeriesRows) -> bool:
        """Whether a column is constant within every series, one of which has several steps."""
        if self.kinds[name] in NUMERIC:
            numbers = self.numbers(name)
            present = ~np.isnan(numbers)
            several = np.count_nonzero(present) > len(np.unique(rows.codes[present]))
            return bool(several and not len(rows.varying(numbers)))
        if self.kinds[name] in ("text", "timestamp"):
            return rows.n_series < self.n_rows and self.is_constant(name, rows.codes)
        return False

    def is_whole(self, name: str) -> bool:
        """Whether a column holds whole numbers, or nothing."""
        if self.kinds[name] == "empty":
            return True
        if self.kinds[name] not in ("integer", "number"):
            return False
        numbers = self.numbers(name)
        present = numbers[~np.isnan(numbers)]
        return bool(np.isfinite(present).all() and (present % 1 == 0).all())

    def is_unique(self, name: str) -> bool:
        """Whether every row has another value."""
        return self.n_rows > 1 and self.n_distinct(name) == self.n_rows

    # -- Messages

    def raise_if_misspelt(
        self, name: str, what: str, otherwise: str = "", *, times: bool = False
    ) -> None:
        """Raise an error for a text column that holds mostly numbers, or mostly times."""
        found = self.misspelt(name, times=times)
        if found is None:
            return
        kind = "times" if times else "numbers"
        raise DataError(
            f"{self._sample.place(found.row)}: {what.format(repr(name))} holds "
            f"{found.cell[:40]!r}, but {kind} in {found.n_right:,} of the first {found.n_cells:,} "
            f"rows. Correct the value{'' if times else ', empty the cell if it is missing,'} or "
            f"drop the row{otherwise}"
        )

    def misspelt(self, name: str, *, times: bool = False) -> Misspelt | None:
        """Return the first wrong cell of a text column that holds mostly numbers, or times."""
        if self.kinds[name] != "text":
            return None
        cells = [
            (row, cell)
            for row, cell in enumerate(self._rows[name].to_pylist())
            if cell is not None and cell not in MISSING
        ]
        is_right = is_timestamp if times else is_number
        wrong = [(row, cell) for row, cell in cells if not is_right(cell)]
        if not wrong or 2 * len(wrong) >= len(cells):
            return None
        return Misspelt(*wrong[0], len(cells) - len(wrong), len(cells))

    def holds_numbers(self, name: str) -> bool:
        """Whether all cells of a text column are numbers, perhaps with a decimal comma."""
        if self.kinds[name] != "text":
            return False
        cells = [cell for cell in self._rows[name].to_pylist() if cell and cell not in MISSING]
        return bool(cells) and all(map(is_number, cells))

    def first_text(self, name: str) -> str:
        """Return the first cell of a text column that is not missing; nothing if all are."""
        column = self._rows[name].drop_null()
        return str(column[0].as_py()) if len(column) else ""

    def example(self, name: str) -> str:
        """Describe the values of a column: text that is not a number, if there is some."""
        if not len(self._rows[name].drop_null()):
            return "no value in its first rows"
        if self.kinds[name] == "text":
            texts = (text for text in self._rows[name].to_pylist() if text is not None)
            wrong = (text for text in texts if text not in MISSING and not is_number(text))
            return f"text such as {next(wrong, self.first_text(name))!r}"
        return f"values of type {self._rows.schema.field(name).type}"
