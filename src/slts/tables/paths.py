"""Paths of users: suffixes, patterns and lists; which files form one table."""

from __future__ import annotations

import glob
import os
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import takewhile
from pathlib import Path
from typing import TypeAlias, TypeGuard

from slts.errors import DataError

OnePath: TypeAlias = str | os.PathLike[str]
Paths: TypeAlias = OnePath | Sequence[OnePath]

STDIN = "-"
TEXT_SUFFIXES = (".csv", ".tsv")
PARQUET_SUFFIXES = (".parquet", ".pq")
ARROW_SUFFIXES = (".feather", ".arrow", ".ipc")
TABLE_SUFFIXES = (*TEXT_SUFFIXES, *PARQUET_SUFFIXES, *ARROW_SUFFIXES)
DATA_SUFFIXES = (*TABLE_SUFFIXES, ".ts", ".npz")
_COMPRESSED_SUFFIXES = (".gz", ".bz2", ".zst")
# The labels of a folder with one CSV file per series.
LABEL_FILE = "labels.csv"


def is_path_like(X: object) -> TypeGuard[Paths]:
    """Tell whether `X` is a path or a list of paths, rather than data."""
    first = X[0] if isinstance(X, list | tuple) and len(X) > 0 else X
    return isinstance(first, str | os.PathLike)


def is_compressed(path: OnePath) -> bool:
    """Tell whether a name ends in the suffix of a compression format."""
    return Path(path).suffix.lower() in _COMPRESSED_SUFFIXES


def base_suffix(path: OnePath) -> str:
    """Return the suffix of the data format, without the suffix of a compression format.

    Examples
    --------
    >>> from slts.tables.paths import base_suffix
    >>> base_suffix("data/train.CSV.gz"), base_suffix("train.ts")
    ('.csv', '.ts')
    """
    path = Path(path)
    return (path.with_suffix("") if is_compressed(path) else path).suffix.lower()


@dataclass(frozen=True)
class Files:
    """Several files that are read together: Parquet as one table, CSV as one series per file.

    Attributes
    ----------
    name
        The folder, pattern or list, for messages.
    root
        The folder that all files are in.
    names
        The files, named as they were given, or below the folder or pattern that was given.
    """

    name: str
    root: Path
    names: tuple[str, ...]

    @property
    def paths(self) -> list[Path]:
        """Absolute paths of the files."""
        return [Path(os.path.abspath(name)) for name in self.names]

    @property
    def is_parquet(self) -> bool:
        """Whether the files are Parquet; otherwise they are text."""
        return base_suffix(self.names[0]) in PARQUET_SUFFIXES

    @classmethod
    def listed(cls, paths: Sequence[OnePath]) -> Files:
        """Return the files of a list, in its order."""
        for number, path in enumerate(paths):
            if not isinstance(path, str | os.PathLike):
                raise DataError(
                    f"item {number} of the list of files is of type {type(path).__name__}, "
                    f"expected a path"
                )
            if not os.path.exists(path):
                raise FileNotFoundError(f"{path}, in the list of files: there is no such file")
        names = [os.fspath(path) for path in paths]
        more = f" and {len(names) - 1} more" if len(names) > 1 else ""
        parents = [os.path.dirname(os.path.abspath(name)) for name in names]
        return cls._of(f"{names[0]}{more}", Path(os.path.commonpath(parents)), names)

    @classmethod
    def matching(cls, pattern: str) -> Files:
        """Return the files that match a pattern, in the natural order of their names."""
        fixed = Path(*takewhile(lambda part: not _has_wildcard(part), Path(pattern).parts))
        n_fixed = len(fixed.parts)
        # Like a leading dot, a leading underscore matches only if the pattern has one.
        asked = any(part.startswith("_") for part in Path(pattern).parts[n_fixed:])
        matches = [
            name
            for name in set(glob.glob(pattern, recursive=True))
            if asked or not _is_metadata(Path(name).parts[n_fixed:])
        ]
        names = [name for name in matches if os.path.isfile(name)]
        if not names:
            folders = [name for name in matches if os.path.isdir(name)]
            hint = f". It matches the folder {min(folders)}: add '/*.parquet'" if folders else ""
            raise FileNotFoundError(
                f"{pattern}: there is no file of this name, and no file matches it as a pattern "
                f"(*, ? and [] are wildcards){hint}"
            )
        return cls._of(pattern, Path(os.path.abspath(fixed)), sorted(names, key=_natural_order))

    @classmethod
    def in_folder(cls, folder: str) -> Files | None:
        """Return the Parquet files of a folder, or its CSV files with one series each."""
        root = Path(folder)
        inside = [
            path
            for path in root.rglob("*")
            if path.is_file() and not _is_metadata(path.relative_to(root).parts)
        ]
        data = [path for path in inside if base_suffix(path) in DATA_SUFFIXES]
        if any(base_suffix(path) in PARQUET_SUFFIXES for path in data):
            names = data
        else:
            texts = [
                path
                for path in data
                if base_suffix(path) in TEXT_SUFFIXES and path.name != LABEL_FILE
            ]
            depths = [len(path.relative_to(root).parts) for path in texts]
            names = [p for p, d in zip(texts, depths, strict=True) if d == min(depths) <= 2]
        if not names:
            return None
        return cls._of(folder, root.absolute(), sorted(map(str, names), key=_natural_order))

    @classmethod
    def _of(cls, name: str, root: Path, names: Iterable[str]) -> Files:
        """Check that no file is listed twice, perhaps through a link, and that all are alike."""
        files = cls(name, root, tuple(names))
        kinds = TEXT_SUFFIXES, PARQUET_SUFFIXES
        of_first = next((k for k in kinds if base_suffix(files.names[0]) in k), ())
        seen: dict[str, str] = {}
        for path in files.names:
            if base_suffix(path) not in of_first:
                example = Path(name, "*.parquet") if os.path.isdir(name) else "*.csv"
                raise DataError(
                    f"{name}: {path} cannot be read together with {files.names[0]}. Several files "
                    f"must be all Parquet (one table), or all CSV (one series per file): give a "
                    f"pattern such as '{example}'"
                )
            file = os.path.realpath(path)
            if file in seen:
                also = "" if seen[file] == path else f", also as {seen[file]}"
                raise DataError(
                    f"{path} is in {name} twice{also}: its series would be counted twice. Remove "
                    f"one"
                )
            seen[file] = path
        return files


def is_pattern(path: str) -> bool:
    """Tell whether a path is a pattern; the name of an existing file is not."""
    return _has_wildcard(path) and not os.path.exists(path)


def _has_wildcard(path: str) -> bool:
    return any(character in path for character in "*?[")


def _is_metadata(parts: Sequence[str]) -> bool:
    """Tell whether a file is hidden, or was written by a tool beside the data.

    Examples are ``_SUCCESS`` and everything in ``_delta_log``; ``_day=3`` is a folder of data.
    """
    return any(part.startswith(".") or (part.startswith("_") and "=" not in part) for part in parts)


def _natural_order(path: str) -> tuple[list[list[str | int]], str]:
    """Sort key that puts part-2 before part-10."""
    split = [re.split(r"([0-9]+)", part) for part in Path(path).parts]
    return (
        [[int(text) if k % 2 else text for k, text in enumerate(texts)] for texts in split],
        path,
    )
