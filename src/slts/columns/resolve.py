"""`resolve_columns`: the role of each column, requested or guessed from names and first rows.

A guess is made only if names or values are clear; it is returned, so that people can see it.
Otherwise the error lists the columns and the option to set.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import replace
from difflib import get_close_matches

from slts.columns.facts import PEOPLE, SeriesRows, numbered_columns, simplified
from slts.columns.identifiers import MOST_NAMED, STEP_KINDS, IdentifierGuesses, not_utf8
from slts.columns.roles import MODEL, Columns, RequestedColumns, shortened
from slts.columns.rows import (
    NUMERIC,
    ROW_NUMBERS,
    Chunk,
    grid_step,
    joined_identifier,
    kind_of,
)
from slts.columns.times import TIMES, Time, can_be_time, find_time, has_ties
from slts.errors import DataError


def resolve_columns(
    sample: Chunk,
    requested: RequestedColumns,
    *,
    one_series: bool = False,
    has_header: bool = True,
) -> Columns:
    """Find the role of each column of a table.

    Parameters
    ----------
    sample : Chunk
        The first rows.
    requested : RequestedColumns
        The roles that are known.
    one_series : bool
        Whether the table is one series whose time and channels are requested: nothing is guessed.
    has_header : bool
        Whether the columns have names; if not, every row is a series.

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
    if requested.id is None or isinstance(requested.id, str):
        return _Resolver(sample, requested, has_header).resolve(one_series)
    # Several columns that identify a series together are one column of text.
    names = tuple(requested.id)
    for name in names:
        _Resolver(sample, RequestedColumns(id=name), has_header).require_requested()
    if len(set(names)) < max(2, len(names)):
        raise DataError(
            f"{sample.file}: id must be one column or several distinct columns, got {list(names)}"
        )
    joined = replace(requested, id=",".join(names))
    rows = sample.rows.append_column(joined.id, joined_identifier(sample.rows, names))
    found = _Resolver(replace(sample, rows=rows), joined, has_header, names).resolve(one_series)
    return replace(found, id_columns=names)


