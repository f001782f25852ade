"""`save`, `load` and `describe`: fitted classifiers and their files."""

from __future__ import annotations

import io
import os
import re
import stat
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from slts._typing import AnyArray
from slts.atomic_files import write_atomically
from slts.errors import ModelFileError, warn
from slts.estimators.base import SeriesClassifier
from slts.estimators.parameters import NOTHING, one_of
from slts.models.origins import Origins
from slts.persistence.codec import LONGEST_TEXT, Decoder, Encoder
from slts.persistence.container import library_version, pack, unpack
from slts.persistence.declarations import (
    BELONGS_TO,
    CLASSIFIERS,
    FORMER_ATTRIBUTES,
    LATER_ATTRIBUTES,
    LATER_PARAMETERS,
    check_model,
    stored_attributes,
    stored_parameters,
)
from slts.persistence.schema import require_kind
from slts.series import SeriesBatch

SUFFIX = ".slts"
_ENTRIES = ("format", "sha256", "slts", "estimator", "parameters", "output", "state")
_BY_NAME = {kind.__name__: kind for kind in CLASSIFIERS}
# Where scikit-learn keeps the choice of `set_output`, for which it has no public name.
_OUTPUT_CONFIG = "_sklearn_output_config"
_OUTPUT = NOTHING | one_of("default", "pandas", "polars")
_LONGEST_NOTE = 500
# Errors that other parts raise for values that do not fit together.
_INCONSISTENT_VALUES = (
    ArithmeticError, AttributeError, LookupError, MemoryError, RecursionError, TypeError,
    ValueError,
)  # fmt: skip


