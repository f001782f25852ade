"""`Columns`: the role of each column of a table; `RequestedColumns`: the roles that are known.

`ExpectedColumns` is what a model says about them.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from slts._typing import AnyArray
from slts.columns.rows import ROW_NUMBERS, TimeForm, joined_identifier, plain_column
from slts.errors import DataError

MODEL = "the model"


@dataclass(frozen=True)
class Columns:
    """The role of each column of a table.

    Attributes
    ----------
    id
        Column that identifies the series; None if every row, or every file, is one series.
    time
        Column that orders the steps of a series; None keeps the order of the rows.
    label
        Column with the label, if there is one.
    channels
        Columns with the values, in the order of the channels; in wide form, of the steps.
    guessed
        The roles among ``"id"``, ``"time"``, ``"label"`` and ``"channels"`` that were guessed.
    ignored
        Columns without a role.
    lists
        Whether every row is one series, with a list of values per channel.
    wide
        Whether every row is one series with one channel, and one column per step.
    constant
        The ignored columns of numbers that are constant within every series.
    label_candidates
        Ignored columns that may be the label.
    rising
        Whether the time was recognised by its values: it grows evenly in every series.
    time_form
        How the time is read if it is text: as number, timestamp, timestamp with zone, or time
        of day.
    model_channels
        Names of the channels if these columns replace the channels of a model.
    every
        Interval of the time grid on which series are resampled, such as 20ms.
    groups
        Column with the group, such as the subject, if one was named.
    skip
        Whether series that cannot be used are left out, rather than an error.
    id_columns
        The columns that identify the series together; `id` is then their names, joined.
    has_header
        Whether the columns have names; if not, they are numbered.

    Examples
    --------
    >>> from slts.files import Columns
    >>> print(Columns("recording", "t", "speaker", ("c1", "c2", "c3")))
    id=recording, time=t, label=speaker, channels=c1..c3
    """

    id: str | None
    time: str | None
    label: str | None
    channels: tuple[str, ...]
    guessed: frozenset[str] = frozenset()
    ignored: tuple[str, ...] = ()
    lists: bool = False
    wide: bool = False
    constant: tuple[str, ...] = ()
    label_candidates: tuple[str, ...] = ()
    rising: bool = False
    time_form: TimeForm | None = None
    model_channels: tuple[str, ...] | None = None
    every: str | None = None
    groups: str | None = None
    skip: bool = False
    id_columns: tuple[str, ...] = ()
    has_header: bool = True

    @property
    def long(self) -> bool:
        """Whether every row is one step."""
        return not (self.lists or self.wide)

    @property
    def channel_names(self) -> tuple[str, ...] | None:
        """Names of the channels; the one channel in wide form has none."""
        is_named = self.has_header and not self.wide
        return (self.model_channels or self.channels) if is_named else None

    def roles(self, *, labels: bool) -> dict[str, str]:
        """Return the role of each column that is not a channel; groups are read with labels."""
        found = {self.id: "id", self.time: "time"}
        if labels:
            found |= {self.label: "label", self.groups: "groups"}
        return {name: role for name, role in found.items() if name is not None}

    def used(self, *, labels: bool) -> list[str]:
        """Return the columns to read. Columns that must stay constant are read to check them."""
        named = dict.fromkeys([*self.id_columns, *self.roles(labels=labels)])
        if self.id_columns:
            del named[str(self.id)]
        return [*named, *self.channels, *self.constant]

    def identifiers(self, rows: Any) -> Any:
        """Return the column of identifiers of rows as they were read."""
        if self.id_columns:
            return joined_identifier(rows, self.id_columns)
        return plain_column(rows[self.id])

    def __str__(self) -> str:
        time = self.time if self.every is None else f"{self.time} (every {self.every})"
        if self.long and time is None:
            time = "none (steps are in the order of the rows)"
        roles = {"id": self.id, "time": time, "label": self.label, "groups": self.groups}
        texts = [f"{role}={name}" for role, name in roles.items() if name is not None]
        if self.wide:
            texts.append(f"one series per row, steps={shortened(self.channels)}")
        else:
            texts.append(f"channels={shortened(self.channels)}")
        unused = [
            name
            for name in self.ignored
            if name not in self.constant and not ROW_NUMBERS.fullmatch(name)
        ]
        if unused:
            texts.append(f"not used: {shortened(unused)}")
        if self.constant:
            texts.append(f"not used, constant in every series: {shortened(self.constant)}")
        return ", ".join(texts)


@dataclass(frozen=True)
class ExpectedColumns:
    """What a trained model, or its training data, say about the columns of other tables.

    Attributes
    ----------
    channels
        Names of the channels; they are read in this order, unless others are requested.
    classes
        The labels; they tell the label from other columns that are not channels.
    label
        Label column of the training data; other tables may have none.
    n_channels
        Number of channels.
    owner
        Whose columns these are, for messages: the model, or the training data if there is none yet.
    """

    channels: Sequence[str] | None = None
    classes: Sequence[object] | AnyArray | None = None
    label: str | None = None
    n_channels: int | None = None
    owner: str = MODEL


@dataclass(frozen=True)
class RequestedColumns:
    """What the caller says about the columns.

    Attributes
    ----------
    id, time, label
        Names of columns; None means that they are guessed. Several columns may be the id.
    channels
        Names of the channels; ``"c1..c12"`` means all columns from the first to the second.
    groups
        Name of the column with the groups; None means that there are none.
    every
        Interval of the time grid; None keeps the steps.
    skip
        See `Columns`.
    labelled
        Whether labels are needed. If not, a column that varies within a series is not the label.
    expected
        What a model or its training data say.
    """

    id: str | Sequence[str] | None = None
    time: str | None = None
    label: str | None = None
    channels: str | Sequence[str] | None = None
    groups: str | None = None
    every: str | float | None = None
    skip: bool = False
    labelled: bool = True
    expected: ExpectedColumns = ExpectedColumns()

    def without_names(self) -> RequestedColumns:
        """Return what is known about a table without header: no model knows its column names."""
        return replace(self, expected=replace(self.expected, channels=None, label=None))

    def require_none(self, source: str) -> None:
        """Raise an error if a column of a source without named columns is requested."""
        for role in ("id", "time", "label", "channels", "groups", "every"):
            if getattr(self, role) is not None:
                raise DataError(
                    f"{source} has no named columns, so --{role} ({role}=) cannot be used"
                )


def shortened(names: Sequence[str]) -> str:
    """List column names: ``c1..c12`` if they are numbered, else the first ones."""
    numbered = [re.fullmatch(r"(.*?)(\d+)", name) for name in names]
    found = [(match[1], int(match[2])) for match in numbered if match]
    if len(found) == len(names) > 2:
        stem, first = found[0]
        if found == [(stem, first + k) for k in range(len(names))]:
            return f"{names[0]}..{names[-1]}"
    if len(names) > 8:
        return f"{','.join(names[:6])} and {len(names) - 6} more"
    return ",".join(names)
