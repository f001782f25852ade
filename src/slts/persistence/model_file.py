"""`save`, `load` and `describe`: fitted classifiers and their files."""

from __future__ import annotations

import io
import os
import re
import stat
from typing import Any, BinaryIO

import numpy as np
from sklearn.utils.validation import check_is_fitted

from slts.errors import ModelFileError, warn
from slts.estimators.base import SeriesClassifier
from slts.persistence.codec import LONGEST_TEXT, Decoder, Encoder
from slts.persistence.container import MOST_HEADER_BYTES, Container, pack, unpack
from slts.persistence.models import (
    MODELS,
    NOT_KEPT,
    OF_THE_MACHINE,
    OPTIONAL,
    YOUNGER,
    attribute_names,
    complete_model,
)
from slts.whole_files import write_whole

SUFFIX = ".slts"
_FIELDS = (
    "format", "sha256", "slts", "estimator", "parameters", "classes", "channel_names", "training",
    "state",
)  # fmt: skip
_TRAINING = {"series": "n_series_in_", "steps": "n_steps_in_"}
# Attributes that have a place of their own in the file.
_ELSEWHERE = frozenset({"classes_", *_TRAINING.values()})
_LONGEST_NOTE = 500
# What the checks of other parts raise about values that do not fit together.
_MISFITS = (ArithmeticError, LookupError, MemoryError, RecursionError, TypeError, ValueError)


def save(model: Any, path: str | os.PathLike[str]) -> None:
    """Write a fitted classifier into one file.

    The file holds numbers and names, no code. It is written whole or not at all: an older file of
    the same name stays until the new one is complete. The same model gives the same bytes.

    Parameters
    ----------
    model
        A fitted classifier of slts. Of a search pass its `best_estimator_`, of a pipeline the step
        that is a classifier of slts.
    path
        Name of the file; ends in ``.slts``.

    Raises
    ------
    TypeError
        If files cannot hold this object.
    sklearn.exceptions.NotFittedError
        If it is not fitted.
    ModelFileError
        If its parts do not fit together, as after parameters were changed without fitting again.

    Warns
    -----
    UserWarning
        If a parameter is an object, such as a splitter: the file describes it, and the model that
        is loaded has the default instead. Predictions do not depend on it.

    See Also
    --------
    load : Read the file.

    Examples
    --------
    >>> import os, tempfile
    >>> import numpy as np, slts
    >>> y = np.repeat(["left", "right"], 20)
    >>> rng = np.random.default_rng(0)
    >>> X = [rng.normal(size=(2, 15)) + (c == "right") * np.array([[2.0], [0.0]]) for c in y]
    >>> model = slts.SLTSClassifier(random_state=0).fit(X, y)
    >>> path = os.path.join(tempfile.mkdtemp(), "model.slts")
    >>> slts.save(model, path)
    >>> slts.load(path).predict(X[:1])
    array(['left'], dtype='<U5')
    """
    name = os.fspath(path)
    if not isinstance(name, str) or not name.endswith(SUFFIX):
        raise ValueError(
            f"The 'path' parameter of save must end in {SUFFIX!r}. Got {path!r} instead."
        )
    _check_type(model)
    check_is_fitted(model)
    try:
        content = _to_bytes(model)
        # What is written can be read: the same checks, before the file gets its name.
        _to_model(unpack(io.BytesIO(content), len(content), _version()))
    except (ModelFileError, *_MISFITS) as error:
        if isinstance(error, TypeError):
            raise
        raise ModelFileError(f"this model cannot be saved as {name}: {error}") from error
    write_whole(name, content)


def load(path: str | os.PathLike[str]) -> Any:
    """Read a classifier that `save` wrote.

    Nothing in the file is executed, and nothing of it is used before its hash, its sizes and all
    its values have been checked. Whether to believe what the model predicts is another matter: that
    depends on who made it.

    Parameters
    ----------
    path
        Name of the file.

    Returns
    -------
    SeriesClassifier
        The fitted classifier; it answers bit for bit as the one that was saved. Its `device` is
        ``"cpu"``, where the other may have had a GPU: set it anew; `memory_limit` is the default.

    Raises
    ------
    ModelFileError
        If it is not a model file, is damaged, was edited, or needs a newer slts; the message says
        which.
    FileNotFoundError
        If there is no such file.

    See Also
    --------
    save : Write a file.
    """
    return _reading(path, _to_model)


