"""Models and data that a command reads, and paths that it writes to."""

from __future__ import annotations

import contextlib
import glob
import os
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import typer

from slts._typing import AnyArray
from slts.alignment import require_device
from slts.atomic_files import is_stream
from slts.cli.options import CommonOptions
from slts.cli.scans import CommandScan, MemoryScan, MissingCounts, require_channels
from slts.cli.terminal import CommandError
from slts.columns.rows import same_step
from slts.extras import import_extra
from slts.files import Dataset, iter_series, read_series, scan_series
from slts.files.paths import STDIN, TABLE_SUFFIXES, base_suffix
from slts.persistence import load


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
            f"{what} would overwrite {path}, which the command reads; choose another name"
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
        raise CommandError(f"there is no model file {path}; `slts fit` writes one")
    if base_suffix(path) in (*TABLE_SUFFIXES, ".ts", ".npz"):
        raise CommandError(f"{path} is not a model file: the model comes before the data")
    model = load(path)
    check_device(common.device, type(model).__name__)
    model.set_params(device=common.device, n_jobs=common.jobs or -1, verbose=shows_progress)
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
    expect: Sequence[str] | None = None,
    classes: AnyArray | None = None,
    groups: str | None = None,
    labelled: bool = True,
) -> CommandScan:
    """Scan data and print the detected columns; standard input is read into memory.

    Parameters
    ----------
    data, common
        The data, and the options of the command.
    model
        A fitted model: its channels and classes, and its grid of time, unless the option names
        another.
    expect, classes
        Names of channels, and classes, if there is no model yet: they help to detect columns, and
        labels become classes.
    groups
        Column with the groups, if there are any.
    labelled
        Raise an error for a table without a label column.
    """
    _keep_signals()
    read: Any = read_series if data == STDIN else scan_series
    if model is not None:
        expect, classes = model.channel_names_in_, model.classes_
    known = None if classes is None else classes.tolist()
    columns = _columns(data, common, None if model is None else model.every_)
    found = read(data, expect=expect, classes=known, groups=groups, **columns)
    messages = common.messages
    scan = MemoryScan(found) if isinstance(found, Dataset) else found
    if scan.columns is not None:
        # Only test data have classes without a model: the line says that they are other data.
        of_data = f" of {data}" if model is None and classes is not None else ""
        messages.say(f"columns{of_data}: {scan.columns}")
    elif model is not None:
        # The model itself warns about tables.
        _say_other_grid(data, common, columns, model)
    messages.detail(repr(scan))
    if labelled and scan.columns is not None and scan.columns.label is None:
        # A folder with one CSV per series has its labels in a file, not in a column.
        first = next(scan.parts()[0].batches(labels=True, batch_size=1), None)
        if first is None or first.labels is None:
            options = [f"--label {name}" for name in scan.columns.label_candidates]
            may_be = f" It may be {' or '.join(options)}." if options and known is None else ""
            unused = ", ".join(scan.columns.ignored) or "none"
            why = "has no label column"
            if known is not None:
                names = ", ".join(map(repr, known[:6])) + (", ..." if len(known) > 6 else "")
                why = f"has no column that holds the classes of the model ({names})"
            raise CommandError(
                f"{scan.name} {why}: name it with --label.{may_be} Unused columns: {unused}"
            )
    return CommandScan(scan, messages, classes, None if model is None else model.n_channels_in_)


def read_batches(
    data: str, common: CommonOptions, model: Any, batch_size: int, on_error: str = "raise"
) -> Iterator[Dataset]:
    """Read series without labels for a model, some at a time, and print the detected columns.

    Parameters
    ----------
    data, common, model, batch_size
        The data, the options of the command, a fitted model, and the number of series at a time.
    on_error
        See `slts.files.iter_series`.
    """
    _keep_signals()
    read: Any = iter_series
    missing, columns = MissingCounts(), _columns(data, common, model.every_)
    _say_other_grid(data, common, columns, model)
    for batch in read(
        data,
        expect=model.channel_names_in_,
        labels=False,
        batch_size=batch_size,
        on_error=on_error,
        **columns,
    ):
        require_channels(batch, model.n_channels_in_)
        missing.add(batch.series)
        if batch.columns is not None:
            common.messages.say_once(f"columns: {batch.columns}")
        for note in batch.notes:
            common.messages.say_once(f"{batch.source}: {note}")
        yield batch
    missing.say(common.messages)


def _columns(data: str, common: CommonOptions, every: str | None) -> dict[str, Any]:
    """Return how a table is read; on the grid of the model, unless the option names another."""
    given = common.columns
    if given["every"] is None and base_suffix(data) not in (".npz", ".ts"):
        return given | {"every": every}
    return given


def _say_other_grid(data: str, common: CommonOptions, columns: dict[str, Any], model: Any) -> None:
    """Print a message if series are not on the grid of time that a model was trained on."""
    if model.every_ is not None and not same_step(model.every_, columns["every"]):
        common.messages.say(
            f"the model was trained on steps of {model.every_} (--every), {data} has others"
        )


def _keep_signals() -> None:
    """Let Ctrl-C reach Python while Arrow reads.

    Arrow handles signals itself meanwhile, and ignores those that come too late to stop a read.
    """
    with contextlib.suppress(ImportError):
        arrow: Any = import_extra("pyarrow", "io")
        arrow.enable_signal_handlers(False)
