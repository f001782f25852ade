"""Which column identifies the series, or whether every row is one: by names and repeated values."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

import numpy as np

from slts.columns.facts import (
    ID_NAMES,
    LABEL_NAMES,
    NOT_UTF8,
    PEOPLE,
    ColumnFacts,
    is_time_name,
    numbered_columns,
    simplified,
)
from slts.columns.roles import RequestedColumns, shortened
from slts.columns.rows import NUMERIC, ROW_NUMBERS, Chunk, Kind
from slts.columns.times import can_be_time, is_like_time
from slts.errors import DataError
from slts.quantities import list_first

STEP_KINDS: tuple[Kind, ...] = ("number", "integer", "empty")
_LABEL_KINDS: tuple[Kind, ...] = ("text", "integer", "boolean", "number")
# Numbers of numbered columns from which a table may have one series per row: if every row has an
# identifier, and without.
_FEW_STEPS, _MANY_STEPS = 3, 8
# Columns that a message lists.
MOST_NAMED = 8


class IdentifierGuesses(ColumnFacts):
    """The identifier, from facts about the columns and the roles that have been given so far."""

    def __init__(
        self,
        sample: Chunk,
        requested: RequestedColumns,
        has_header: bool,
        id_columns: Sequence[str] = (),
    ) -> None:
        super().__init__(sample)
        self._requested = requested
        self._has_header = has_header
        self._lists = "list" in self.kinds.values()
        self._id_columns = id_columns
        self._taken: set[str | None] = set(id_columns)
        names = self._rows.schema.names
        if len(self.kinds) < len(names):
            twice = next(name for name in names if names.count(name) > 1)
            raise DataError(f"{self.file} has two columns named {twice!r}: rename one")

    # -- One series per row

    def _steps(self, channels: tuple[str, ...] | None) -> tuple[str, ...]:
        """Return the columns that may be the steps of series, one series per row."""
        if channels is not None:
            return channels
        free = tuple(self._free())
        if not self._has_header:
            return free
        steps = (n for n in free if self.kinds[n] in STEP_KINDS or self._is_skipped(n))
        return numbered_columns(free, set(steps))

    def _is_wide(self, steps: Sequence[str]) -> bool:
        """Tell whether every row is a series; raise an error if it may as well be a step."""
        requested, expected = self._requested, self._requested.expected
        if not self._has_header:
            return True
        if len(steps) < _FEW_STEPS or requested.time is not None or expected.channels is not None:
            return False
        has_time = any(is_time_name(name) and can_be_time(self, name) for name in self._free())
        if len(steps) < _MANY_STEPS and has_time:
            return False
        if requested.id is not None:
            self._raise_if_nearly_unique([] if has_time else [str(requested.id)], steps)
            return self.is_unique(str(requested.id))
        named = [name for name in self._with_id_names() if name not in steps]
        unique = [name for name in named if self.is_unique(name)]
        labels = [requested.label] if requested.label else self._named_labels()
        blocks = [
            name
            for name in self._free(("text", "integer"))
            if name not in (*steps, *labels, *unique)
            and self.repeats(name)
            and (name in named or self.has_blocks(name))
            and not is_like_time(self, name)
        ]
        if unique and not blocks:
            return True
        self._raise_if_nearly_unique([] if has_time else blocks, steps, unique)
        # A range of columns without a column that may identify series of several rows.
        is_range = not blocks and ".." in (requested.channels or "")
        if has_time or (len(steps) < _MANY_STEPS and not is_range):
            return False
        if expected.n_channels == 1 and not blocks:
            # These columns cannot be the channels of this model.
            return True
        series = [n for n in blocks if all(self.is_constant(k, self.codes(n)) for k in labels)]
        # Labels of steps change rarely from row to row, labels of series often.
        often = [n for n in labels if 10 * self.n_blocks(n) >= self.n_rows]
        if not series and (
            len(steps) == len(self.kinds) or (often and not self.is_contiguous(often[0]))
        ):
            return True
        # Classes one after the other: time_0, time_1, ... are times, and only the label is beside
        # them. t0, t1, ... may be temperatures.
        name = steps[0].rstrip("0123456789.")
        if labels and not blocks and is_time_name(name) and simplified(name) != "t":
            return True
        if any(simplified(n) not in PEOPLE and (n in named or not unique) for n in series):
            return False
        otherwise = ", or name the label with --label (label=)"
        if labels:
            otherwise = "" if blocks else ", or rename the steps to time_0, time_1 and so on"
        raise DataError(
            f"{self.file}: it is not clear whether a row is one step of a series, or a series "
            f"whose steps are the columns {shortened(steps)}. Name the column that identifies the "
            f"series with --id (id=): if it differs in every row, a row is a series. If there is "
            f"none, add one, such as the number of the row{otherwise}. The other "
            f"columns are {self._all_columns(without=steps)}"
        )

    def _raise_if_nearly_unique(
        self, names: Sequence[str], steps: Sequence[str], unique: Sequence[str] = ()
    ) -> None:
        """Raise an error if identifiers differ in most rows: rows are series, or series are short.

        `names` are all columns that may identify series of several rows, `unique` those that
        identify rows. Few columns, or columns that are named as channels, are no steps.
        """
        if len(steps) < _MANY_STEPS or self._requested.channels is not None:
            return
        n_distinct = [self.n_distinct(name) for name in names]
        if not names or not all(self.n_rows < 2 * n < 2 * self.n_rows for n in n_distinct):
            return
        name = names[0]
        _, first = np.unique(self.codes(name), return_index=True)
        again = int(np.setdiff1d(np.arange(self.n_rows), first)[0])
        raise DataError(
            f"{self._sample.place(again)}: {name!r} differs in most rows, but "
            f"{self._rows[name][again].as_py()!r} is repeated. If a row is a series, "
            + (f"use --id {unique[0]} (id=). " if unique else f"give each its own {name}. ")
            + "If a row is a step, name the time with --time (time=) or the channels with "
            "--channels (channels=)"
        )

    def _is_skipped(self, name: str) -> bool:
        """Tell whether a column has cells that are not numbers, whose series are left out."""
        return self._requested.skip and self.misspelt(name) is not None

    def _id_of_rows(self) -> str | None:
        if not self._has_header:
            return None
        named = self._with_id_names()
        return next((n for n in named if self._lists or self.is_unique(n)), None)

    # -- One step per row

    def _id_in_long_form(self) -> str:
        """Choose by names and by how values repeat."""
        named = list(self._with_id_names())
        # A column with a different value in every row does not identify series.
        repeated = [name for name in named if self.repeats(name)]
        contiguous = [name for name in repeated if self.is_contiguous(name)]
        expected = self._requested.expected
        labels = {*self._with_name(LABEL_NAMES, ("text", "integer")), expected.label}
        blocks = [
            name
            for name in self._in_files()
            if name not in labels and not is_like_time(self, name) and self.has_blocks(name)
        ]
        if all(simplified(name) in PEOPLE for name in contiguous):
            # People may have several series.
            contiguous, blocks = [], list(dict.fromkeys([*contiguous, *blocks]))
        # Integers that start again and again may count steps: they come late.
        for candidates in (self._finest(contiguous), self._finest(blocks), repeated):
            if candidates:
                return candidates[0]
        others = {*named, *self._named_labels()}
        numbers = [name for name in self._in_files(NUMERIC) if name not in others]
        if named and (self.n_rows == 1 or expected.channels):
            return named[0]
        # Rows with times are steps.
        has_time = any(map(is_time_name, self._free()))
        steps = [] if has_time or len(numbers) < _FEW_STEPS else numbers
        if_wide = (
            f"If a row is a series, name the columns of its steps: {self._as_requested(steps)}"
        )
        if named:
            otherwise = "Otherwise name" if steps else "Name"
            raise DataError(
                f"{self.file}: {named[0]!r} differs in every row, so every series would have one "
                f"step. {if_wide + '. ' if steps else ''}{otherwise} the column that identifies "
                f"the series with --id (id=)"
            )
        unreadable = [name for name, kind in self.kinds.items() if kind == "bytes"]
        hint = f". {not_utf8(unreadable[0])}" if unreadable else ""
        if len(steps) >= _MANY_STEPS:
            hint += f". {if_wide}"
        for name in self._with_name(ID_NAMES, ("number",)):
            hint += f". If it is {name!r}, although it holds decimal numbers, use --id {name}"
        raise DataError(
            f"{self.file}: it is not clear which column identifies the series. Name it with --id "
            f"(id=); the columns are {self._all_columns()}. If there is none, add one, or "
            f"put every series in a file of its own, in one folder{hint}"
        )

    def _raise_if_id_has_parts(self, id: str) -> None:
        """Raise an error if rows of equal identifiers may be several series, such as trials."""
        for name in self._with_name(ID_NAMES, ("text", "integer")):
            if self.is_divided(id, name):
                raise DataError(
                    f"{self.file}: {name!r} varies within {id!r}. If a series is one {name} of a "
                    f"{id}, name both: --id {id} --id {name} (id=[{id!r}, {name!r}]). If it has "
                    f"all rows of a {id}, use --id {id} (id={id!r})"
                )

    def _raise_if_channels_in_rows(self, id: str, time: str, label: str | None) -> None:
        """Raise an error if steps have several rows, and there is a column that may name channels.

        If the table is sorted by this column, it may have been guessed as the identifier.
        """
        kinds: tuple[Kind, ...] = ("text", "integer")
        is_guess = self._requested.id is None
        for name in self._in_files(kinds):
            for series, key in ((id, name), (name, id))[: 1 + is_guess]:
                if (
                    self.kinds[key] in kinds
                    # pandas and R give the latter two names to channels.
                    and simplified(key) not in {*ID_NAMES, *PEOPLE} - {"key", "name"}
                    and (label is None or self.is_constant(label, self.codes(series)))
                    and self.is_crossed((series, time), key)
                ):
                    self._raise_if_one_row_per_channel(series, time, key)

    def _raise_if_one_row_per_channel(self, series: str, time: str, key: str) -> None:
        ids = [*self._id_columns] or [series]
        known = (*ids, series, time, key)
        others = [n for n in self.kinds if n not in known and not ROW_NUMBERS.fullmatch(n)]
        constant = [n for n in others if self.is_constant(n, self.codes(series))][:MOST_NAMED]
        values = [n for n in others if n not in constant and self.kinds[n] in NUMERIC]
        if not values:
            return
        index = [*ids, time, *constant]
        pivot = f"polars: table.pivot({key!r}, index={index})"
        if len(values) == 1:
            pivot = f"pandas: table.pivot(index={index}, columns={key!r}, values={values[0]!r})"
            pivot += ".reset_index()"
        raise DataError(
            f"{self.file}: every step has one row for each {key!r}. If this names channels, save "
            f"the table with one column per channel. In {pivot}. If every {key} is a series of its "
            f"own, use {' '.join(f'--id {name}' for name in (*ids, key))} (id={[*ids, key]})"
        )

    def _finest(self, names: Sequence[str]) -> list[str]:
        """Keep the columns within whose values all others are constant: recordings, not people."""
        return [
            name
            for name in names
            if all(self.is_constant(other, self.codes(name)) for other in names)
        ]

    # -- Columns without a role

    def _with_id_names(self) -> Iterator[str]:
        """Columns that are named like an identifier, the best names first."""
        kinds: tuple[Kind, ...] = ("text", "integer", "timestamp")
        endings = (n for n in self._free(kinds) if re.search(r"(_id|[a-z]I[dD])$", n))
        yield from dict.fromkeys([*self._with_name(ID_NAMES, kinds), *endings])

    def _named_labels(self) -> list[str]:
        """Columns that are named like the label of the model, or like any label."""
        expected = self._requested.expected
        known = [name for name in self._free(_LABEL_KINDS) if name == expected.label]
        # x, y, z are coordinates.
        has_x = any(simplified(name) == "x" for name in self.kinds)
        usual = [
            name
            for name in self._with_name(LABEL_NAMES, _LABEL_KINDS)
            if not (has_x and simplified(name) == "y")
        ]
        return list(dict.fromkeys([*known, *usual]))

    def _free(self, kinds: Sequence[Kind] | None = None) -> Iterator[str]:
        """Columns without a role, perhaps of some kinds only."""
        return (
            name
            for name, kind in self.kinds.items()
            if (kinds is None or kind in kinds)
            and name not in self._taken
            and not ROW_NUMBERS.fullmatch(name)
        )

    def _in_files(self, kinds: Sequence[Kind] | None = None) -> list[str]:
        """Columns without a role that do not come from names of folders."""
        return [name for name in self._free(kinds) if name not in self.from_folders]

    def _with_name(self, names: Sequence[str], kinds: Sequence[Kind]) -> Iterator[str]:
        """Columns with one of the names, in the order of the names."""
        free = list(self._free(kinds))
        for wanted in names:
            yield from (name for name in free if simplified(name) == wanted)

    # -- Lists of columns

    def _expanded(self, name: str) -> Sequence[str]:
        first, dots, last = name.partition("..")
        if dots and name not in self.kinds and first in self.kinds and last in self.kinds:
            names = list(self.kinds)
            return names[names.index(first) : names.index(last) + 1] or [name]
        return [name]

    def _as_requested(self, names: Sequence[str]) -> str:
        """Write the option that names columns: the first and last if no other is between."""
        if len(names) > 1 and list(self._expanded(f"{names[0]}..{names[-1]}")) == list(names):
            return f"--channels {names[0]}..{names[-1]} (channels=)"
        shown, more = names[:MOST_NAMED], ",..." * (len(names) > MOST_NAMED)
        if len(names) > 1 and any("," in name for name in names):
            # The option separates names by commas.
            return f"channels=[{','.join(map(repr, shown))}{more}]"
        return f"--channels {','.join(shown)}{more} (channels=)"

    def _all_columns(self, without: Sequence[str] = ()) -> str:
        """List the columns of the file; an identifier of several columns is none of them."""
        joined = [str(self._requested.id)] if self._id_columns else []
        names = [repr(name) for name in self.kinds if name not in (*without, *joined)]
        return list_first(names, 20) or "none"


def not_utf8(name: str) -> str:
    """Return what a message says about a column of text that is not UTF-8."""
    return f"column {name!r} holds text that {NOT_UTF8}"
