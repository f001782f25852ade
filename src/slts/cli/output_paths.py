"""Checks of the paths that a command writes to."""

from __future__ import annotations

import glob
import os
from collections.abc import Iterable
from pathlib import Path

from slts.atomic_files import is_stream
from slts.cli.terminal import CommandError
from slts.files.paths import TABLE_SUFFIXES, base_suffix


def check_output_path(path: Path, what: str, inputs: Iterable[str | Path | None] = ()) -> None:
    """Raise an error, before any work, if a path cannot be written or is read by the command.

    Parameters
    ----------
    path
        The file to write.
    what
        What will be written, for messages.
    inputs
        Files, folders and patterns that the command reads.
    """
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