class _Resolver(IdentifierGuesses):
    """The roles that have been given so far, and guesses of the others."""

    def require_requested(self) -> None:
        """Raise an error if a requested column does not exist or has an unsuitable type."""
        for role in ("id", "time", "label", "groups"):
            name = getattr(self._requested, role)
            if name is not None:
                self._take(name, role)

    def resolve(self, one_series: bool) -> Columns:
        requested = self._requested
        channels = self._requested_channels()
        self.require_requested()
        if one_series:
            return Columns(None, requested.time, None, channels or (), skip=requested.skip)
        if self._lists:
            return self._resolve_rows(channels, steps=())
        steps = self._steps(channels)
        if self._is_wide(steps):
            return self._resolve_rows(channels, steps)
        return self._resolve_long(channels)

    def _resolve_rows(self, channels: tuple[str, ...] | None, steps: Sequence[str]) -> Columns:
        """Find the roles if every row is a series, in lists or in the columns `steps`."""
        requested = self._requested
        id = self._id_of_rows() if requested.id is None else str(requested.id)
        self._taken.add(id)
        label = self._find_label(None, steps, channels)
        if channels is None:
            self._raise_if_second_channel(steps)
            channels = tuple(n for n in steps if n != label) if steps else self._list_channels()
        return self._columns(Time(None), None, id, label, channels, wide=bool(steps))

    def _resolve_long(self, channels: tuple[str, ...] | None) -> Columns:
        """Find the roles if every row is a step."""
        requested = self._requested
        id = self._id_in_long_form() if requested.id is None else str(requested.id)
        self._taken.add(id)
        rows = SeriesRows(self.codes(id))
        counters, free = set(self._with_id_names()), self._in_files()
        time = find_time(self, free, rows, requested.time, counters, channels is None)
        self._taken.add(time.column)
        label = self._find_label(rows, (), channels)
        if time.column is not None and has_ties(self, time.column, rows):
            self._raise_if_channels_in_rows(id, time.column, label)
        if requested.id is None:
            self._raise_if_id_has_parts(id)
        constant: tuple[str, ...] = ()
        if channels is None:
            # Numbers that are constant in every series tell no step.
            numbers = self._in_files(NUMERIC)
            constant = tuple(name for name in numbers if self.is_constant_in_series(name, rows))
            channels = self._guess_channels(rows, time, constant)
        return self._columns(time, rows, id, label, channels, constant=constant)

    def _columns(
        self,
        time: Time,
        rows: SeriesRows | None,
        id: str | None,
        label: str | None,
        channels: tuple[str, ...],
        *,
        wide: bool = False,
        constant: tuple[str, ...] = (),
    ) -> Columns:
        requested, expect = self._requested, self._requested.expected.channels
        roles = {"id": id, "time": time.column, "label": label}
        guessed = {
            role
            for role, name in roles.items()
            if name is not None and getattr(requested, role) is None
        }
        if expect is None and requested.channels is None:
            guessed.add("channels")
        every = None if requested.every is None else str(requested.every)
        if every is not None:
            self._check_grid(every, time.column)
        ignored = tuple(name for name in self.kinds if name not in self._taken | set(channels))
        self._raise_if_bytes(ignored, label, rows)
        names = None if expect is None or len(expect) != len(channels) else tuple(expect)
        return Columns(
            id,
            time.column,
            label,
            channels,
            guessed=frozenset(guessed),
            ignored=ignored,
            lists=self._lists,
            wide=wide,
            constant=constant,
            label_candidates=() if label is not None else self._label_candidates(ignored, rows),
            rising=time.rising,
            time_form=None if time.column is None else self.time_form(time.column),
            model_channels=None if names == channels else names,
            every=every,
            groups=requested.groups,
            skip=requested.skip,
            has_header=self._has_header,
        )

    def _check_grid(self, every: str, time: str | None) -> None:
        if time is None:
            raise DataError(
                f"{self.file}: --every (every=) resamples on a time grid, but there is no time "
                f"column. Name it with --time (time=)"
            )
        numbers = self.kinds[time] in NUMERIC or self.time_form(time) == "number"
        grid_step(every, self.file, timestamps=not numbers)

    def _take(self, name: str, role: str) -> None:
        """Give a requested column its role."""
        if name not in self.kinds:
            near = get_close_matches(name, self.kinds, n=1)
            hint = f"Did you mean {near[0]!r}? Its" if near else "Its"
            raise DataError(
                f"{self.file} has no column {name!r} ({role}). {hint} columns are "
                f"{self._all_columns()}"
            )
        # The group may be a part of the identifier: trials of a subject.
        is_part = role == "groups" and name in self._id_columns
        if name in self._taken and not is_part:
            raise DataError(f"{self.file}: column {name!r} cannot have two roles ({role})")
        what = f"{self.file}: column {name!r} ({role})"
        if role != "channels" and self.kinds[name] in ("list", "bytes", "empty", "other"):
            if self.kinds[name] == "bytes" and self._sample.unit == "line":
                raise DataError(f"{self.file}: {not_utf8(name)}")
            dtype = self._rows.schema.field(name).type
            raise DataError(f"{what} holds values of type {dtype}; expected text or numbers")
        if role == "time" and self._lists:
            raise DataError(
                f"{self.file} has one row per series and one list per channel. Steps have the "
                f"order of the lists, so a time column cannot be used"
            )
        if role == "time" and not can_be_time(self, name):
            for times in (False, True):
                self.raise_if_misspelt(name, "column {} (time)", times=times)
            raise DataError(f"{what} holds {self.example(name)}, expected {TIMES}")
        self._taken.add(name)

    def _requested_channels(self) -> tuple[str, ...] | None:
        expected, given = self._requested.expected, self._requested.channels
        expect = expected.channels
        names = expect if given is None else given
        if names is None:
            return None
        if isinstance(names, str):
            # A comma may be part of the name of a column.
            split = [name.strip() for name in names.split(",") if name.strip()]
            names = [names] if names in self.kinds else split
        chosen = tuple(column for name in names for column in self._expanded(name))
        if not chosen or len(set(chosen)) != len(chosen):
            raise DataError(f"channels must be one or more distinct columns, got {list(names)}")
        absent = [name for name in chosen if name not in self.kinds]
        if absent and given is None:
            how = f"Name the columns to use for {shortened(chosen)} with --channels (channels=)"
            if expected.owner != MODEL:
                # --channels is for both files, so it cannot name other columns in one of them.
                how = "Rename the columns of one of the two"
            raise DataError(
                f"{self.file} has no column {absent[0]!r}, a channel of {expected.owner}. Its "
                f"columns are {self._all_columns()}. {how}"
            )
        for name in chosen:
            self._take(name, "channels")
            self._require_numbers(name)
        # The same columns in another order: names decide, not positions.
        return chosen if expect is None or set(expect) != set(chosen) else tuple(expect)

    def _require_numbers(self, name: str) -> None:
        kind = self.kinds[name]
        if self._lists:
            dtype = self._rows.schema.field(name).type
            if kind != "list" or kind_of(dtype.value_type) not in NUMERIC:
                raise DataError(
                    f"{self.file}: channel {name!r} has type {dtype}, expected lists of numbers, "
                    f"one number per step"
                )
        elif kind not in (*NUMERIC, "empty") and not self._is_skipped(name):
            self.raise_if_misspelt(name, "channel {}")
            raise DataError(
                f"{self.file}: channel {name!r} holds {self.example(name)}, expected numbers"
            )

    # -- One series per row

    def _raise_if_second_channel(self, steps: Sequence[str]) -> None:
        """Raise an error if as many other columns are numbered: rows may have two channels."""
        others = [name for name in self._free(STEP_KINDS) if name not in steps]
        second = numbered_columns(others, others)
        if len(second) == len(steps) > 0:
            raise DataError(
                f"{self.file}: {shortened(steps)} and {shortened(second)} may be two channels, but "
                f"a table with one series per row has one. Name its columns with --channels "
                f"{steps[0]}..{steps[-1]} (channels=), or save the table with one row per step"
            )

    def _list_channels(self) -> tuple[str, ...]:
        found = tuple(self._in_files(("list",)))
        for name in found:
            self._require_numbers(name)
        return found

    # -- Guesses

    def _find_label(
        self, rows: SeriesRows | None, steps: Sequence[str], channels: Sequence[str] | None
    ) -> str | None:
        """Return the requested label, or guess one; tables without header may have none."""
        requested = self._requested
        label = requested.label
        if label is None and (self._has_header or requested.channels is None):
            label = self._guess_label(rows, steps)
            if requested.expected.classes is not None:
                known = {_comparable(name) for name in requested.expected.classes}
                label = self._label_of_model(known, label, rows, steps, channels is not None)
        self._taken.add(label)
        return label

    def _guess_label(self, rows: SeriesRows | None, steps: Sequence[str]) -> str | None:
        if not self._has_header:
            kinds = (*NUMERIC, "empty")
            texts = [n for n in steps if self.kinds[n] not in kinds and not self._is_skipped(n)]
            return self._label_at_an_end(steps, texts)
        named = [name for name in self._named_labels() if name not in steps]
        texts = [
            name
            for name in self._in_files(("text",))
            if self.n_distinct(name) > 1 and self.time_form(name) in (None, "number")
        ]
        if rows is not None:
            if named:
                # Text with such a name is the label even if it varies: an error later, which does
                # not matter unless labels are needed.
                return next(
                    (
                        name
                        for name in named
                        if (self._requested.labelled and self.kinds[name] == "text")
                        or self.is_constant(name, rows.codes)
                    ),
                    None,
                )
            texts = [n for n in texts if self.is_constant(n, rows.codes)]
        n_series = self.n_rows if rows is None else rows.n_series
        if not self._lists:
            texts = [n for n in texts if self.n_distinct(n) < n_series]
        if named:
            return named[0]
        if len(texts) != 1:
            return None
        # People are often groups, and the label a number.
        numbers = [name for name in self._free(NUMERIC) if name not in steps]
        is_doubtful = simplified(texts[0]) in PEOPLE and self._label_candidates(numbers, rows)
        return None if is_doubtful else texts[0]

    def _label_at_an_end(self, steps: Sequence[str], texts: Sequence[str]) -> str | None:
        """Find the label in a file without header: the first or the last column, or neither.

        `texts` are the columns that do not hold numbers.
        """
        ends = steps[0], steps[-1]
        inside = [name for name in texts if name not in ends]
        if inside:
            self.raise_if_misspelt(inside[0], "column {}")
            raise DataError(
                f"{self.file}: column {inside[0]!r} holds {self.example(inside[0])}, expected "
                f"numbers, or a first line with the names of the columns"
            )
        if len(texts) == 1:
            return texts[0]
        if not texts:
            whole = [name for name in ends if self.is_whole(name)]
            if not whole:
                return None
            varying = [name for name in whole if self.n_distinct(name) > 1] or whole
            if len(varying) == 1 and not all(map(self.is_whole, steps[1:-1])):
                return varying[0]
        raise DataError(
            f"{self.file} has no header, and it is not clear which column is the label: name it "
            f"with --label {ends[0]} (the first) or --label {ends[1]} (the last), or name the "
            f"values with --channels {ends[0]}..{ends[1]} if there is none (in Python, label= and "
            f"channels=)"
        )

    def _label_of_model(
        self,
        known: set[str | float],
        guess: str | None,
        rows: SeriesRows | None,
        steps: Sequence[str],
        has_channels: bool,
    ) -> str | None:
        """Keep a guess that holds classes of the model, or take the only column that does.

        A text column with no class of the model is not its label, unless it is named like one.
        Numbers must be all of the classes: numbers of folds and sessions are often some of them.
        If the channels are not known, numbers may be channels.
        """
        values = {
            name: {_comparable(value) for value in self._rows[name].unique().to_pylist()}
            for name in self._free(("text", "number", "integer", "boolean"))
            if name == guess
            or (name not in steps and (has_channels or steps or self.kinds[name] == "text"))
        }
        named = guess is not None and (not self._has_header or guess in self._named_labels())
        # A column that is named like a label may hold classes that the model does not know.
        if guess is not None and (values[guess] & known if named else values[guess] <= known):
            return guess
        found = [
            name
            for name in values
            if values[name] == known or (self.kinds[name] == "text" and values[name] <= known)
        ]
        if rows is not None:
            found = [name for name in found if self.is_constant(name, rows.codes)]
        complete = [name for name in found if values[name] == known]
        only = next((some[0] for some in (found, complete) if len(some) == 1), None)
        if only is None and guess is not None and (named or values[guess] & known):
            return guess
        return only

    def _label_candidates(self, ignored: Sequence[str], rows: SeriesRows | None) -> tuple[str, ...]:
        """Return unused columns with few whole numbers or words, one for each series."""
        n_series = self.n_rows if rows is None else rows.n_series
        return tuple(
            name
            for name in ignored
            if (self.kinds[name] in ("text", "boolean") or self.is_whole(name))
            and not ROW_NUMBERS.fullmatch(name)
            and 1 < self.n_distinct(name) < n_series
            and (rows is None or self.is_constant(name, rows.codes))
        )

    def _guess_channels(
        self, rows: SeriesRows, time: Time, constant: Sequence[str]
    ) -> tuple[str, ...]:
        free = self._in_files()
        found = tuple(
            name
            for name in free
            if self.kinds[name] in NUMERIC and name not in (*constant, *time.clocks)
        )
        otherwise = ", or name the columns to read with --channels (channels=)"
        for name in free:
            self.raise_if_misspelt(name, "column {}", otherwise)
            if self.holds_numbers(name) and not self.is_constant_in_series(name, rows):
                raise DataError(
                    f"{self.file}: column {name!r} holds numbers as {self.example(name)}: convert "
                    f"it to numbers with decimal points{otherwise}"
                )
        if not found:
            left = dict.fromkeys(n for n in (*constant, *time.clocks, time.column) if n is not None)
            texts = [
                n
                for n in free
                if self.kinds[n] == "text" and not self.is_constant_in_series(n, rows)
            ]
            numbers = [n for n in texts if re.match(r"\s*[-+]?[.,]?\d", self.first_text(n))]
            hint = ""
            if numbers:
                name = numbers[0]
                hint = f". Convert {name!r}, which holds {self.example(name)}, to numbers"
            elif texts:
                named = " or ".join(map(repr, texts[:MOST_NAMED]))
                hint = f". If {named} holds measurements, convert them to numbers"
            elif left:
                hint = (
                    f". Columns that increase like a time, or are constant in every series, are "
                    f"channels only if you name them: {self._as_requested(list(left))}"
                )
            raise DataError(
                f"{self.file} has no numeric column left for the channels. Its columns are "
                f"{self._all_columns()}{hint}"
            )
        return found

    # -- Messages

    def _raise_if_bytes(
        self, ignored: Sequence[str], label: str | None, rows: SeriesRows | None
    ) -> None:
        """Raise an error if text that is not UTF-8 may be the label of a text file.

        Predictions need no label. Files other than text hold bytes on purpose.
        """
        expected = self._requested.expected
        predicts = expected.channels is not None and expected.classes is None
        if label is not None or predicts or self._sample.unit != "line":
            return
        for name in ignored:
            if self.kinds[name] != "bytes" or self.n_distinct(name) < 2:
                continue
            if rows is None or self.is_constant(name, rows.codes):
                raise DataError(
                    f"{self.file}: {not_utf8(name)}, or name the label with --label (label=)"
                )


def _comparable(label: object) -> str | float:
    """Return a value that is equal for labels with the same meaning in text and other files."""
    text = str(label).lower()
    try:
        number = float(text)
    except ValueError:
        return text
    return number if math.isfinite(number) else text
