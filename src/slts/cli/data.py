"""Models and data that a command reads, and paths that it writes to.

A `CommandScan` is a scan with notes printed, labels converted and series held out. Estimators and
`slts.certify` use the attributes of a scan that `SeriesSource` declares.
"""

from __future__ import annotations

import contextlib
import glob
import os
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import typer

from slts._typing import AnyArray, IntArray
from slts.alignment import require_device
from slts.atomic_files import is_stream
from slts.cli.options import CommonOptions
from slts.cli.terminal import CommandError, Messages
from slts.errors import DataError
from slts.extras import import_extra
from slts.persistence import load
from slts.quantities import count, list_first
from slts.series import SeriesBatch
from slts.series.source import Digests, series_digests, series_keys
from slts.tables import Columns, Dataset, SeriesScan
from slts.tables.folders import HOW_TO_LABEL, FilesPart
from slts.tables.paths import STDIN, TABLE_SUFFIXES, base_suffix
from slts.tables.reading import scan_source
from slts.tables.roles import ExpectedColumns, RequestedColumns
from slts.tables.times import same_step
from slts.training.held_out import split_in_order

_BATCH_SIZE = 1024
# Channels with missing values that a message names.
_MOST_NAMED = 8
# A number with a decimal point, such as "1.0" or "-2.".
_DECIMAL = re.compile(r"[-+]?\d+\.\d*")


@dataclass(frozen=True)
class Expected(ExpectedColumns):
    """What a model or training data say about columns, and their classes."""

    classes: Any = None
    owner: str = "the model"


def check_output_path(
    path: Path,
    what: str,
    option: str,
    suffixes: Sequence[str],
    inputs: Iterable[str | Path | None],
) -> None:
    """Raise an error, before any work, if a path cannot be written or is read by the command.

    Parameters
    ----------
    path
        The file to write.
    what, option
        What will be written, and the option that names the file, for messages.
    suffixes
        Endings that the name may have.
    inputs
        Files, folders and patterns that the command reads.
    """
    if path.suffix.lower() not in suffixes:
        endings = f"{'one of ' if len(suffixes) > 1 else ''}{', '.join(suffixes)}"
        raise typer.BadParameter(f"must end in {endings}, got {path.name}", param_hint=option)
    if is_stream(path):
        if not os.access(path, os.W_OK):
            raise CommandError(f"{what} cannot be written to {path}: it is not writable")
        return
    folder = path.absolute().parent
    if not folder.is_dir():
        raise CommandError(f"{what} cannot be written to {path}: there is no folder {folder}")
    if path.is_dir():
        raise CommandError(f"{what} cannot be written to {path}: it is a folder")
    if not os.access(folder, os.W_OK):
        raise CommandError(f"{what} cannot be written to {path}: {folder} is not writable")
    if path.exists() and any(_is_read(path, str(source)) for source in inputs if source):
        raise CommandError(
            f"{what} would overwrite {path}, which the command reads: choose another name"
        )


def _is_read(path: Path, source: str) -> bool:
    """Whether an existing file is one that `source` names, or a table in a folder it names."""
    for name in (source, *glob.glob(source, recursive=True)):
        # Names of data sets, and - for standard input, do not exist as files.
        if not os.path.exists(name):
            continue
        in_folder = Path(name).resolve() in path.resolve().parents
        if os.path.samefile(name, path) or (in_folder and base_suffix(path) in TABLE_SUFFIXES):
            return True
    return False


def load_model(
    path: Path,
    common: CommonOptions,
    *,
    memory_limit: int | None = None,
    shows_progress: bool = False,
) -> Any:
    """Load a model that uses the device and the number of threads of the options."""
    if not path.exists():
        raise CommandError(f"there is no model file {path}. `slts fit` writes one")
    if base_suffix(path) in (*TABLE_SUFFIXES, ".ts", ".npz"):
        raise CommandError(f"{path} is not a model file: give the model before the data")
    model = load(path)
    check_device(common.device, type(model).__name__)
    model.set_params(device=common.device, n_jobs=common.jobs, verbose=shows_progress)
    if memory_limit is not None and "memory_limit" in model.get_params():
        model.set_params(memory_limit=memory_limit)
    return model


def check_device(device: str, owner: str) -> None:
    """Raise an error if a device is not available, before anything is read."""
    try:
        require_device(device, owner)
    except (RuntimeError, ValueError) as error:
        raise CommandError(str(error)) from error


