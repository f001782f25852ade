"""Whether a file can be written where it is asked for."""

from __future__ import annotations

import os
from pathlib import Path

from slts.cli.terminal import CommandError


def check_place(path: Path, what: str) -> None:
    """Refuse, before any work is done, a name that cannot be written to."""
    folder = path.absolute().parent
    if not folder.is_dir():
        raise CommandError(f"{what} cannot be written to {path}: there is no folder {folder}")
    if path.is_dir():
        raise CommandError(f"{what} cannot be written to {path}: that is a folder")
    if not os.access(folder, os.W_OK):
        raise CommandError(f"{what} cannot be written to {path}: {folder} is not writable")
