"""`read_series` and `iter_series`: users' data, the form chosen by the name."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from slts.errors import DataError
from slts.files.columns import Wanted
from slts.files.dataset import Dataset, join
from slts.files.forms import TABLES, Place, understood
from slts.files.list_form import iter_lists
from slts.files.long_form import read_long
from slts.files.sources import Paths

__all__ = ["TABLES", "iter_series", "read_series"]

# Series taken at a time where all are wanted.
_AT_A_TIME = 1 << 14


def read_series(
    path: Paths,
    *,
    id: str | None = None,
    time: str | None = None,
    label: str | None = None,
    channels: Sequence[str] | None = None,
    expect: Sequence[str] | None = None,
    classes: Sequence[object] | None = None,
    labels: bool = True,
) -> Dataset:
    """Read all series of a file.

    Parameters
    ----------
    path : str, path, or list of them
        A file whose suffix tells its form: `.ts`; `.csv`, `.tsv`, `.parquet` or `.feather` in long
        form (one row per step; Parquet and Feather also with one row per series and a list per
        channel); `.npz` (`X` and `y`, or `values`, `offsets` and `y`). Text files may be
        compressed (`.gz`, `.bz2`, `.xz`, `.zst`). Or several Parquet files, read as one: a folder
        of them, a pattern such as ``"data/part-*.parquet"``, or a list, in its order; folders
        below it that are named like ``label=a`` stand for a column ``label``. Or a folder
        with one CSV per series, and labels in `labels.csv`; ``"-"``, CSV on standard input; or a
        data set of `slts.datasets`, such as ``"japanese_vowels:train"``.
    id, time, label : str, optional
        Columns of a table; guessed by default, and the guess is in `Dataset.columns`.
    channels : str or sequence of str, optional
        Columns with the values: a list, or names between commas; ``"c1..c12"`` stands for those
        from one to the other. All other columns of numbers by default.
    expect : sequence of str, optional
        Channels of a trained model: taken, in this order, from data that name their channels;
        `channels` may name others, that stand for them one after the other.
    classes : sequence, optional
        Labels a trained model knows: where `label` is not given, the column that holds them is
        taken among those that are no channels.
    labels : bool
        Whether labels are wanted. If not, they may be missing.

    Returns
    -------
    Dataset
        Series, labels and identifiers.

    Raises
    ------
    DataError
        If something is wrong with the file; the message names the file, the place and the remedy.

    See Also
    --------
    iter_series : The same batch by batch.
    """
    place = Place(path, Wanted(id, time, label, channels, expect, classes))
    if not place.is_table:
        return join(place.batches(labels=labels, batch_size=_AT_A_TIME))
    with place.table() as table:
        columns, lists = understood(table, place.wanted)
        if lists:
            return join(iter_lists(table, columns, labels=labels, batch_size=_AT_A_TIME))
        return read_long(table, columns, labels=labels)


def iter_series(
    path: Paths,
    *,
    id: str | None = None,
    time: str | None = None,
    label: str | None = None,
    channels: Sequence[str] | None = None,
    expect: Sequence[str] | None = None,
    classes: Sequence[object] | None = None,
    labels: bool = True,
    batch_size: int = 1024,
) -> Iterator[Dataset]:
    """Read the series of a file batch by batch.

    Of CSV, Parquet and Feather, and of folders, no more than a few batches are in memory at any
    time, however long the file. Rows of a series in long form must stand together.

    Parameters
    ----------
    path, id, time, label, channels, expect, classes, labels
        As for `read_series`.
    batch_size : int
        Series in a batch, at most.

    Yields
    ------
    Dataset
        The next series.
    """
    if batch_size < 1:
        raise DataError(f"batch_size must be at least 1, got {batch_size}")
    place = Place(path, Wanted(id, time, label, channels, expect, classes))
    yield from place.batches(labels=labels, batch_size=batch_size)