def open_scan(
    data: str,
    common: CommonOptions,
    *,
    model: Any = None,
    training: Expected | None = None,
    groups: str | None = None,
    labelled: bool = True,
) -> CommandScan:
    """Scan data and print the detected columns; standard input is read into memory.

    Parameters
    ----------
    data, common
        The data, and the options of the command.
    model
        A fitted model: its channels, classes and label column help to detect columns, labels become
        its classes, and its time grid is used, unless the option names another.
    training
        What the training data say, if there is no model yet.
    groups
        Column with the groups, if there are any.
    labelled
        Raise an error for a table without a label column.
    """
    _keep_signals()
    expected = training or Expected()
    if model is not None:
        expected = replace(_expected_columns(model), classes=model.classes_)
    requested = _requested(data, common, expected, model, groups=groups, labelled=labelled)
    messages = common.messages
    scan = scan_source(data, requested)
    if data == STDIN:
        scan = _MemoryScan(scan.read())
    if scan.columns is not None:
        of_data = "" if training is None else f" of {data}"
        messages.say(f"columns{of_data}: {_described(scan.columns, expected)}")
    elif model is not None:
        # The model itself warns about tables.
        _say_other_grid(data, common, requested.every, model)
    messages.detail(repr(scan))
    if labelled and scan.columns is not None and scan.columns.label is None:
        if isinstance(scan.parts()[0], FilesPart):
            raise CommandError(f"{scan.name} has no labels: {HOW_TO_LABEL}")
        unused = list_first(scan.columns.ignored) or "none"
        why = "has no label column"
        if expected.classes is not None:
            classes = np.asarray(expected.classes).tolist()
            names = ", ".join(map(repr, classes[:6])) + (", ..." if len(classes) > 6 else "")
            why = f"has no column that holds the classes of {expected.owner} ({names})"
        raise CommandError(f"{scan.name} {why}: name it with --label. Unused columns: {unused}")
    return CommandScan(scan, messages, expected)


def read_batches(
    data: str, common: CommonOptions, model: Any, batch_size: int
) -> Iterator[Dataset]:
    """Read series without labels for a model, some at a time, and print the detected columns.

    Parameters
    ----------
    data, common, model, batch_size
        The data, the options of the command, a fitted model, and the number of series at a time.
    """
    _keep_signals()
    missing, expected = MissingCounts(), _expected_columns(model)
    requested = _requested(data, common, expected, model)
    _say_other_grid(data, common, requested.every, model)
    for batch in scan_source(data, requested).batches(labels=False, batch_size=batch_size):
        if batch.columns is not None:
            common.messages.say_once(f"columns: {_described(batch.columns, expected)}")
        _require_channels(batch, expected)
        missing.add(batch.series)
        for note in batch.notes:
            common.messages.say_once(f"{batch.source}: {note}")
        yield batch
    missing.say(common.messages)


def _expected_columns(model: Any) -> Expected:
    """Return what a model says about columns; predictions need no classes."""
    return Expected(
        channels=model.channel_names_in_,
        label=model.label_column_,
        n_channels=model.n_channels_in_,
    )


def _described(columns: Columns, expected: Expected) -> str:
    """Describe columns, and say if the channels are used by position."""
    has_names = expected.channels is not None or columns.channel_names is None
    if has_names or expected.n_channels in (None, 1):
        return str(columns)
    return f"{columns}; channels are in this order, because {expected.owner} has no names for them"


def _requested(
    data: str, common: CommonOptions, expected: Expected, model: Any, **others: Any
) -> RequestedColumns:
    """Return the columns that the options name; without --every, the grid of a model is used."""
    columns = common.columns
    is_table = base_suffix(data) not in (".npz", ".ts")
    if model is not None and columns["every"] is None and is_table:
        columns |= {"every": model.every_}
    return RequestedColumns(**columns, **others, expected=expected)


def _say_other_grid(data: str, common: CommonOptions, every: Any, model: Any) -> None:
    """Print a message if series are not on the time grid that a model was trained on."""
    if model.every_ is not None and not same_step(model.every_, every):
        common.messages.say(
            f"the model was trained on a time grid with steps of {model.every_} (--every), but "
            f"{data} has other steps"
        )


def _keep_signals() -> None:
    """Let Ctrl-C reach Python while Arrow reads.

    Arrow handles signals itself meanwhile, and ignores those that come too late to stop a read.
    """
    with contextlib.suppress(ImportError):
        arrow: Any = import_extra("pyarrow", "io")
        arrow.enable_signal_handlers(False)


