"""Users' data and models, read with a word about what was understood."""

from __future__ import annotations

import contextlib
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from slts._typing import AnyArray
from slts.cli.options import ColumnOptions
from slts.cli.terminal import CommandError, Voice
from slts.errors import DataError
from slts.extras import import_extra
from slts.files import Dataset, iter_series, read_series
from slts.persistence import load
from slts.series import SeriesBatch

_NUMBER = re.compile(r"[-+]?\d+\.\d*")


def load_model(path: Path, jobs: int, *, device: str = "cpu", shows_progress: bool = False) -> Any:
    """Read a model file; it will use `device`, and `jobs` threads, 0 for all processors."""
    if not path.exists():
        raise CommandError(f"there is no model file {path}; `slts fit` writes one")
    model = load(path)
    if hasattr(model, "n_jobs"):
        model.n_jobs = jobs or -1
    if hasattr(model, "device"):
        model.device = device
        check_device(model)
    if hasattr(model, "verbose"):
        model.verbose = shows_progress
    return model


def check_device(model: Any) -> None:
    """Refuse a device that is not there before anything is read."""
    try:
        model._check_device()
    except (RuntimeError, ValueError) as error:
        raise CommandError(str(error)) from error


def read_data(
    data: str,
    columns: ColumnOptions,
    voice: Voice,
    *,
    expect: Sequence[str] | None = None,
    classes: AnyArray | None = None,
) -> Dataset:
    """Read series, with labels if there are any, and say how they were understood.

    Channels and labels of a model tell the columns apart.
    """
    keep_signals()
    known = None if classes is None else classes.tolist()
    found = read_series(data, expect=expect, classes=known, **columns.as_keywords())  # type: ignore[arg-type]
    if found.columns is not None:
        voice.say(f"columns: {found.columns}")
    for note in found.notes:
        voice.say(f"{found.source}: {note}")
    voice.detail(f"{found.source}: {found.series!r}")
    return found


def read_labelled(
    data: str,
    columns: ColumnOptions,
    voice: Voice,
    *,
    model: Any = None,
    like: tuple[SeriesBatch, AnyArray] | None = None,
) -> tuple[Dataset, AnyArray]:
    """Read series with their labels.

    Parameters
    ----------
    data, columns, voice
        What to read, and how.
    model
        A fitted model whose channels are taken and whose spelling of the labels is used.
    like
        Training series and classes of a model that is yet to be fitted, for the same purpose.

    Returns
    -------
    Dataset
        The series.
    ndarray
        Their labels.
    """
    expect, classes = None, None
    if model is not None:
        expect, classes = model.channel_names_in_, model.classes_
    elif like is not None:
        expect, classes = like[0].channel_names, like[1]
    found = read_data(data, columns, voice, expect=expect, classes=classes)
    if like is not None and found.series.n_channels != like[0].n_channels:
        raise DataError(
            f"{found.source} has {found.series.n_channels} channels, and the series to train on "
            f"have {like[0].n_channels}"
        )
    if found.labels is None:
        remedy = "they are needed here" if found.columns is None else "name their column: --label"
        raise CommandError(f"{found.source} has no labels that could be found: {remedy}")
    return found, found.labels if classes is None else match_labels(found, classes)


def read_unlabelled(
    data: str, columns: ColumnOptions, voice: Voice, model: Any, batch_size: int
) -> Iterator[Dataset]:
    """Read series batch by batch; labels, if there are any, are left alone."""
    keep_signals()
    batches = iter_series(
        data,
        expect=model.channel_names_in_,
        labels=False,
        batch_size=batch_size,
        **columns.as_keywords(),
    )
    told: set[str] = set()
    for batch in batches:
        lines = [f"{batch.source}: {note}" for note in batch.notes]
        if batch.columns is not None:
            lines.insert(0, f"columns: {batch.columns}")
        for line in lines:
            if line not in told:
                voice.say(line)
                told.add(line)
        yield batch


def match_labels(found: Dataset, classes: AnyArray) -> AnyArray:
    """Return labels as the model spells them: text files give text where others give numbers."""
    assert found.labels is not None
    spelled = {str(name): name for name in classes.tolist()}
    # 1.0 stands for 1, unless the model tells the two apart.
    wholes = Counter(_whole(name) for name in classes.tolist())
    for name in classes.tolist():
        if wholes[_whole(name)] == 1:
            spelled.setdefault(_whole(name), name)
    matched = []
    for position, label in enumerate(found.labels.tolist()):
        key = str(label) if str(label) in spelled else _whole(label)
        if key not in spelled:
            name = position if found.ids is None else repr(found.ids[position].item())
            raise DataError(
                f"{found.source}: the label {label!r} of series {name} is none the model was "
                f"trained on; it knows {', '.join(map(str, classes.tolist()))}"
            )
        matched.append(spelled[key])
    return np.array(matched, dtype=classes.dtype)


def _whole(label: object) -> str:
    """A label as text, a whole number without its fraction.

    Examples
    --------
    >>> from slts.cli.data import _whole
    >>> _whole(1.0), _whole("-2.00"), _whole(1.5), _whole("1.0.0")
    ('1', '-2', '1.5', '1.0.0')
    """
    return re.sub(r"(?<=\d)\.0*$", "", str(label)) if _NUMBER.fullmatch(str(label)) else str(label)


def keep_signals() -> None:
    """Let Ctrl-C reach Python while Arrow reads.

    Arrow takes signals for itself meanwhile, and loses those too late to stop what it does.
    """
    with contextlib.suppress(ImportError):
        arrow: Any = import_extra("pyarrow", "io")
        arrow.enable_signal_handlers(False)
