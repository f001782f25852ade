"""Which column of a table is what: as told, or guessed from names, types and the first rows.

A guess is made where names or values speak clearly and returned as such, for people to see; where
they do not, the error lists the columns and says which option to give.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from slts._typing import IntArray
from slts.errors import DataError
from slts.extras import import_extra
from slts.files.dataset import Columns

__all__ = ["NUMERIC", "OF_FOLDER", "Wanted", "kind_of", "resolve_columns"]

Kind = Literal["number", "integer", "boolean", "text", "moment", "list", "other"]
NUMERIC = ("number", "integer", "boolean")
# Marks fields of a schema that names of folders stand for: never guessed to be time or channel, and
# id or label only by their names, as few of their values are in the first rows.
OF_FOLDER = {b"slts": b"folder"}

_IDS = (
    "id", "seriesid", "series", "caseid", "case", "instanceid", "instance", "sampleid",
    "recordingid", "recording", "recordid", "record", "sequenceid", "sequence", "seqid", "seq",
    "trialid", "trial", "sessionid", "session", "episodeid", "episode", "runid", "run", "trackid",
    "track", "utterance", "unitid", "unit", "uid", "uuid", "key", "sample", "subject", "patient",
    "participant", "file", "filename", "name",
)  # fmt: skip
_TIMES = (
    "time", "t", "timestamp", "timestep", "datetime", "date", "timepoint", "timeindex", "step",
    "tick", "frame", "index", "seconds", "sec", "ms",
)  # fmt: skip
_LABELS = ("label", "class", "classlabel", "target", "category", "y")
# Row numbers that pandas and Dask write with a frame.
_ROW_NUMBERS = re.compile(r"|Unnamed: \d+|__index_level_\d+__|__null_dask_index__")


# Cells that Arrow takes for missing values, which reading complains about by itself.
_MISSING = (
    "", "#N/A", "#N/A N/A", "#NA", "-1.#IND", "-1.#QNAN", "-NaN", "-nan", "1.#IND", "1.#QNAN",
    "N/A", "NA", "NULL", "NaN", "n/a", "nan", "null",
)  # fmt: skip


@dataclass(frozen=True)
class Wanted:
    """What the caller says about the columns.

    Attributes
    ----------
    id, time, label
        Names of columns; None leaves them to be guessed.
    channels
        Names of the channels; ``"c1..c12"`` stands for the columns from one to the other.
    expect
        Channels that a model was trained with: taken, in this order, unless `channels` names
        others.
    classes
        Labels that a model knows: they tell its label from other columns that are no channels.
    """

    id: str | None = None
    time: str | None = None
    label: str | None = None
    channels: str | Sequence[str] | None = None
    expect: Sequence[str] | None = None
    classes: Sequence[object] | None = None


def kind_of(dtype: Any) -> Kind:
    """Say what a type of Arrow holds, as far as reading series is concerned."""
    types: Any = import_extra("pyarrow", "io").types
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


def resolve_columns(
    sample: Any,
    wanted: Wanted,
    where: str,
    *,
    place: Callable[[int], str],
    one_series: bool = False,
) -> Columns:
    """Find the columns of a table.

    Parameters
    ----------
    sample : pyarrow.Table
        The first rows.
    wanted : Wanted
        What is known already.
    where : str
        Name of the file, for messages.
    place : callable
        Names a row of `sample` in its file.
    one_series : bool
        Whether the table is one series: then it has neither identifiers nor labels.

    Returns
    -------
    Columns
        Columns that exist and hold what they should.

    Raises
    ------
    DataError
        If a column is missing, is no number where it must be, or cannot be guessed.
    """
    if sample.num_rows == 0:
        raise DataError(f"{where} has no rows")
    return _Resolver(sample, wanted, where, place).resolve(one_series)


class _Resolver:
    def __init__(
        self, sample: Any, wanted: Wanted, where: str, place: Callable[[int], str]
    ) -> None:
        self._sample = sample
        self._wanted = wanted
        self._where = where
        self._place = place
        self._kinds: dict[str, Kind] = {f.name: kind_of(f.type) for f in sample.schema}
        self._folders = {f.name for f in sample.schema if f.metadata == OF_FOLDER}
        self._taken: set[str] = set()
        if len(self._kinds) < len(sample.schema.names):
            names = sample.schema.names
            twice = next(name for name in names if names.count(name) > 1)
            raise DataError(f"{where} has two columns named {twice!r}: rename one")

    @property
    def _lists(self) -> bool:
        """Whether every row is a series, with lists in its cells."""
        return "list" in self._kinds.values()

    def resolve(self, one_series: bool) -> Columns:
        wanted = self._wanted
        channels = self._named_channels()
        for role in ("id", "time", "label"):
            name = getattr(wanted, role)
            if name is not None:
                self._take(name, role)
        time = self._time()
        series = None if one_series else self._id()
        label = wanted.label
        if label is None and not one_series:
            label = self._guess_label(series)
            if channels is not None and wanted.classes is not None:
                label = self._label_of_model(label, series, wanted.classes)
        if label is not None:
            self._taken.add(label)
        guessed = {
            role
            for role, name in (("id", series), ("time", time), ("label", label))
            if name is not None and getattr(wanted, role) is None
        }
        if channels is None:
            channels = self._other_channels()
            guessed.add("channels")
        unused = (name for name in self._kinds if name not in self._taken | set(channels))
        return Columns(series, time, label, channels, frozenset(guessed), tuple(unused))

    def _take(self, name: str, role: str) -> None:
        if name not in self._kinds:
            raise DataError(
                f"{self._where} has no column {name!r} ({role}); it has {self._list_of_columns()}"
            )
        if name in self._taken:
            raise DataError(f"{self._where}: column {name!r} cannot be two things at once ({role})")
        if role != "channels" and self._kinds[name] in ("list", "other"):
            dtype = str(self._sample.schema.field(name).type)
            what = "bytes, and no text in UTF-8" if "binary" in dtype else f"values of type {dtype}"
            raise DataError(
                f"{self._where}: column {name!r} ({role}) holds {what}; expected text or numbers"
            )
        if role == "time" and self._lists:
            raise DataError(
                f"{self._where} has one row per series and a list per channel: steps are in the "
                f"order of the lists, so there is no use for a column of times"
            )
        if role == "time" and self._kinds[name] in ("text", "boolean"):
            self._refuse_misfit(name, "column {} (time)")
            raise DataError(
                f"{self._where}: column {name!r} (time) holds {self._example(name)}, expected "
                f"numbers or moments such as 2024-01-31T12:00:00"
            )
        self._taken.add(name)

    def _named_channels(self) -> tuple[str, ...] | None:
        given = self._wanted.channels
        names = given if given is not None else self._wanted.expect
        if names is None:
            return None
        chosen = tuple(
            column
            for name in (self._separated(names) if isinstance(names, str) else names)
            for column in self._spelled_out(name)
        )
        if not chosen or len(set(chosen)) != len(chosen):
            raise DataError(f"channels must be one or more distinct columns, got {list(names)}")
        absent = [name for name in chosen if name not in self._kinds]
        if absent and given is None:
            raise DataError(
                f"{self._where} has no column {absent[0]!r}, a channel the model was trained with; "
                f"it has {self._list_of_columns()}. Say which columns stand for "
                f"{', '.join(chosen)}: --channels a,b, or slts.scan_series(path, channels=[...])"
            )
        for name in chosen:
            self._take(name, "channels")
            self._require_numbers(name)
        expect = self._wanted.expect
        if expect is not None and set(expect) == set(chosen):
            # The same columns in another order; names say more than places.
            return tuple(expect)
        return chosen

    def _separated(self, names: str) -> list[str]:
        """Names between commas, unless a column has this very name."""
        if names in self._kinds:
            return [names]
        return [name.strip() for name in names.split(",") if name.strip()]

    def _spelled_out(self, name: str) -> Sequence[str]:
        first, dots, last = name.partition("..")
        if dots and name not in self._kinds and first in self._kinds and last in self._kinds:
            names = list(self._kinds)
            return names[names.index(first) : names.index(last) + 1] or [name]
        return [name]

    def _require_numbers(self, name: str) -> None:
        kind = self._kinds[name]
        if self._lists:
            dtype = self._sample.schema.field(name).type
            if kind != "list" or kind_of(dtype.value_type) not in NUMERIC:
                raise DataError(
                    f"{self._where}: channel {name!r} has type {dtype}, expected lists of numbers, "
                    f"one number per step"
                )
        elif kind not in NUMERIC:
            self._refuse_misfit(name, "channel {}")
            raise DataError(
                f"{self._where}: channel {name!r} holds {self._example(name)}, expected numbers"
            )

    def _time(self) -> str | None:
        if self._lists or self._wanted.time is not None:
            return self._wanted.time
        allowed: Sequence[Kind] = ("number", "integer", "moment")
        moments = [name for name in self._free() if self._kinds[name] == "moment"]
        found = next((n for n in self._with_name(_TIMES, allowed) if n not in self._folders), None)
        if found is None and len(moments) == 1:
            found = moments[0]
        if found is not None:
            self._taken.add(found)
        return found

    def _id(self) -> str | None:
        if self._wanted.id is not None:
            return self._wanted.id
        allowed: Sequence[Kind] = ("text", "integer", "moment")
        named = list(self._with_name(_IDS, allowed))
        named += [
            name
            for name in self._free()
            if re.search(r"(_id|[a-z]I[dD])$", name)
            and self._kinds[name] in allowed
            and name not in named
        ]
        found = next(iter(named), None) if self._lists else self._id_of_rows(named)
        if found is not None:
            self._taken.add(found)
        return found

    def _id_of_rows(self, named: Sequence[str]) -> str:
        """Choose by names and by how values repeat, in long form."""
        # A number of its own for every row is no name of a series.
        repeated = [name for name in named if self._repeats(name)]
        together = [name for name in repeated if self._stands_together(name)]
        labels = set(self._with_name(_LABELS, ("text", "integer")))
        no_ids = labels | self._folders
        blocks = [name for name in self._free() if name not in no_ids and self._in_blocks(name)]
        # Integers that start again and again may be numbers of steps: they come late.
        for candidates in (self._finest(together), self._finest(blocks), repeated, named):
            if candidates:
                return candidates[0]
        raise DataError(
            f"{self._where}: which column tells the series apart? Name it with --id (id=); the "
            f"columns are {self._list_of_columns()}"
        )

    def _finest(self, names: Sequence[str]) -> list[str]:
        """Columns within whose values all the others are constant: recordings, not speakers."""
        return [
            name
            for name in names
            if all(self._constant(other, self._codes(name)) for other in names)
        ]

    def _guess_label(self, series: str | None) -> str | None:
        named = [
            name
            for name in self._with_name(_LABELS, ("text", "integer", "boolean", "number"))
            # x, y, z are coordinates.
            if _plain(name) != "y" or not any(_plain(other) == "x" for other in self._kinds)
        ]
        free = [name for name in self._free() if name not in self._folders]
        texts = [name for name in free if self._kinds[name] == "text" and self._distinct(name) > 1]
        if self._lists or series is None:
            return named[0] if named else (texts[0] if len(texts) == 1 else None)
        codes = self._codes(series)
        steady = [name for name in named if self._constant(name, codes)]
        if named:
            # Text named so is a label even where it varies, which reading will complain about.
            return next((n for n in named if n in steady or self._kinds[n] == "text"), None)
        n_series = len(np.unique(codes))
        texts = [n for n in texts if self._constant(n, codes) and self._distinct(n) < n_series]
        return texts[0] if len(texts) == 1 else None

    def _label_of_model(
        self, guess: str | None, series: str | None, classes: Sequence[object]
    ) -> str | None:
        """Keep a guess that holds classes of the model, or take the only column that does.

        Numbers must be all of its classes: those of folds and sessions are often some of them.
        """
        known = {_spelling(name) for name in classes}
        values = {
            name: {_spelling(value) for value in self._sample[name].unique().to_pylist()}
            for name in self._free()
            if self._kinds[name] in ("text", *NUMERIC)
        }
        if guess is not None:
            by_name = guess in self._with_name(_LABELS, ("text", "integer", "boolean", "number"))
            # What is named a label is one, even of classes that the model does not know.
            if values[guess] & known if by_name else values[guess] <= known:
                return guess
        found = [
            name
            for name in values
            if values[name] == known or (self._kinds[name] == "text" and values[name] <= known)
        ]
        if series is not None and not self._lists:
            found = [name for name in found if self._constant(name, self._codes(series))]
        complete = [name for name in found if values[name] == known]
        return next((only[0] for only in (found, complete) if len(only) == 1), guess)

    def _other_channels(self) -> tuple[str, ...]:
        kinds = ("list",) if self._lists else ("number", "integer")
        free = [name for name in self._free() if name not in self._folders]
        found = tuple(name for name in free if self._kinds[name] in kinds)
        for name in free:
            if self._kinds[name] == "text" and not self._lists:
                self._refuse_misfit(
                    name, "column {}", ", or name the columns to take with --channels (channels=)"
                )
        if not found:
            raise DataError(
                f"{self._where} has no column of numbers left for the channels; its columns are "
                f"{self._list_of_columns()}"
            )
        for name in found:
            self._require_numbers(name)
        return found

    def _free(self) -> Iterator[str]:
        return (n for n in self._kinds if n not in self._taken and not _ROW_NUMBERS.fullmatch(n))

    def _with_name(self, names: Sequence[str], kinds: Sequence[Kind]) -> Iterator[str]:
        """Columns with one of the names, the most telling first."""
        free = [name for name in self._free() if self._kinds[name] in kinds]
        for wanted in names:
            yield from (name for name in free if _plain(name) == wanted)

    def _codes(self, name: str) -> IntArray:
        """Numbers that are equal where the first values of a column are."""
        column = self._sample[name].combine_chunks()
        if not hasattr(column, "indices"):
            column = column.dictionary_encode()
        codes: IntArray = column.indices.fill_null(-1).to_numpy(zero_copy_only=False)
        return codes

    def _distinct(self, name: str) -> int:
        return len(np.unique(self._codes(name)))

    def _repeats(self, name: str) -> bool:
        return self._distinct(name) < max(2, int(self._sample.num_rows))

    def _stands_together(self, name: str) -> bool:
        """Whether no value comes back after another."""
        return 1 + int(np.count_nonzero(np.diff(self._codes(name)))) == self._distinct(name)

    def _in_blocks(self, name: str) -> bool:
        """Whether a column has several values, each in one block of more than one row or so."""
        if self._kinds[name] not in ("text", "integer"):
            return False
        few = 1 < self._distinct(name) <= self._sample.num_rows // 2
        return few and self._stands_together(name)

    def _constant(self, name: str, codes: IntArray) -> bool:
        pairs = np.unique(np.stack([codes, self._codes(name)]), axis=1)
        return bool(pairs.shape[1] == len(np.unique(codes)))

    def _refuse_misfit(self, name: str, what: str, otherwise: str = "") -> None:
        """Refuse text most of which is numbers: a channel with a misspelt value."""
        if self._kinds[name] != "text":
            return
        cells = [
            (row, cell)
            for row, cell in enumerate(self._sample[name].to_pylist())
            if cell is not None and cell not in _MISSING
        ]
        misfits = [(row, cell) for row, cell in cells if not _is_number(cell)]
        if not misfits or 2 * len(misfits) >= len(cells):
            return
        row, cell = misfits[0]
        raise DataError(
            f"{self._place(row)}: {what.format(repr(name))} holds {cell[:40]!r}, and numbers in "
            f"{len(cells) - len(misfits):,} of the first {len(cells):,} rows. Correct it or drop "
            f"the row{otherwise}"
        )

    def _example(self, name: str) -> str:
        column = self._sample[name].drop_null()
        if self._kinds[name] == "text" and len(column):
            return f"text such as {column[0].as_py()!r}"
        if not len(column):
            return "nothing in its first rows"
        return f"values of type {self._sample.schema.field(name).type}"

    def _list_of_columns(self) -> str:
        names = [repr(name) for name in self._kinds]
        shown = ", ".join(names[:20])
        return f"{shown} and {len(names) - 20} more" if len(names) > 20 else shown


def _is_number(text: str) -> bool:
    try:
        # With a decimal comma too.
        float(text.replace(",", ".", 1))
    except ValueError:
        return False
    return True


def _spelling(label: object) -> str | float:
    """What is equal for labels that may be meant by each other, in text files and others."""
    text = str(label).lower()
    try:
        number = float(text)
    except ValueError:
        return text
    return number if math.isfinite(number) else text


def _plain(name: str) -> str:
    return re.sub(r"[^a-z0-9]", "", name.lower())
