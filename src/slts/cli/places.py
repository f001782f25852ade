"""Whether a file can be written where it is asked for."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from itertools import chain
from pathlib import Path

from slts.cli.terminal import CommandError
from slts.files.paths import TABLE_SUFFIXES, ParquetFiles, base_suffix, is_pattern


def check_place(path: Path, what: str, inputs: Iterable[str | Path | None] = ()) -> None:
    """Refuse, before any work is done, a name that cannot be written to, or that is read from.

    Parameters
    ----------
    path
        Where to write.
    what
        What will be written, for messages.
    inputs
        Files and folders that the command reads, which must stay as they are.
    """
    folder = path.absolute().parent
    if not folder.is_dir():
        raise CommandError(f"{what} cannot be written to {path}: there is no folder {folder}")
    if path.is_dir():
        raise CommandError(f"{what} cannot be written to {path}: that is a folder")
    if not os.access(folder, os.W_OK):
        raise CommandError(f"{what} cannot be written to {path}: {folder} is not writable")
    if not path.exists():
        return
    for source in chain.from_iterable(map(_files_of, inputs)):
        # Other names, such as - and those of data sets, are not there.
        if not os.path.exists(source):
            continue
        # Of a folder, what may be a table belongs to the data.
        inside = (
            os.path.isdir(source)
            and Path(source).resolve() in path.resolve().parents
            and base_suffix(path) in TABLE_SUFFIXES
        )
        if inside or os.path.samefile(source, path):
            raise CommandError(
                f"{what} would overwrite {path}, which is read from; choose another name"
            )


def _files_of(source: str | Path | None) -> Sequence[str | Path]:
    """Return what is read: of a pattern, the files that match."""
    if source is None:
        return []
    return ParquetFiles.at(source).paths() if is_pattern(str(source)) else [source]
