"""Paths: suffixes, patterns, and which Parquet files form one table."""

from __future__ import annotations

import glob
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import takewhile
from pathlib import Path
from typing import Any, TypeAlias, TypeGuard
from urllib.parse import unquote

from slts.errors import DataError
from slts.extras import LazyModule

OnePath: TypeAlias = str | os.PathLike[str]
Paths: TypeAlias = OnePath | Sequence[OnePath]

STDIN = "-"
TEXT_SUFFIXES = (".csv", ".tsv")
PARQUET_SUFFIXES = (".parquet", ".pq")
ARROW_SUFFIXES = (".feather", ".arrow", ".ipc")
TABLE_SUFFIXES = (*TEXT_SUFFIXES, *PARQUET_SUFFIXES, *ARROW_SUFFIXES)
_COMPRESSED_SUFFIXES = (".gz", ".bz2", ".xz", ".zst")
# Suffixes of files with series that cannot be part of a Parquet table.
_OTHER_SUFFIXES = (*TEXT_SUFFIXES, *ARROW_SUFFIXES, ".ts", ".npz")

pa: Any = LazyModule("pyarrow", "io")

# Name that other tools give to a folder whose value is missing.
_NO_VALUE = "__HIVE_DEFAULT_PARTITION__"
# One slash is enough, because `Path` writes one. A single letter is the drive of a Windows path.
_URL = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+:/")


def is_path_like(X: object) -> TypeGuard[Paths]:
    """Tell whether `X` is a path or a list of paths, rather than data.

    Parameters
    ----------
    X : object
        Anything.

    Returns
    -------
    bool
        Whether `X` is a string, a path object, or a list or tuple whose first item is one.
    """
    first = X[0] if isinstance(X, list | tuple) and len(X) > 0 else X
    return isinstance(first, str | os.PathLike)


def is_pattern(path: str) -> bool:
    """Tell whether a path is a pattern; the name of an existing file is not."""
    return _has_wildcard(path) and not os.path.exists(path)


def is_compressed(path: OnePath) -> bool:
    """Tell whether a name ends in the suffix of a compression format."""
    return Path(path).suffix.lower() in _COMPRESSED_SUFFIXES


def base_suffix(path: OnePath) -> str:
    """Return the suffix of the data format, without the suffix of a compression format.

    Examples
    --------
    >>> from slts.files.paths import base_suffix
    >>> base_suffix("data/train.CSV.gz"), base_suffix("train.ts")
    ('.csv', '.ts')
    """
    path = Path(path)
    return (path.with_suffix("") if is_compressed(path) else path).suffix.lower()