def describe(path: str | os.PathLike[str]) -> dict[str, Any]:
    """Say what a model file holds: plain values that JSON can hold.

    Parameters
    ----------
    path
        Name of the file.

    Returns
    -------
    dict
        `estimator`, `parameters` (as text; of those that files cannot hold, a description),
        `classes`, `channel_names`, `training` (numbers of series, steps, classes), `format`, `slts`
        (the version that wrote it) and `sha256`.

    Raises
    ------
    ModelFileError, FileNotFoundError
        As `load`.
    """

    def facts(container: Container) -> dict[str, Any]:
        model, document = _to_model(container), container.document
        parameters = {}
        for name, value in _kept_parameters(model).items():
            note = _note(document["parameters"].get(name))
            parameters[name] = repr(value) if note is None else note
        kept = ("format", "slts", "sha256", "estimator", "channel_names", "training")
        return {
            **{name: document[name] for name in kept},
            "parameters": parameters,
            "classes": [v.item() if isinstance(v, np.generic) else v for v in model.classes_],
        }

    result: dict[str, Any] = _reading(path, facts)
    return result


def _version() -> str:
    from slts import __version__

    return __version__


def _check_type(model: Any) -> None:
    if type(model).__name__ in MODELS and type(model) is MODELS[type(model).__name__].type:
        return
    if hasattr(model, "best_estimator_"):
        hint = "Pass its best_estimator_."
    elif hasattr(model, "steps"):
        hint = "Pass the step that is a classifier of slts, such as pipeline[-1]."
    elif hasattr(model, "estimator_"):
        hint = "Pass its estimator_."
    else:
        hint = "Of a GridSearchCV pass best_estimator_, of a Pipeline the step that is one of them."
    raise TypeError(
        f"{type(model).__name__} cannot be saved. These can: {', '.join(MODELS)}. {hint}"
    )


def _to_bytes(model: SeriesClassifier) -> bytes:
    name = type(model).__name__
    encoder = Encoder()
    parameters = {}
    for parameter, value in sorted(_kept_parameters(model).items()):
        parameters[parameter] = _encode_parameter(encoder, model, parameter, value)
    held = (attribute_names(name) | OPTIONAL.keys()) & model.__dict__.keys()
    strangers = model.__dict__.keys() - held - parameters.keys() - NOT_KEPT - OF_THE_MACHINE
    strangers -= MODELS[name].derived.keys()
    if strangers:
        raise TypeError(
            f"this {name} has attributes that no model file holds: {', '.join(sorted(strangers))}. "
            f"Delete them first."
        )
    names = model.channel_names_in_
    document = {
        "slts": _version(),
        "estimator": name,
        "parameters": parameters,
        "classes": encoder.encode(model.classes_, "classes"),
        "channel_names": None if names is None else list(names),
        "training": {
            **{key: model.__dict__.get(attribute) for key, attribute in _TRAINING.items()},
            "classes": len(model.classes_),
        },
        "state": {
            attribute: encoder.encode(model.__dict__[attribute], attribute)
            for attribute in sorted(held - _ELSEWHERE)
            if attribute not in YOUNGER or model.__dict__[attribute] is not YOUNGER[attribute]
        },
    }
    content = pack(document, encoder.tensors)
    if int.from_bytes(content[:8], "little") > MOST_HEADER_BYTES:
        raise ModelFileError(
            f"its names, parameters and reports take more than {MOST_HEADER_BYTES} bytes"
        )
    return content


def _kept_parameters(model: SeriesClassifier) -> dict[str, Any]:
    given = model.get_params(deep=False)
    return {name: value for name, value in given.items() if name not in OF_THE_MACHINE}


