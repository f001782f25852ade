"""Data that are too large for memory: read part by part, their labels spelled as the model's."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import typer

from slts._typing import AnyArray
from slts.cli.data import keep_signals, match_labels, read_labelled
from slts.cli.options import ColumnOptions
from slts.cli.terminal import Voice
from slts.estimators.memory_plan import amount
from slts.estimators.streams import half_of_memory, memory_bytes
from slts.files import Dataset, SeriesScan, scan_series
from slts.files.paths import STDIN
from slts.series import SeriesBatch

# Reading and learning take about so many times the memory of the series themselves.
_TIMES = 20


def limit_of(given: str | None) -> int:
    """Bytes that a command may take: as told, or half of what there is."""
    if given is not None:
        try:
            return memory_bytes(given, "slts")
        except ValueError as error:
            raise typer.BadParameter(
                f"must be a positive number of bytes, or a size such as 2GB or 512MiB, got {given}",
                param_hint="--memory-limit",
            ) from error
    return half_of_memory()


def scan_if_large(
    data: str,
    columns: ColumnOptions,
    voice: Voice,
    limit: int,
    *,
    model: Any = None,
) -> SeriesScan | None:
    """Give a scan of data that would take more than `limit` bytes; None if they fit in memory.

    Channels and labels of a model tell the columns apart.
    """
    if data == STDIN:
        return None
    keep_signals()
    scan = scan_series(
        data,
        expect=None if model is None else model.channel_names_in_,
        classes=None if model is None else model.classes_.tolist(),
        **columns.as_keywords(),
    )
    size = scan.n_bytes
    if size is None or _TIMES * size <= limit:
        return None
    if scan.columns is not None:
        voice.say(f"columns: {scan.columns}")
    voice.say(f"{scan.name}: about {amount(size)} of series, read part by part")
    return scan


def read_or_scan(
    data: str, columns: ColumnOptions, voice: Voice, limit: int, model: Any
) -> tuple[SeriesBatch | Spelled, AnyArray | None, str]:
    """Labelled series for a model: with their labels if they fit in memory, else a scan.

    The last is what to call them.
    """
    large = scan_if_large(data, columns, voice, limit, model=model)
    if large is not None:
        return Spelled(large, model.classes_), None, large.name
    found, truth = read_labelled(data, columns, voice, model=model)
    return found.series, truth, found.source


@dataclass(frozen=True)
class Spelled:
    """A scan whose labels are spelled as a model spells them."""

    scan: SeriesScan
    classes: AnyArray

    @property
    def name(self) -> str:
        """What to call it in messages."""
        return self.scan.name

    @property
    def in_rows(self) -> bool:
        """See `SeriesScan.in_rows`."""
        return self.scan.in_rows

    def parts(self, *, labels: bool = True) -> list[_SpelledPart]:
        """See `SeriesScan.parts`."""
        return [_SpelledPart(part, self.classes) for part in self.scan.parts(labels=labels)]

    def batches(self) -> Iterator[Dataset]:
        """All batches, one after the other."""
        for part in self.parts():
            yield from part.batches(labels=True, batch_size=1024)


@dataclass(frozen=True)
class _SpelledPart:
    part: Any
    classes: AnyArray

    @property
    def name(self) -> str:
        return str(self.part.name)

    def batches(self, *, labels: bool, batch_size: int) -> Iterator[Dataset]:
        for batch in self.part.batches(labels=labels, batch_size=batch_size):
            if labels and batch.labels is not None:
                yield replace(batch, labels=match_labels(batch, self.classes))
            else:
                yield batch


@contextmanager
def log_aloud(voice: Voice) -> Iterator[None]:
    """Say what the library logs meanwhile, such as how much memory it will take."""
    logger, handler = logging.getLogger("slts"), _Saying(voice)
    level = logger.level
    logger.addHandler(handler)
    logger.setLevel(logging.INFO)
    try:
        yield
    finally:
        logger.setLevel(level)
        logger.removeHandler(handler)


class _Saying(logging.Handler):
    def __init__(self, voice: Voice) -> None:
        super().__init__()
        self._voice = voice

    def emit(self, record: logging.LogRecord) -> None:
        self._voice.say(record.getMessage())