def save(
    model: Any,
    path: str | os.PathLike[str],
    *,
    identifiers: bool = True,
    digests: bool = True,
) -> None:
    """Write a fitted classifier to one file.

    The file contains numbers and names, and no code. It is written completely or not at all: an
    older file with the same name stays until the new file is complete. The same model gives the
    same bytes.

    Parameters
    ----------
    model
        A fitted classifier of slts. For a search, pass its `best_estimator_`. For a pipeline, pass
        the step that is a classifier of slts.
    path
        Name of the file. It must end in ``.slts``.
    identifiers
        Whether the file names the training series that landmarks and snippets come from, and
        stores the times of their steps. Without them, series are numbered.
    digests
        Whether the file has 8 bytes for each training series, from which `slts.certify` recognises
        exact copies of it. Anyone who has a series can then find out whether it was trained on.

    Raises
    ------
    TypeError
        If files cannot store this object.
    sklearn.exceptions.NotFittedError
        If the model is not fitted.
    ModelFileError
        If the parts of the model do not fit together, for example because parameters were changed
        after `fit`.

    Warns
    -----
    UserWarning
        If a parameter is an object, such as a splitter. The file describes the object, and the
        loaded model has the default instead. Predictions do not depend on it.

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
    _check_type(model)
    name = os.fspath(path)
    if not isinstance(name, str) or not name.lower().endswith(SUFFIX):
        raise ValueError(
            f"The 'path' parameter of save must end in {SUFFIX!r}. Got {path!r} instead."
        )
    check_is_fitted(model)
    try:
        content = _to_bytes(model, identifiers, digests)
        # Check that the file can be loaded before it gets its name.
        _to_model(*unpack(io.BytesIO(content), len(content)))
    except TypeError:
        raise
    except (ModelFileError, *_INCONSISTENT_VALUES) as error:
        raise ModelFileError(f"this model cannot be saved as {name}: {error}") from error
    write_atomically(name, content)


def load(path: str | os.PathLike[str]) -> Any:
    """Read a classifier that `save` wrote.

    Nothing in the file is executed. Its hash, its sizes and all its values are checked before they
    are used. The checks do not show whether the predictions can be trusted: that depends on who
    made the model.

    Parameters
    ----------
    path
        Name of the file.

    Returns
    -------
    SeriesClassifier
        The fitted classifier, with the same predictions bit for bit. Its `device` and
        `memory_limit` are the defaults, because they depend on the machine.

    Raises
    ------
    ModelFileError
        If the file is not a model file, is damaged, was edited, or has another format. The message
        gives the reason.
    FileNotFoundError
        If the file does not exist.

    See Also
    --------
    save : Write a file.
    """
    return _read(path)[0]


def describe(path: str | os.PathLike[str]) -> dict[str, Any]:
    """Summarise a model file in values that JSON can hold.

    Parameters
    ----------
    path
        Name of the file.

    Returns
    -------
    dict
        `format`, `slts` (the version that wrote the file), `sha256`, `estimator`, `channel_names`,
        `training` (numbers of series, steps and classes), `parameters` (as text; a description of
        those that files cannot store) and `classes`.

    Raises
    ------
    ModelFileError, FileNotFoundError
        As `load`.
    """
    model, document = _read(path)
    parameters = {}
    for name, value in stored_parameters(model).items():
        note = _note(document["parameters"].get(name))
        parameters[name] = repr(value) if note is None else note
    names = model.channel_names_in_
    return {
        **{name: document[name] for name in ("format", "slts", "sha256", "estimator")},
        "channel_names": None if names is None else list(names),
        "training": {
            "series": int(model.n_series_in_),
            "steps": int(model.n_steps_in_),
            "classes": len(model.classes_),
        },
        "parameters": parameters,
        "classes": [v.item() if isinstance(v, np.generic) else v for v in model.classes_],
    }


def _check_type(model: Any) -> None:
    if type(model) not in CLASSIFIERS:
        raise TypeError(
            f"{type(model).__name__} cannot be saved. These can: {', '.join(_BY_NAME)}. Write "
            f"save(model, path), where model is best_estimator_ of a search, a step of a pipeline, "
            f"such as pipeline[-1], or estimator_ of an adapter."
        )


def _to_bytes(model: SeriesClassifier, identifiers: bool, digests: bool) -> bytes:
    kind, attributes = type(model), stored_attributes(type(model))
    # Private attributes are caches, or belong to scikit-learn.
    public = {name for name in vars(model) if not name.startswith("_")}
    unknown = public - attributes - model.get_params(deep=False).keys()
    if unknown:
        raise TypeError(
            f"this {kind.__name__} has attributes that files cannot store: "
            f"{', '.join(sorted(unknown))}. Delete them first."
        )
    encoder = Encoder()
    document = {
        "estimator": kind.__name__,
        "parameters": {
            name: _encode_parameter(encoder, model, name, value)
            for name, value in sorted(stored_parameters(model).items())
        },
        "output": vars(model).get(_OUTPUT_CONFIG, {}).get("transform"),
        "state": {
            name: encoder.encode(_stored(model, name, identifiers, digests), name)
            for name in sorted(attributes)
        },
    }
    return pack(document, encoder.tensors)


def _stored(model: SeriesClassifier, name: str, identifiers: bool, digests: bool) -> Any:
    """Return an attribute as a file stores it."""
    value = getattr(model, name)
    if name == "training_digests_" and not digests:
        return None
    named = isinstance(value, Origins | SeriesBatch)
    return value.anonymous() if named and not identifiers else value


def _encode_parameter(encoder: Encoder, model: SeriesClassifier, name: str, value: Any) -> Any:
    """Give the node of a parameter, or a note about an object that files cannot store."""
    trial = Encoder()
    try:
        node = trial.encode(value, f"parameters.{name}")
    except (TypeError, ModelFileError):
        # Memory addresses differ between runs.
        text = re.sub(r" at 0x[0-9A-Fa-f]+", "", repr(value))[:_LONGEST_NOTE]
        if name != "random_state":
            default = type(model)().get_params(deep=False)[name]
            warn(
                f"The '{name}' parameter of {type(model).__name__}, {text}, is described in the "
                f"model file but not stored. The loaded model has the default, {default!r}."
            )
        return {"note": text}
    encoder.tensors.update(trial.tensors)
    return node


def _note(node: Any) -> str | None:
    """Give the description of a parameter that is not stored, or None if it is stored."""
    if not isinstance(node, dict) or set(node) != {"note"}:
        return None
    note = node["note"]
    if not isinstance(note, str) or len(note) > LONGEST_TEXT:
        raise ModelFileError("a note about a parameter is not a text")
    return note


def _to_model(document: dict[str, Any], tensors: dict[str, AnyArray]) -> SeriesClassifier:
    if set(document) != set(_ENTRIES):
        raise ModelFileError(f"it must have the entries {', '.join(_ENTRIES)}, and no others")
    name = document["estimator"]
    if not isinstance(name, str) or name not in _BY_NAME:
        raise ModelFileError(
            f"it has the estimator {str(name)[:40]!r}, which this slts, {library_version()}, does "
            f"not know"
        )
    kind, decoder = _BY_NAME[name], Decoder(tensors)
    model = kind(**_decode_parameters(decoder, kind, document["parameters"]))
    nodes, attributes = document["state"], stored_attributes(kind)
    missing = attributes - nodes.keys() if isinstance(nodes, dict) else attributes
    later = {n for n in LATER_ATTRIBUTES if BELONGS_TO.get(n) not in document["parameters"]}
    if not missing <= later or not nodes.keys() <= attributes | FORMER_ATTRIBUTES:
        raise ModelFileError(f"its state must be {', '.join(sorted(attributes))}, and no others")
    for attribute, node in nodes.items():
        value = decoder.decode(node, attribute)
        if attribute in attributes:
            setattr(model, attribute, value)
    for attribute in missing:
        setattr(model, attribute, LATER_ATTRIBUTES[attribute](model))
    decoder.finish()
    check_model(model)
    require_kind(_OUTPUT, "output", document["output"])
    if document["output"] is not None:
        model.set_output(transform=document["output"])
    return model


def _decode_parameters(
    decoder: Decoder, kind: type[SeriesClassifier], nodes: Any
) -> dict[str, Any]:
    known = stored_parameters(kind())
    # A parameter that is missing is newer than the file: its value keeps the old behaviour.
    if not isinstance(nodes, dict) or not nodes.keys() <= known.keys():
        unknown = ", ".join(sorted(set(nodes) - known.keys())) if isinstance(nodes, dict) else ""
        raise ModelFileError(
            f"it has parameters that the {kind.__name__} of this slts, {library_version()}, does "
            f"not have: {unknown[:100]}"
        )
    later = {name: value for name, value in LATER_PARAMETERS.items() if name in known}
    return later | {
        name: decoder.decode(node, f"parameters.{name}")
        for name, node in nodes.items()
        if _note(node) is None
    }


def _read(path: str | os.PathLike[str]) -> tuple[SeriesClassifier, dict[str, Any]]:
    """Read and check a file; errors about its content start with its name."""
    shown = os.fspath(path)
    try:
        mode = os.stat(path).st_mode
        if not stat.S_ISREG(mode):
            what = "a folder" if stat.S_ISDIR(mode) else "not a regular file"
            raise ModelFileError(f"it is {what}")
        with open(path, "rb") as file, np.errstate(all="ignore"):
            document, tensors = unpack(file, os.fstat(file.fileno()).st_size)
            return _to_model(document, tensors), document
    except ModelFileError as error:
        raise ModelFileError(f"{shown} cannot be loaded: {error}") from error
    except _INCONSISTENT_VALUES as error:
        raise ModelFileError(
            f"{shown} cannot be loaded, its parts do not fit together: {error}"
        ) from error
