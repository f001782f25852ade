"""`save`, `load` and `describe`: fitted classifiers and their files.

A new classifier, or dataclass of a model, is one entry of the tables at the top.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import fields
from typing import Any, cast, get_type_hints

import numpy as np
from sklearn.utils.validation import check_is_fitted

from slts import estimators
from slts._typing import AnyArray
from slts.alignment import AlignmentSettings, Itakura
from slts.atomic_files import write_atomically
from slts.errors import ModelFileError, warn
from slts.estimators.base import SeriesClassifier
from slts.estimators.parameters import check_parameters
from slts.features.aligned_products import AlignedProducts
from slts.features.models import LinearModel, Neighbours, Origins
from slts.features.row_map import ChannelScale, Components, RowMap
from slts.features.snippets import Snippets
from slts.persistence.codec import Codec, Stored, library_version, pack, unpack
from slts.series import SeriesBatch
from slts.solvers.calibration import HeldOutScores, Validation
from slts.solvers.hinge import SolveReport
from slts.solvers.logdet import LogDetSolution
from slts.solvers.ridge import RidgeReport

CLASSIFIERS: tuple[type[SeriesClassifier], ...] = (
    estimators.SLTSClassifier,
    estimators.SLTSClassifierCV,
    estimators.BBSClassifier,
    estimators.BBSClassifierCV,
    estimators.OneNNClassifier,
    estimators.SimilaritySVC,
    estimators.LDMLTClassifier,
    estimators.LocalSLTSClassifier,
)

# Dataclasses in fitted attributes and parameters. Their fields are stored by name and checked
# against their annotations; `__post_init__` checks what annotations cannot express.
DATACLASSES: tuple[type, ...] = (
    AlignedProducts,
    AlignmentSettings,
    ChannelScale,
    Components,
    HeldOutScores,
    Itakura,
    LinearModel,
    LogDetSolution,
    Neighbours,
    Origins,
    RidgeReport,
    RowMap,
    SeriesBatch,
    Snippets,
    SolveReport,
    Validation,
)


# ---- files


SUFFIX = ".slts"
_BY_NAME = {kind.__name__: kind for kind in CLASSIFIERS}
# Parameters that depend on the machine. Files do not store them, and loaded models have defaults.
_MACHINE_PARAMETERS = {"device", "memory_limit"}
# Where scikit-learn keeps the choice of `set_output`, for which it has no public name.
_OUTPUT_CONFIG = "_sklearn_output_config"
_LONGEST_NOTE = 500


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
    content = _to_bytes(model, identifiers, digests)
    try:
        # Check that the file can be loaded before it gets its name.
        _to_model(*unpack(content))
    except ModelFileError as error:
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
    for name, value in _stored_parameters(model).items():
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


def _fitted_attributes(kind: type[SeriesClassifier]) -> Mapping[str, Stored]:
    """Annotated attributes of a classifier that end in an underscore."""
    nan = {f.name for f in fields(kind) if f.metadata.get("nan", False)}
    return {
        name: Stored(annotation, name in nan)
        for name, annotation in get_type_hints(kind).items()
        if name.endswith("_") and not name.startswith("_")
    }


def _stored_parameters(model: SeriesClassifier) -> dict[str, Any]:
    parameters = model.get_params(deep=False)
    return {name: v for name, v in sorted(parameters.items()) if name not in _MACHINE_PARAMETERS}


def _to_bytes(model: SeriesClassifier, identifiers: bool, digests: bool) -> bytes:
    kind, attributes = type(model), _fitted_attributes(type(model))
    # Private attributes are caches, or belong to scikit-learn.
    public = {name for name in vars(model) if not name.startswith("_")}
    unknown = public - attributes.keys() - model.get_params(deep=False).keys()
    if unknown:
        raise TypeError(
            f"this {kind.__name__} has attributes that files cannot store: "
            f"{', '.join(sorted(unknown))}. Delete them first."
        )
    state = {name: getattr(model, name) for name in sorted(attributes)}
    if not digests:
        state["training_digests_"] = None
    codec = Codec(DATACLASSES, anonymous=not identifiers)
    document = {
        "estimator": kind.__name__,
        "parameters": {
            name: _encode_parameter(codec, model, name, value)
            for name, value in _stored_parameters(model).items()
        },
        "output": vars(model).get(_OUTPUT_CONFIG, {}).get("transform"),
        "state": {name: codec.encode(value, name) for name, value in state.items()},
    }
    return pack(document, codec.arrays)


def _encode_parameter(codec: Codec, model: SeriesClassifier, name: str, value: Any) -> Any:
    """Return the node of a parameter, or a note about an object that files cannot store."""
    trial = Codec(DATACLASSES)
    try:
        node = trial.encode(value, f"parameters.{name}")
    except TypeError:
        # Memory addresses differ between runs.
        text = re.sub(r" at 0x[0-9A-Fa-f]+", "", repr(value))[:_LONGEST_NOTE]
        if name != "random_state":
            default = type(model)().get_params(deep=False)[name]
            warn(
                f"The '{name}' parameter of {type(model).__name__}, {text}, is described in the "
                f"model file but not stored. The loaded model has the default, {default!r}."
            )
        return {"note": text}
    codec.arrays |= trial.arrays
    return node


def _to_model(document: dict[str, Any], arrays: dict[str, AnyArray]) -> SeriesClassifier:
    match document:
        case {"estimator": str(name), "parameters": dict(parameters), "state": dict(state)}:
            kind = _BY_NAME.get(name)
        case _:
            raise ModelFileError("it has no estimator, parameters or state")
    if kind is None:
        raise ModelFileError(f"this slts, {library_version()}, has no classifier {name[:40]!r}")
    codec = Codec(DATACLASSES, arrays)
    declared = dict.fromkeys(_stored_parameters(kind()), Stored(Any, nan=True))
    notes = {name: None for name, node in parameters.items() if _note(node) is not None}
    values = codec.decode_fields(parameters | notes, declared, "parameters")
    try:
        model = kind(**{name: value for name, value in values.items() if name not in notes})
        check_parameters(model, model.parameter_kinds)
        for name, value in codec.decode_fields(state, _fitted_attributes(kind)).items():
            setattr(model, name, value)
        model.check_fitted()
        output = document["output"]
        if output is not None:
            cast(Any, model).set_output(transform=output)
    except ModelFileError:
        raise
    except Exception as error:
        raise ModelFileError(f"its parts do not fit together: {error}") from error
    return model


def _note(node: Any) -> str | None:
    """Return the description of a parameter that is not stored, or None if it is stored."""
    return str(node["note"]) if isinstance(node, dict) and "note" in node else None


def _read(path: str | os.PathLike[str]) -> tuple[SeriesClassifier, dict[str, Any]]:
    """Read and check a file; errors about its content start with its name."""
    shown = str(path)
    try:
        if os.path.exists(path) and not os.path.isfile(path):
            raise ModelFileError("it is not a regular file")
        with open(path, "rb") as file:
            document, arrays = unpack(file.read())
        shown += f", written by slts {document['slts']},"
        return _to_model(document, arrays), document
    except ModelFileError as error:
        raise ModelFileError(f"{shown} cannot be loaded: {error}") from error
