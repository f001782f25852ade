"""Users' data and models, read with a word about what was understood."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
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
from slts.persistence.models import channel_names


def load_model(path: Path, jobs: int) -> Any:
    """Read a model file; it will use `jobs` threads, 0 for all processors."""
    if not path.exists():
        raise CommandError(f"there is no model file {path}; `slts fit` writes one")
    model = load(path)
    if hasattr(model, "n_jobs"):
        model.n_jobs = jobs or -1
    return model


def read_data(data: str, columns: ColumnOptions, voice: Voice, *, model: Any = None) -> Dataset:
    """Read series, with labels if there are any, and say how they were understood."""
    _keep_signals()
    found = read_series(data, expect=_expected(model), **columns.as_keywords())  # type: ignore[arg-type]
    if found.columns is not None:
        voice.say(f"columns: {found.columns}")
    for note in found.notes:
        voice.say(f"{found.source}: {note}")
    voice.detail(f"{found.source}: {found.series!r}")
    return found


def read_labelled(
    data: str, columns: ColumnOptions, voice: Voice, *, model: Any = None
) -> tuple[Dataset, AnyArray]:
    """Read series with their labels; as a model spells them if there is one."""
    found = read_data(data, columns, voice, model=model)
    if found.labels is None:
        remedy = "they are needed here" if found.columns is None else "name their column: --label"
        raise CommandError(f"{found.source} has no labels that could be found: {remedy}")
    return found, found.labels if model is None else match_labels(found, model.classes_)


def read_unlabelled(
    data: str, columns: ColumnOptions, voice: Voice, model: Any, batch_size: int
) -> Iterator[Dataset]:
    """Read series batch by batch; labels, if there are any, are left alone."""
    _keep_signals()
    batches = iter_series(
        data,
        expect=_expected(model),
        labels=False,
        batch_size=batch_size,
        **columns.as_keywords(),  # type: ignore[arg-type]
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
    matched = []
    for position, label in enumerate(found.labels.tolist()):
        if str(label) not in spelled:
            name = position if found.ids is None else repr(found.ids[position].item())
            raise DataError(
                f"{found.source}: the label {label!r} of series {name} is none the model was "
                f"trained on; it knows {', '.join(spelled)}"
            )
        matched.append(spelled[str(label)])
    return np.array(matched, dtype=classes.dtype)


def _keep_signals() -> None:
    """Let Ctrl-C reach Python while Arrow reads.

    Arrow takes signals for itself meanwhile, and loses those too late to stop what it does.
    """
    with contextlib.suppress(ImportError):
        arrow: Any = import_extra("pyarrow", "io")
        arrow.enable_signal_handlers(False)


def _expected(model: Any) -> tuple[str, ...] | None:
    return None if model is None else channel_names(model)
