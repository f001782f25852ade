"""Parquet files that are read as one table: those of a folder, of a pattern, or of a list."""

from __future__ import annotations

import glob
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import takewhile
from pathlib import Path
from typing import Any, TypeAlias, TypeGuard
from urllib.parse import unquote

from slts.errors import DataError
from slts.extras import import_extra
from slts.files.arrow_tables import ARROW_SUFFIXES, PARQUET_SUFFIXES
from slts.files.opening import base_suffix

__all__ = ["OnePath", "ParquetSource", "Paths", "absolute", "is_list_of_paths", "is_pattern"]

OnePath: TypeAlias = str | os.PathLike[str]
Paths: TypeAlias = OnePath | Sequence[OnePath]

# What tools name the folder of rows without a value.
_NO_VALUE = "__HIVE_DEFAULT_PARTITION__"
# With one slash too, as `Path` writes it; of one letter, it is a drive.
_URL = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+:/")
# Other files that hold series.
_OTHERS = (".csv", ".tsv", ".ts", ".npz", *ARROW_SUFFIXES)


def is_list_of_paths(source: object) -> TypeGuard[Sequence[OnePath]]:
    """Whether a list is one of paths and not of series: its first item tells."""
    return (
        isinstance(source, list | tuple)
        and len(source) > 0
        and isinstance(source[0], str | os.PathLike)
    )


def is_pattern(path: str) -> bool:
    """Whether a path stands for those that match it; one that exists stands for itself."""
    return _is_magic(path) and not os.path.exists(path)


def absolute(path: str) -> str:
    """Return a path that means the same in other folders; names of data sets stay as they are."""
    return str(Path(path).absolute()) if os.path.exists(path) else path


@dataclass(frozen=True)
class ParquetSource:
    """Where the files are; it finds them again in the same order.

    Attributes
    ----------
    given
        A file, a folder, a pattern, or the files themselves.
    root
        What names of files are relative to; empty where they are whole paths.
    name
        What to call it in messages.
    """

    given: str | tuple[str, ...]
    root: str
    name: str

    @classmethod
    def at(cls, source: Paths) -> ParquetSource:
        """Take what a user gave."""
        if isinstance(source, str | os.PathLike):
            given = os.fspath(source)
            _refuse_url(given)
            return cls(given, "" if is_pattern(given) else given, given)
        if not isinstance(source, list | tuple):
            raise DataError(
                f"the files must be given as one path, a pattern, or a list of paths, got "
                f"{type(source).__name__}: say list(...)"
            )
        for number, path in enumerate(source):
            if not isinstance(path, str | os.PathLike):
                raise DataError(
                    f"item {number} of the list of files is of type {type(path).__name__}, "
                    f"expected a path"
                )
            _refuse_url(os.fspath(path))
        if not source:
            raise DataError("the list of files is empty: name at least one Parquet file")
        files = tuple(os.fspath(path) for path in source)
        more = len(files) - 1
        name = files[0] + (f" and {more} more file{'s' * (more > 1)}" if more else "")
        return cls(files, "", name)

    def absolute(self) -> ParquetSource:
        """Return the same files for processes that run in other folders."""
        if not isinstance(self.given, str):
            return replace(self, given=tuple(str(Path(path).absolute()) for path in self.given))
        if not self.root:
            return replace(self, given=os.path.join(glob.escape(os.getcwd()), self.given))
        root = str(Path(self.root).absolute())
        return replace(self, given=root, root=root)

    def within(self, path: Path) -> str:
        """Name a file from the root."""
        return str(path.relative_to(self.root) if self.root else path)

    def shown(self, within: str) -> str:
        """Name a file as the source was given, if its root is what was given."""
        return str(Path(self.name, within)) if self.root else within

    def files(self) -> list[Path]:
        """List the Parquet files in the order they are read; none if a folder holds none."""
        if not isinstance(self.given, str):
            return _once(_listed(self.given), "the list of files")
        path = Path(self.given)
        if self.root == "":
            return _once(_matching(self.given), self.given)
        return _once(_in_folder(path), self.given) if path.is_dir() else [path]

    def keys(self, files: Sequence[Path]) -> list[dict[str, Any]]:
        """Values for all rows of a file that its folders tell, such as ``label=a``.

        Parameters
        ----------
        files : sequence of Path
            All files of the source.

        Returns
        -------
        list of dict
            Scalars of Arrow by name: integers where all of a name are, else text.
        """
        n_above = len(self._common_folder().parts)
        below = [path.absolute().parts[n_above:-1] for path in files]
        texts = [_keys(folders, path) for folders, path in zip(below, files, strict=True)]
        for found, path in zip(texts, files, strict=True):
            if found.keys() != texts[0].keys():
                raise DataError(
                    f"{files[0]} lies in folders {_listing(texts[0])}, and {path} in "
                    f"{_listing(found)}: columns must be the same for all files. Give a pattern "
                    f"that matches those of one kind"
                )
        if not any(texts):
            return [{} for _ in files]
        pa: Any = import_extra("pyarrow", "io")
        others = {name for found in texts for name, text in found.items() if not _is_integer(text)}

        def scalar(name: str, text: str | None) -> Any:
            if name in others:
                return pa.scalar(text, pa.string())
            return pa.scalar(None if text is None else int(text), pa.int64())

        return [{name: scalar(name, text) for name, text in found.items()} for found in texts]

    def _common_folder(self) -> Path:
        """The folder below which names of folders are told apart."""
        if not isinstance(self.given, str):
            return Path(os.path.commonpath([Path(path).absolute().parent for path in self.given]))
        return (Path(self.root) if self.root else _fixed(self.given)).absolute()