@dataclass(frozen=True)
class ParquetFiles:
    """The Parquet files that are read as one table.

    It lists them again in the same order, also in other processes and working directories.

    Attributes
    ----------
    given
        A file, a folder, a pattern, or a list of files.
    directory
        Working directory to which relative paths refer.
    """

    given: str | tuple[str, ...]
    directory: str

    @classmethod
    def at(cls, source: Paths) -> ParquetFiles:
        """Check the type of the paths that a user gives."""
        if isinstance(source, str | os.PathLike):
            _raise_if_url(os.fspath(source))
            return cls(os.fspath(source), os.getcwd())
        for number, path in enumerate(source):
            if not isinstance(path, str | os.PathLike):
                raise DataError(
                    f"item {number} of the list of files is of type {type(path).__name__}, "
                    f"expected a path"
                )
            _raise_if_url(os.fspath(path))
        return cls(tuple(os.fspath(path) for path in source), os.getcwd())

    @property
    def name(self) -> str:
        """Name for messages."""
        if isinstance(self.given, str):
            return self.given
        more = len(self.given) - 1
        return self.given[0] + (f" and {more} more file{'s' * (more > 1)}" if more else "")

    def locate(self, path: str) -> Path:
        """Return the absolute path of a file."""
        return Path(self.directory, path)

    def paths(self) -> list[str]:
        """List the files in the order in which they are read, named as they were given.

        The list is empty if a folder has no Parquet files.
        """
        if not isinstance(self.given, str):
            found = self._listed(self.given)
        elif self.locate(self.given).is_dir():
            found = self._in_folder(self.given)
        elif self.locate(self.given).exists():
            return [self.given]
        else:
            found = self._matching(self.given)
        self._raise_if_repeated(found)
        return found

    def folder_columns(self, paths: Sequence[str]) -> list[dict[str, Any]]:
        """Return the columns that folders such as ``label=a`` define, for each file.

        Parameters
        ----------
        paths : sequence of str
            All files.

        Returns
        -------
        list of dict
            Arrow scalars by name: integers if all values of a column are integers, else text.
        """
        depth = len(self._common_folder().parts)
        texts = [_folder_values(self.locate(path).parts[depth:-1], path) for path in paths]
        for found, path in zip(texts, paths, strict=True):
            if found.keys() != texts[0].keys():
                raise DataError(
                    f"{paths[0]} lies in folders {_folder_names(texts[0])}, but {path} lies in "
                    f"folders {_folder_names(found)}: columns must be the same for all files. Give "
                    f"a pattern that matches files of one kind"
                )
        as_text = {name for found in texts for name, text in found.items() if not _is_integer(text)}

        def scalar(name: str, text: str | None) -> Any:
            if name in as_text:
                return pa.scalar(text, pa.string())
            return pa.scalar(None if text is None else int(text), pa.int64())

        return [{name: scalar(name, text) for name, text in found.items()} for found in texts]

    def _common_folder(self) -> Path:
        """Return the folder below which names of folders define columns."""
        if not isinstance(self.given, str):
            parents = [self.locate(path).parent for path in self.given]
            return Path(os.path.commonpath(parents))
        path = self.locate(self.given)
        if path.exists():
            return path if path.is_dir() else path.parent
        return self.locate(str(_before_wildcards(self.given)))

    def _in_folder(self, folder: str) -> list[str]:
        root = self.locate(folder)
        inside = [file.relative_to(root) for file in root.rglob("*")]
        found = [str(Path(folder, file)) for file in inside if not _is_metadata(file.parts)]
        remedy = f"give a pattern such as '{Path(folder, '**', '*.parquet')}'"
        return self._split_kinds(found, folder, remedy)[0]

    def _matching(self, pattern: str) -> list[str]:
        n_fixed = len(_before_wildcards(pattern).parts)
        # Like a leading dot, a leading underscore matches only if the pattern has one.
        asked = any(part.startswith("_") for part in Path(pattern).parts[n_fixed:])
        matches = set(glob.glob(pattern, root_dir=self.directory, recursive=True))
        found = [f for f in matches if asked or not _is_metadata(Path(f).parts[n_fixed:])]
        remedy = "narrow the pattern: let it end in '.parquet'"
        parquet, others = self._split_kinds(found, pattern, remedy)
        if parquet:
            return parquet
        if others:
            raise DataError(
                f"{pattern} matches {others[0]}, which is not a Parquet file: only Parquet files "
                f"can be read together as one table. Give one file, or a folder with one CSV file "
                f"per series"
            )
        hint = f". It matches the folder {min(matches)}: add '/*.parquet'" if matches else ""
        raise FileNotFoundError(
            f"{pattern}: there is no file of this name, and no Parquet file matches it as a "
            f"pattern (*, ? and [] are wildcards){hint}"
        )

    def _listed(self, paths: Sequence[str]) -> list[str]:
        for path in paths:
            file = self.locate(path)
            if not file.exists():
                raise FileNotFoundError(f"{path}, in the list of files: there is no such file")
            if file.is_dir() or not _is_parquet(path):
                kind = "a folder" if file.is_dir() else "not a Parquet file"
                raise DataError(
                    f"{path}, in the list of files, is {kind}: a list must contain only Parquet "
                    f"files, which are read together as one table"
                )
        return list(paths)

    def _split_kinds(
        self, found: Iterable[str], where: str, remedy: str
    ) -> tuple[list[str], list[str]]:
        """Return the Parquet files and the other files with series; both together are an error."""
        # A folder may have the name of a file: Spark and Dask write train.parquet/part-0.parquet.
        files = sorted((f for f in found if not self.locate(f).is_dir()), key=_natural_order)
        parquet = [file for file in files if _is_parquet(file)]
        others = [file for file in files if base_suffix(file) in _OTHER_SUFFIXES]
        if parquet and others:
            raise DataError(
                f"{where} holds files of two kinds, {parquet[0]} and {others[0]}, which cannot be "
                f"read as one table: move one kind elsewhere, or {remedy}"
            )
        return parquet, others

    def _raise_if_repeated(self, paths: Sequence[str]) -> None:
        """Raise an error if a file is listed twice, perhaps through a link."""
        seen: dict[str, str] = {}
        for path in paths:
            file = os.path.realpath(self.locate(path))
            if file in seen:
                also = "" if seen[file] == path else f", also as {seen[file]}"
                where = self.given if isinstance(self.given, str) else "the list of files"
                raise DataError(
                    f"{path} is in {where} twice{also}: its series would be counted twice. "
                    f"Remove one"
                )
            seen[file] = path


def _raise_if_url(path: str) -> None:
    if _URL.match(path) and not os.path.exists(path):
        raise DataError(
            f"{path} is a URL. Only local files can be read: download it, mount the storage as a "
            f"folder, or use a Dask data frame (dask.dataframe.read_parquet)"
        )


def _folder_values(folders: Sequence[str], path: str) -> dict[str, str | None]:
    """Return names and values of folders such as ``label=a``."""
    found: dict[str, str | None] = {}
    for folder in folders:
        name, equals, value = folder.partition("=")
        if not (name and equals):
            continue
        if unquote(name) in found:
            raise DataError(f"{path} lies in two folders {name}=...: rename one of them")
        found[unquote(name)] = None if value == _NO_VALUE else unquote(value)
    return found


def _folder_names(values: Mapping[str, object]) -> str:
    return " and ".join(f"{name}=..." for name in values) or "without name=value"


def _is_integer(text: str | None) -> bool:
    """Tell whether text can be read as an integer without loss; 007 is not 7."""
    return text is None or bool(re.fullmatch(r"0|-?[1-9][0-9]{0,17}", text))


def _before_wildcards(pattern: str) -> Path:
    return Path(*takewhile(lambda part: not _has_wildcard(part), Path(pattern).parts))


def _has_wildcard(path: str) -> bool:
    return any(character in path for character in "*?[")


def _is_parquet(path: str) -> bool:
    return Path(path).suffix.lower() in PARQUET_SUFFIXES


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
