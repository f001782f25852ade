"""Classifiers by the names they have on the command line."""

from __future__ import annotations

import json
from collections.abc import Sequence
from enum import StrEnum
from typing import Any

import typer

from slts import estimators
from slts.cli.data import check_device


class Method(StrEnum):
    """What `slts fit` can fit."""

    local = "local"
    slts_cv = "slts-cv"
    slts = "slts"
    bbs_cv = "bbs-cv"
    bbs = "bbs"
    one_nn = "1nn"
    svm = "svm"
    ldmlt = "ldmlt"


_CLASSES = {
    Method.local: "LocalSLTSClassifier",
    Method.slts_cv: "SLTSClassifierCV",
    Method.slts: "SLTSClassifier",
    Method.bbs_cv: "BBSClassifierCV",
    Method.bbs: "BBSClassifier",
    Method.one_nn: "OneNNClassifier",
    Method.svm: "SimilaritySVC",
    Method.ldmlt: "LDMLTClassifier",
}


def make_estimator(
    method: Method, parameters: Sequence[str], random_state: int, jobs: int, device: str = "cpu"
) -> tuple[Any, dict[str, Any]]:
    """Make a classifier from options of the command line.

    Parameters
    ----------
    method
        Which one.
    parameters
        Its parameters, ``"name=value"``.
    random_state
        Seed of all that is drawn.
    jobs
        Threads, 0 for all processors.
    device
        What aligns.

    Returns
    -------
    estimator
        Not fitted.
    parameters
        Those given, their values read.
    """
    estimator = getattr(estimators, _CLASSES[method])()
    known = estimator.get_params()
    given = {}
    for text in parameters:
        name, equals, value = text.partition("=")
        name = name.strip()
        if not equals or not name:
            raise typer.BadParameter(f"expected name=value, got {text!r}", param_hint="--param")
        if name not in known:
            raise typer.BadParameter(
                f"{type(estimator).__name__} has no parameter {name!r}; it has "
                f"{', '.join(sorted(known))}",
                param_hint="--param",
            )
        given[name] = _value(value.strip())
    common = {"random_state": random_state, "n_jobs": jobs or -1, "device": device}
    estimator.set_params(**({k: v for k, v in common.items() if k in known} | given))
    check_device(estimator)
    return estimator, given


def _value(text: str) -> Any:
    """Read a value: JSON, Python's words for true, false and nothing, or text as it is.

    Examples
    --------
    >>> from slts.cli.methods import _value
    >>> _value("0.5"), _value("[1, 2]"), _value("None"), _value("kmedoids")
    (0.5, [1, 2], None, 'kmedoids')
    """
    words = {"None": None, "True": True, "False": False}
    if text in words:
        return words[text]
    try:
        return json.loads(text)
    except ValueError:
        return text