def _refuse_url(path: str) -> None:
    if _URL.match(path) and not os.path.exists(path):
        raise DataError(
            f"{path} is an address, and only local files are read, by their paths: download it, "
            f"mount it as a folder, or read it with Dask (dask.dataframe.read_parquet)"
        )


def _keys(folders: Sequence[str], path: Path) -> dict[str, str | None]:
    """Names and values of folders such as ``label=a``."""
    found: dict[str, str | None] = {}
    for folder in folders:
        name, equals, value = folder.partition("=")
        if not (name and equals):
            continue
        if unquote(name) in found:
            raise DataError(f"{path} lies in two folders {name}=...: rename one of them")
        found[unquote(name)] = None if value == _NO_VALUE else unquote(value)
    return found


def _listing(keys: Mapping[str, object]) -> str:
    return " and ".join(f"{name}=..." for name in keys) or "without a name=value"


def _is_integer(text: str | None) -> bool:
    """Whether nothing is lost by a number; 007 is not 7."""
    return text is None or bool(re.fullmatch(r"0|-?[1-9][0-9]{0,17}", text))


def _fixed(pattern: str) -> Path:
    """The folders of a pattern before its first wildcard."""
    return Path(*takewhile(lambda part: not _is_magic(part), Path(pattern).parts))


def _in_folder(folder: Path) -> list[Path]:
    """List those of a folder and its folders."""
    found = (file for file in folder.rglob("*") if not _of_tools(file.relative_to(folder).parts))
    remedy = f"give a pattern such as '{folder / '**' / '*.parquet'}'"
    return _of_one_kind(found, str(folder), remedy)[0]


def _matching(pattern: str) -> list[Path]:
    n_fixed = len(_fixed(pattern).parts)
    # As a leading dot does, an underscore counts where the pattern has it too.
    asked = any(part.startswith("_") for part in Path(pattern).parts[n_fixed:])
    matches = [Path(match) for match in set(glob.glob(pattern, recursive=True))]
    found = (file for file in matches if asked or not _of_tools(file.parts[n_fixed:]))
    parquet, others = _of_one_kind(found, pattern, "narrow the pattern: let it end in '.parquet'")
    if parquet:
        return parquet
    if others:
        raise DataError(
            f"{pattern} matches {others[0]}, which is no Parquet file: only Parquet files are read "
            f"together as one table. Name one file, or a folder with one CSV per series"
        )
    hint = f"; it matches the folder {min(matches)}: add '/*.parquet'" if matches else ""
    raise FileNotFoundError(
        f"{pattern}: there is no file of this name, and no Parquet file matches it as a pattern "
        f"(*, ? and [] are wildcards){hint}"
    )


def _listed(paths: Sequence[str]) -> list[Path]:
    for given in paths:
        path = Path(given)
        if not path.exists():
            raise FileNotFoundError(f"{given}, in the list of files: there is no such file")
        if path.is_dir() or not _is_parquet(path):
            kind = "a folder" if path.is_dir() else "no Parquet file"
            raise DataError(
                f"{given}, in the list of files, is {kind}: a list may hold Parquet files only, "
                f"which are read together as one table"
            )
    return [Path(given) for given in paths]


def _once(files: list[Path], where: str) -> list[Path]:
    """Refuse a file that comes twice, by a link perhaps."""
    seen: dict[str, Path] = {}
    for path in files:
        first = seen.setdefault(os.path.realpath(path), path)
        if first is not path:
            also = "" if str(first) == str(path) else f", also as {first}"
            raise DataError(
                f"{path} is in {where} twice{also}: its series would count twice. Remove one"
            )
    return files


def _of_one_kind(found: Iterable[Path], where: str, remedy: str) -> tuple[list[Path], list[Path]]:
    """Sort Parquet files and others that can be read; together they are refused."""
    # Folders may be named as files are: Spark and Dask write train.parquet/part-0.parquet.
    every = sorted((file for file in found if not file.is_dir()), key=_by_number)
    parquet = [file for file in every if _is_parquet(file)]
    others = [file for file in every if base_suffix(file) in _OTHERS]
    if parquet and others:
        raise DataError(
            f"{where} holds files of two kinds, {parquet[0]} and {others[0]}, which are not read "
            f"as one table: move one kind elsewhere, or {remedy}"
        )
    return parquet, others


def _is_magic(path: str) -> bool:
    return any(character in path for character in "*?[")


def _is_parquet(path: Path) -> bool:
    return path.suffix.lower() in PARQUET_SUFFIXES


def _of_tools(parts: Sequence[str]) -> bool:
    """Whether a file is hidden, or one of those that tools write beside data.

    Such as ``_SUCCESS``, or all of ``_delta_log``; ``_day=3`` is a folder of data.
    """
    return any(part.startswith(".") or (part.startswith("_") and "=" not in part) for part in parts)


def _by_number(path: Path) -> tuple[list[list[str | int]], str]:
    """Order names as people do: part-2 before part-10."""
    split = [re.split(r"([0-9]+)", part) for part in path.parts]
    return (
        [[int(text) if k % 2 else text for k, text in enumerate(texts)] for texts in split],
        str(path),
    )
