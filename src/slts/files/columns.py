"""The role of each column of a table: requested, or guessed from names, types and the first rows.

A guess is made only if names or values are clear; it is returned, so that people can see it.
Otherwise the error lists the columns and the option to set.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from slts._typing import IntArray
from slts.errors import DataError
from slts.extras import LazyModule
from slts.files.dataset import Columns
from slts.files.tables import Chunk

pa: Any = LazyModule("pyarrow", "io")

Kind = Literal["number", "integer", "boolean", "text", "moment", "list", "other"]
NUMERIC = ("number", "integer", "boolean")
# Marks columns that come from names of folders. The first rows hold few of their values, so that
# they are never guessed as time or channel, and as id or label only by their names.
FROM_FOLDER = {b"slts": b"folder"}

_ID_NAMES = (
    "id", "seriesid", "series", "caseid", "case", "instanceid", "instance", "sampleid",
    "recordingid", "recording", "recordid", "record", "sequenceid", "sequence", "seqid", "seq",
    "trialid", "trial", "sessionid", "session", "episodeid", "episode", "runid", "run", "trackid",
    "track", "utterance", "unitid", "unit", "uid", "uuid", "key", "sample", "subject", "patient",
    "participant", "file", "filename", "name",
)  # fmt: skip
_TIME_NAMES = (
    "time", "t", "timestamp", "timestep", "datetime", "date", "timepoint", "timeindex", "step",
    "tick", "frame", "index", "seconds", "sec", "ms",
)  # fmt: skip
_LABEL_NAMES = ("label", "class", "classlabel", "target", "category", "y")
_LABEL_KINDS: tuple[Kind, ...] = ("text", "integer", "boolean", "number")
# Row numbers that pandas and Dask write with a frame.
_ROW_NUMBERS = re.compile(r"|Unnamed: \d+|__index_level_\d+__|__null_dask_index__")
# Cells that Arrow reads as missing values.
MISSING = (
    "", "#N/A", "#N/A N/A", "#NA", "-1.#IND", "-1.#QNAN", "-NaN", "-nan", "1.#IND", "1.#QNAN",
    "N/A", "NA", "NULL", "NaN", "n/a", "nan", "null",
)  # fmt: skip


@dataclass(frozen=True)
class RequestedColumns:
    """What the caller says about the columns.

    Attributes
    ----------
    id, time, label
        Names of columns; None means that they are guessed.
    channels
        Names of the channels; ``"c1..c12"`` means all columns from the first to the second.
    expect
        Channels of a trained model; they are read in this order, unless `channels` names others.
    classes
        Labels of a trained model; they tell its label from other columns that are not channels.
    groups
        Name of the column with the groups; None means that there are none.
    skip
        See `Columns`.
    """

    id: str | None = None
    time: str | None = None
    label: str | None = None
    channels: str | Sequence[str] | None = None
    expect: Sequence[str] | None = None
    classes: Sequence[object] | None = None
    groups: str | None = None
    skip: bool = False

    def require_none(self, source: str) -> None:
        """Raise an error if a column of a source without named columns is requested."""
        for role in ("id", "time", "label", "channels", "groups"):
            if getattr(self, role) is not None:
                raise DataError(
                    f"{source} has no named columns, so --{role} ({role}=) cannot be used"
                )


def kind_of(dtype: Any) -> Kind:
    """Return what an Arrow type holds."""
    types = pa.types
    if types.is_dictionary(dtype):
        dtype = dtype.value_type
    if types.is_boolean(dtype):
        return "boolean"
    if types.is_integer(dtype):
        return "integer"
    if types.is_floating(dtype) or types.is_decimal(dtype):
        return "number"
    if types.is_string(dtype) or types.is_large_string(dtype) or types.is_string_view(dtype):
        return "text"
    if types.is_temporal(dtype):
        return "moment"
    if types.is_list(dtype) or types.is_large_list(dtype) or types.is_fixed_size_list(dtype):
        return "list"
    return "other"


def is_number(text: str) -> bool:
    """Tell whether text is a number, with a decimal point or a decimal comma."""
    try:
        float(text.replace(",", ".", 1))
    except ValueError:
        return False
    return True


def resolve_columns(
    sample: Chunk, requested: RequestedColumns, *, one_series: bool = False
) -> Columns:
    """Find the role of each column of a table.

    Parameters
    ----------
    sample : Chunk
        The first rows.
    requested : RequestedColumns
        The roles that are known.
    one_series : bool
        Whether the table is one series; it then has neither identifiers nor labels.

    Returns
    -------
    Columns
        Columns that exist and have suitable types.

    Raises
    ------
    DataError
        If a column does not exist, has an unsuitable type, or cannot be guessed.
    """
    if not len(sample):
        raise DataError(f"{sample.file} has no rows")
    return _Resolver(sample, requested).resolve(one_series)


class _Resolver:
    def __init__(self, sample: Chunk, requested: RequestedColumns) -> None:
        self._sample = sample
        self._rows = sample.rows
        self._file = sample.file
        self._requested = requested
        schema = self._rows.schema
        self._kinds: dict[str, Kind] = {field.name: kind_of(field.type) for field in schema}
        self._from_folders = {field.name for field in schema if field.metadata == FROM_FOLDER}
        self._lists = "list" in self._kinds.values()
        self._taken: set[str] = set()
        if len(self._kinds) < len(schema.names):
            twice = next(name for name in schema.names if schema.names.count(name) > 1)
            raise DataError(f"{self._file} has two columns named {twice!r}: rename one")

    def resolve(self, one_series: bool) -> Columns:
        requested = self._requested
        channels = self._requested_channels()
        for role in ("id", "time", "label", "groups"):
            name = getattr(requested, role)
            if name is not None:
                self._take(name, role)
        time = self._time()
        id = None if one_series else self._id()
        label = requested.label
        if label is None and not one_series:
            label = self._guess_label(id)
            if channels is not None and requested.classes is not None:
                label = self._label_of_model(label, id, requested.classes)
        if label is not None:
            self._taken.add(label)
        guessed = {
            role
            for role, name in (("id", id), ("time", time), ("label", label))
            if name is not None and getattr(requested, role) is None
        }
        if channels is None:
            channels = self._guess_channels()
            guessed.add("channels")
        ignored = tuple(name for name in self._kinds if name not in self._taken | set(channels))
        return Columns(
            id,
            time,
            label,
            channels,
            frozenset(guessed),
            ignored,
            self._lists,
            requested.groups,
            requested.skip,
        )

    def _take(self, name: str, role: str) -> None:
        """Give a requested column its role."""
        if name not in self._kinds:
            raise DataError(
                f"{self._file} has no column {name!r} ({role}); its columns are "
                f"{self._all_columns()}"
            )
        if name in self._taken:
            raise DataError(f"{self._file}: column {name!r} cannot have two roles ({role})")
        what = f"{self._file}: column {name!r} ({role})"
        if role != "channels" and self._kinds[name] in ("list", "other"):
            dtype = str(self._rows.schema.field(name).type)
            held = "bytes, not UTF-8 text" if "binary" in dtype else f"values of type {dtype}"
            raise DataError(f"{what} holds {held}; expected text or numbers")
        if role == "time" and self._lists:
            raise DataError(
                f"{self._file} has one row per series and one list per channel. Steps have the "
                f"order of the lists, so a time column cannot be used"
            )
        if role == "time" and self._kinds[name] in ("text", "boolean"):
            self._refuse_misspelt(name, "column {} (time)")
            raise DataError(
                f"{what} holds {self._example(name)}, expected numbers or times such as "
                f"2024-01-31T12:00:00"
            )
        self._taken.add(name)

    def _requested_channels(self) -> tuple[str, ...] | None:
        expect, given = self._requested.expect, self._requested.channels
        names = expect if given is None else given
        if names is None:
            return None
        if isinstance(names, str):
            # A comma may be part of the name of a column.
            split = [name.strip() for name in names.split(",") if name.strip()]
            names = [names] if names in self._kinds else split
        chosen = tuple(column for name in names for column in self._expanded(name))
        if not chosen or len(set(chosen)) != len(chosen):
            raise DataError(f"channels must be one or more distinct columns, got {list(names)}")
        absent = [name for name in chosen if name not in self._kinds]
        if absent and given is None:
            raise DataError(
                f"{self._file} has no column {absent[0]!r}, a channel the model was trained with; "
                f"its columns are {self._all_columns()}. Name the columns to use for "
                f"{', '.join(chosen)}: --channels a,b, or slts.scan_series(path, channels=[...])"
            )
        for name in chosen:
            self._take(name, "channels")
            self._require_numbers(name)
        # The same columns in another order: names decide, not positions.
        return chosen if expect is None or set(expect) != set(chosen) else tuple(expect)

    def _expanded(self, name: str) -> Sequence[str]:
        first, dots, last = name.partition("..")
        if dots and name not in self._kinds and first in self._kinds and last in self._kinds:
            names = list(self._kinds)
            return names[names.index(first) : names.index(last) + 1] or [name]
        return [name]

    def _require_numbers(self, name: str) -> None:
        kind = self._kinds[name]
        if self._lists:
            dtype = self._rows.schema.field(name).type
            if kind != "list" or kind_of(dtype.value_type) not in NUMERIC:
                raise DataError(
                    f"{self._file}: channel {name!r} has type {dtype}, expected lists of numbers, "
                    f"one number per step"
                )
        elif kind not in NUMERIC and not pa.types.is_null(self._rows.schema.field(name).type):
            if self._requested.skip and self._misspelt(name):
                return
            self._refuse_misspelt(name, "channel {}")
            raise DataError(
                f"{self._file}: channel {name!r} holds {self._example(name)}, expected numbers"
            )

    # -- Guesses

    def _time(self) -> str | None:
        if self._lists or self._requested.time is not None:
            return self._requested.time
        named = self._with_name(_TIME_NAMES, ("number", "integer", "moment"))
        found = next((name for name in named if name not in self._from_folders), None)
        moments = [name for name in self._free() if self._kinds[name] == "moment"]
        if found is None and len(moments) == 1:
            found = moments[0]
        if found is not None:
            self._taken.add(found)
        return found

    def _id(self) -> str | None:
        if self._requested.id is not None:
            return self._requested.id
        kinds: tuple[Kind, ...] = ("text", "integer", "moment")
        endings = (n for n in self._free(kinds) if re.search(r"(_id|[a-z]I[dD])$", n))
        named = list(dict.fromkeys([*self._with_name(_ID_NAMES, kinds), *endings]))
        found = next(iter(named), None) if self._lists else self._id_in_long_form(named)
        if found is not None:
            self._taken.add(found)
        return found

    def _id_in_long_form(self, named: Sequence[str]) -> str:
        """Choose by names and by how values repeat."""
        # A column with a different value in every row does not identify series.
        repeated = [name for name in named if self._repeats(name)]
        contiguous = [name for name in repeated if self._is_contiguous(name)]
        others = {*self._with_name(_LABEL_NAMES, ("text", "integer")), *self._from_folders}
        blocks = [n for n in self._free() if n not in others and self._has_blocks(n)]
        # Integers that start again and again may count steps: they come late.
        for candidates in (self._finest(contiguous), self._finest(blocks), repeated, named):
            if candidates:
                return candidates[0]
        raise DataError(
            f"{self._file}: it is not clear which column identifies the series. Name it with --id "
            f"(id=); the columns are {self._all_columns()}"
        )

    def _finest(self, names: Sequence[str]) -> list[str]:
        """Keep the columns within whose values all others are constant: recordings, not people."""
        return [
            name
            for name in names
            if all(self._is_constant(other, self._codes(name)) for other in names)
        ]

    def _guess_label(self, id: str | None) -> str | None:
        # x, y, z are coordinates.
        has_x = any(_simplified(name) == "x" for name in self._kinds)
        named = [
            name
            for name in self._with_name(_LABEL_NAMES, _LABEL_KINDS)
            if not (has_x and _simplified(name) == "y")
        ]
        texts = [
            name
            for name in self._free(("text",))
            if name not in self._from_folders and self._n_distinct(name) > 1
        ]
        if not self._lists and id is not None:
            codes = self._codes(id)
            if named:
                # Text with such a name is a label even if it varies, which is an error later.
                return next(
                    (n for n in named if self._kinds[n] == "text" or self._is_constant(n, codes)),
                    None,
                )
            n_series = len(np.unique(codes))
            texts = [
                n for n in texts if self._is_constant(n, codes) and self._n_distinct(n) < n_series
            ]
        if named:
            return named[0]
        return texts[0] if len(texts) == 1 else None

    def _label_of_model(
        self, guess: str | None, id: str | None, classes: Sequence[object]
    ) -> str | None:
        """Keep a guess that holds classes of the model, or take the only column that does.

        Numbers must be all of the classes: numbers of folds and sessions are often some of them.
        """
        known = {_comparable(name) for name in classes}
        values = {
            name: {_comparable(value) for value in self._rows[name].unique().to_pylist()}
            for name in self._free(("text", "number", "integer", "boolean"))
        }
        if guess is not None:
            named = guess in self._with_name(_LABEL_NAMES, _LABEL_KINDS)
            # A column that is named like a label may hold classes that the model does not know.
            if values[guess] & known if named else values[guess] <= known:
                return guess
        found = [
            name
            for name in values
            if values[name] == known or (self._kinds[name] == "text" and values[name] <= known)
        ]
        if id is not None and not self._lists:
            found = [name for name in found if self._is_constant(name, self._codes(id))]
        complete = [name for name in found if values[name] == known]
        return next((only[0] for only in (found, complete) if len(only) == 1), guess)

    def _guess_channels(self) -> tuple[str, ...]:
        free = [name for name in self._free() if name not in self._from_folders]
        kinds = ("list",) if self._lists else ("number", "integer")
        found = tuple(name for name in free if self._kinds[name] in kinds)
        if not self._lists:
            for name in free:
                self._refuse_misspelt(
                    name, "column {}", ", or name the columns to read with --channels (channels=)"
                )
        if not found:
            raise DataError(
                f"{self._file} has no numeric column left for the channels; its columns are "
                f"{self._all_columns()}"
            )
        for name in found:
            self._require_numbers(name)
        return found

    # -- Properties of columns

    def _free(self, kinds: Sequence[Kind] | None = None) -> Iterator[str]:
        """Columns without a role, perhaps of some kinds only."""
        return (
            name
            for name, kind in self._kinds.items()
            if (kinds is None or kind in kinds)
            and name not in self._taken
            and not _ROW_NUMBERS.fullmatch(name)
        )

    def _with_name(self, names: Sequence[str], kinds: Sequence[Kind]) -> Iterator[str]:
        """Columns with one of the names, in the order of the names."""
        free = list(self._free(kinds))
        for wanted in names:
            yield from (name for name in free if _simplified(name) == wanted)

    def _codes(self, name: str) -> IntArray:
        """Integers that are equal where the values of a column are equal."""
        column = self._rows[name].combine_chunks()
        if not hasattr(column, "indices"):
            column = column.dictionary_encode()
        codes: IntArray = column.indices.fill_null(-1).to_numpy(zero_copy_only=False)
        return codes

    def _n_distinct(self, name: str) -> int:
        return len(np.unique(self._codes(name)))

    def _repeats(self, name: str) -> bool:
        return self._n_distinct(name) < max(2, len(self._sample))

    def _is_contiguous(self, name: str) -> bool:
        """Whether equal values are always in consecutive rows."""
        return 1 + int(np.count_nonzero(np.diff(self._codes(name)))) == self._n_distinct(name)

    def _has_blocks(self, name: str) -> bool:
        """Whether a column has several values, each in one block of about two rows or more."""
        if self._kinds[name] not in ("text", "integer"):
            return False
        few = 1 < self._n_distinct(name) <= len(self._sample) // 2
        return few and self._is_contiguous(name)

    def _is_constant(self, name: str, codes: IntArray) -> bool:
        """Whether a column is constant among rows of equal codes."""
        pairs = np.unique(np.stack([codes, self._codes(name)]), axis=1)
        return bool(pairs.shape[1] == len(np.unique(codes)))

    # -- Messages

    def _refuse_misspelt(self, name: str, what: str, otherwise: str = "") -> None:
        """Raise an error for a text column that holds mostly numbers."""
        found = self._misspelt(name)
        if found is None:
            return
        row, cell, n_numbers, n_cells = found
        raise DataError(
            f"{self._sample.place(row)}: {what.format(repr(name))} holds {cell[:40]!r}, but "
            f"numbers in {n_numbers:,} of the first {n_cells:,} rows. Correct the value or drop "
            f"the row{otherwise}"
        )

    def _misspelt(self, name: str) -> tuple[int, str, int, int] | None:
        """Return row and text of the first cell of a text column that is not a number.

        Also the number of cells that are numbers, and of all cells; None if less than half of them
        are numbers.
        """
        if self._kinds[name] != "text":
            return None
        cells = [
            (row, cell)
            for row, cell in enumerate(self._rows[name].to_pylist())
            if cell is not None and cell not in MISSING
        ]
        wrong = [(row, cell) for row, cell in cells if not is_number(cell)]
        if not wrong or 2 * len(wrong) >= len(cells):
            return None
        return *wrong[0], len(cells) - len(wrong), len(cells)

    def _example(self, name: str) -> str:
        column = self._rows[name].drop_null()
        if self._kinds[name] == "text" and len(column):
            return f"text such as {column[0].as_py()!r}"
        if not len(column):
            return "no value in its first rows"
        return f"values of type {self._rows.schema.field(name).type}"

    def _all_columns(self) -> str:
        names = [repr(name) for name in self._kinds]
        shown = ", ".join(names[:20])
        return f"{shown} and {len(names) - 20} more" if len(names) > 20 else shown


def _comparable(label: object) -> str | float:
    """Return a value that is equal for labels with the same meaning in text and other files."""
    text = str(label).lower()
    try:
        number = float(text)
    except ValueError:
        return text
    return number if math.isfinite(number) else text


def _simplified(name: str) -> str:
    return re.sub(r"[^a-z0-9]", "", name.lower())