class _MemoryScan(SeriesScan):
    """Series in memory as a scan: standard input can be read only once."""

    def __init__(self, dataset: Dataset) -> None:
        # Cut into parts for several threads.
        size = max(1, len(dataset) // 16)
        super().__init__(
            dataset.source, dataset.columns, list(dataset.batches(labels=True, batch_size=size))
        )

    @property
    def requires_unique_ids(self) -> bool:
        """False: the rows have been assembled."""
        return False


@dataclass
class MissingCounts:
    """Number of steps, and of missing values of every channel."""

    n_steps: int = 0
    by_channel: Counter[str] = field(default_factory=Counter)

    def add(self, series: SeriesBatch) -> None:
        """Count the missing values of some series."""
        names = series.channel_names or [f"channel {c}" for c in range(series.n_channels)]
        self.n_steps += series.n_steps
        self.by_channel.update(dict(zip(names, series.n_missing.tolist(), strict=True)))

    def say(self, messages: Messages) -> None:
        """Print the channels with missing values; nothing if no value is missing."""
        parts = [
            f"{count:,} ({count / self.n_steps:.1%}) in {name}"
            for name, count in self.by_channel.items()
            if count
        ]
        more = f" and {len(parts) - _MOST_NAMED} more channels" if len(parts) > _MOST_NAMED else ""
        if parts:
            shown = ", ".join(parts[:_MOST_NAMED])
            messages.say_once(f"missing values in {self.n_steps:,} steps: {shown}{more}")


@dataclass(frozen=True)
class CommandScan:
    """A scan whose readers' notes, such as "steps were sorted", are printed once each.

    Attributes
    ----------
    scan, messages
        The scan, and where notes are printed.
    expected
        Channels and classes of a model or of training data: other numbers of channels are an error,
        and classes replace equal labels, as the integer 1 replaces "1".
    kept
        A mask for the series of every part; None keeps all.
    missing
        Missing values of every part that was read; printed when all parts were read once.
    """

    scan: SeriesScan
    messages: Messages
    expected: Expected
    kept: Sequence[AnyArray] | None = None
    missing: dict[int, MissingCounts] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """Name for messages."""
        return self.scan.name

    @property
    def requires_unique_ids(self) -> bool:
        """Whether series are assembled from rows, so that identifiers must not be repeated."""
        return self.scan.requires_unique_ids

    @property
    def columns(self) -> Columns | None:
        """Role of each column; None for sources without named columns."""
        return self.scan.columns

    @property
    def n_bytes(self) -> int | None:
        """Approximate memory of all series as float64, if it can be estimated."""
        return self.scan.n_bytes

    def parts(self, *, labels: bool = True) -> list[_CommandPart]:
        """Return the parts, in order; some may have no series."""
        parts = self.scan.parts(labels=labels)
        kept = [None] * len(parts) if self.kept is None else self.kept
        return [
            _CommandPart(part, self, mask, number, len(parts))
            for number, (part, mask) in enumerate(zip(parts, kept, strict=True))
        ]

    def read(self) -> Dataset:
        """Read all series into memory."""
        dataset = self.changed(self.scan.read())
        missing = MissingCounts()
        missing.add(dataset.series)
        missing.say(self.messages)
        return dataset

    @property
    def all_missing(self) -> MissingCounts:
        """Missing values of all parts that were read."""
        total = MissingCounts()
        for part in self.missing.values():
            total.n_steps += part.n_steps
            total.by_channel.update(part.by_channel)
        return total

    def changed(self, batch: Dataset) -> Dataset:
        """Print the notes of a batch, and return it with labels that are classes of the model."""
        for note in batch.notes:
            self.messages.say_once(f"{batch.source}: {note}")
        expected = self.expected
        _require_channels(batch, expected)
        if batch.labels is None or expected.classes is None:
            return batch
        classes = np.asarray(expected.classes)
        return replace(batch, labels=_matched(batch, batch.labels, classes, expected.owner))


@dataclass(frozen=True)
class _CommandPart:
    part: Any
    scan: CommandScan
    kept: AnyArray | None
    number: int
    n_parts: int

    @property
    def name(self) -> str:
        return str(self.part.name)

    def batches(self, *, labels: bool, batch_size: int) -> Iterator[Dataset]:
        begin, missing = 0, MissingCounts()
        for batch in self.part.batches(labels=labels, batch_size=batch_size):
            missing.add(batch.series)
            changed = self.scan.changed(batch)
            if self.kept is not None:
                changed = changed[self.kept[begin : begin + len(batch)]]
            begin += len(batch)
            if len(changed):
                yield changed
        self.scan.missing[self.number] = missing
        if len(self.scan.missing) == self.n_parts:
            self.scan.all_missing.say(self.scan.messages)


def _require_channels(batch: Dataset, expected: Expected) -> None:
    """Raise an error if series have another number of channels than is expected."""
    n_channels = expected.n_channels
    if n_channels is not None and batch.series.n_channels != n_channels:
        hint = ""
        if base_suffix(batch.source) == ".npz" and (batch.series.lengths == n_channels).all():
            hint = ". Arrays are (n, channels, time): save X.transpose(0, 2, 1)"
        elif batch.columns is not None and batch.columns.wide:
            hint = ": a table with one series per row has one channel"
        elif batch.columns is not None and expected.owner == "the model":
            # --channels would be for the training data too, if there is no model yet.
            hint = ": name as many with --channels"
        raise DataError(
            f"{batch.source} has {count(batch.series.n_channels, 'channel')}, but "
            f"{expected.owner} has {n_channels}{hint}"
        )


def _matched(batch: Dataset, labels: AnyArray, classes: AnyArray, owner: str) -> AnyArray:
    """Return the classes that equal the labels of a batch."""
    names = classes.tolist()
    # 1.0 is the class 1, unless the model has both.
    counts = Counter(map(_without_fraction, names))
    by_text = {text: name for name in names if counts[text := _without_fraction(name)] == 1}
    by_text |= {str(name): name for name in names}
    matched = []
    for position, label in enumerate(labels.tolist()):
        text = str(label) if str(label) in by_text else _without_fraction(label)
        if text not in by_text:
            series = "" if batch.ids is None else f" of series {batch.ids[position].item()!r}"
            raise DataError(
                f"{batch.source}: label {label!r}{series} is not a class of {owner}. Its "
                f"classes are {', '.join(map(repr, names))}"
            )
        matched.append(by_text[text])
    return np.array(matched, dtype=classes.dtype)


def _without_fraction(label: object) -> str:
    """Return a label as text, a whole number without point and zeros.

    Examples
    --------
    >>> from slts.cli.data import _without_fraction
    >>> [_without_fraction(label) for label in (1.0, "-2.00", 1.5, "1.0.0")]
    ['1', '-2', '1.5', '1.0.0']
    """
    text = str(label)
    return re.sub(r"\.0*$", "", text) if _DECIMAL.fullmatch(text) else text


class Labels(NamedTuple):
    """Labels, groups and keys of the series of a scan, sizes of its parts, number of channels."""

    labels: AnyArray
    groups: AnyArray | None
    keys: Digests
    sizes: list[int]
    n_channels: int


def read_labels(scan: CommandScan, seed: int | None = None) -> Labels:
    """Read a scan once for its labels, and for keys by a seed; raise an error without labels."""
    labels, groups = list[AnyArray](), list[AnyArray]()
    keys, sizes, n_channels = [np.empty(0, np.uint64)], list[int](), 0
    for part in scan.parts():
        sizes.append(0)
        for batch in part.batches(labels=True, batch_size=_BATCH_SIZE):
            if batch.labels is None:
                raise CommandError(f"{scan.name} has no labels")
            labels.append(batch.labels)
            groups += [] if batch.groups is None else [batch.groups]
            keys += [] if seed is None else [series_keys(series_digests(batch.series), seed)]
            sizes[-1] += len(batch)
            n_channels = batch.series.n_channels
    if n_channels == 0:
        raise CommandError(f"{scan.name} has no series")
    of_series = np.concatenate(groups) if groups else None
    return Labels(np.concatenate(labels), of_series, np.concatenate(keys), sizes, n_channels)


def split(
    scan: CommandScan, seed: int, cv: int | float, option: str
) -> list[tuple[CommandScan, CommandScan]]:
    """Split a scan at random into what is learned from and what is held out.

    `cv` is a number of folds or a share, from an option. Splits are stratified by label, and groups
    are not divided. They depend on the seed and the series, not on their order. The only series of
    a class is not held out.
    """
    series = read_labels(scan, seed)
    classes, codes = np.unique(series.labels, return_inverse=True)
    order = np.argsort(series.keys, kind="stable")
    splits = split_in_order(cv, codes, order, series.groups, option)
    tested = np.unique(codes[np.concatenate([test for _, test in splits])])
    n, grouped = len(splits), series.groups is not None
    if isinstance(cv, int) and n < cv:
        why = f"only {n} groups can be held out" if grouped else f"a class has {n} series"
        scan.messages.say(f"{option} {cv}: only {n} folds, because {why}")
    why = "has one series: it is not held out"
    if grouped:
        why = "has one group: it is not tested, and not learned if this group is held out"
    for label in np.delete(classes, tested).tolist():
        scan.messages.say(f"class {label!r} {why}")
    ends = np.cumsum(series.sizes)[:-1]

    def part(rows: IntArray) -> CommandScan:
        return replace(scan, kept=np.split(np.isin(np.arange(len(codes)), rows), ends))

    return [(part(train), part(test)) for train, test in splits]