def _encode_parameter(encoder: Encoder, model: SeriesClassifier, name: str, value: Any) -> Any:
    """Node of a parameter; of an object that files cannot hold, a note about it."""
    trial = Encoder()
    try:
        node = trial.encode(value, f"parameters.{name}")
    except (TypeError, ModelFileError):
        # Addresses differ from run to run.
        text = re.sub(r" at 0x[0-9A-Fa-f]+", "", repr(value))[:_LONGEST_NOTE]
        if name != "random_state":
            default = type(model)().get_params(deep=False)[name]
            warn(
                f"The '{name}' parameter of {type(model).__name__}, {text}, is described in the "
                f"model file but not kept: the loaded model has the default, {default!r}.",
            )
        return {"note": text}
    encoder.tensors.update(trial.tensors)
    return node


def _note(node: Any) -> str | None:
    """The description of a parameter that is not kept."""
    if not isinstance(node, dict) or set(node) != {"note"}:
        return None
    note = node["note"]
    if not isinstance(note, str) or len(note) > LONGEST_TEXT:
        raise ModelFileError("a note about a parameter is no text")
    return note


def _to_model(container: Container) -> SeriesClassifier:
    document = container.document
    if set(document) != set(_FIELDS):
        raise ModelFileError(f"it must have the entries {', '.join(_FIELDS)}, and no others")
    name, training = document["estimator"], document["training"]
    if not isinstance(name, str) or name not in MODELS:
        raise ModelFileError(
            f"it holds a {str(name)[:40]!r}, which this slts, {_version()}, does not know"
        )
    if not isinstance(training, dict) or set(training) != {*_TRAINING, "classes"}:
        raise ModelFileError("training must tell the numbers of series, steps and classes")
    kind = MODELS[name].type
    decoder = Decoder(container.tensors)
    parameters = _decode_parameters(decoder, kind, document["parameters"])
    state = _decode_state(decoder, name, document["state"])
    state["classes_"] = decoder.decode(document["classes"], "classes")
    decoder.finish()
    state |= {attribute: training[key] for key, attribute in _TRAINING.items()}
    model = kind(**parameters)
    model.__dict__.update(state)
    complete_model(model)
    names = model.channel_names_in_
    if document["channel_names"] != (None if names is None else list(names)):
        raise ModelFileError("channel_names must be those of its series")
    if type(training["classes"]) is not int or training["classes"] != len(model.classes_):
        raise ModelFileError("training must tell the number of classes")
    return model


def _decode_parameters(
    decoder: Decoder, kind: type[SeriesClassifier], nodes: Any
) -> dict[str, Any]:
    kept = set(kind._get_param_names()) - OF_THE_MACHINE
    # A parameter the file does not know is younger than the file: its default is what was used.
    if not isinstance(nodes, dict) or not nodes.keys() <= kept:
        raise ModelFileError(
            f"it has parameters that the {kind.__name__} of this slts, {_version()}, does not have"
        )
    return {
        name: decoder.decode(node, f"parameters.{name}")
        for name, node in nodes.items()
        if _note(node) is None
    }


def _decode_state(decoder: Decoder, name: str, nodes: Any) -> dict[str, Any]:
    known = attribute_names(name) - _ELSEWHERE
    needed, unsaid = known - YOUNGER.keys(), {key: YOUNGER[key] for key in known & YOUNGER.keys()}
    if not isinstance(nodes, dict) or not needed <= nodes.keys() <= known | OPTIONAL.keys():
        raise ModelFileError(f"it must hold {', '.join(sorted(needed))}, and nothing else")
    held = {attribute: decoder.decode(node, attribute) for attribute, node in nodes.items()}
    return {**unsaid, **held}


def _reading(path: str | os.PathLike[str], use: Any) -> Any:
    """Open, read and check a file; every complaint about its content names it."""
    shown = os.fspath(path)
    try:
        status = os.stat(path)
        if not stat.S_ISREG(status.st_mode):
            what = "a folder" if stat.S_ISDIR(status.st_mode) else "not a regular file"
            raise ModelFileError(f"it is {what}")
        with open(path, "rb") as file, np.errstate(all="ignore"):
            return use(_unpacked(file))
    except ModelFileError as error:
        raise ModelFileError(f"{shown} cannot be loaded: {error}") from error
    except _MISFITS as error:
        raise ModelFileError(
            f"{shown} cannot be loaded, its parts do not fit together: {error}"
        ) from error


def _unpacked(file: BinaryIO) -> Container:
    return unpack(file, os.fstat(file.fileno()).st_size, _version())
