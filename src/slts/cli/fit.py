"""``slts fit``: train a classifier and save it."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from sklearn.base import clone
from sklearn.utils.validation import has_fit_parameter

from slts import estimators
from slts.cli import options
from slts.cli.data import (
    CommandScan,
    Expected,
    check_device,
    check_output_path,
    open_scan,
    read_labels,
    split,
)
from slts.cli.evaluate import accuracy, copies_warning, describe_accuracy, validation_accuracy
from slts.cli.terminal import CommandError, Messages, show_json
from slts.execution import duration
from slts.guarantees import Certificate
from slts.guarantees.held_out import HeldOut
from slts.persistence import save
from slts.quantities import count

CLASSIFIERS = {
    "local": "LocalSLTSClassifier",
    "slts-cv": "SLTSClassifierCV",
    "slts": "SLTSClassifier",
    "bbs-cv": "BBSClassifierCV",
    "bbs": "BBSClassifier",
    "1nn": "OneNNClassifier",
    "svm": "SimilaritySVC",
    "ldmlt": "LDMLTClassifier",
}


@options.command
def fit(
    data: options.Data,
    model: Annotated[Path, typer.Option("--model", "-m", show_default=False)],
    method: Annotated[str, options.choice(CLASSIFIERS)] = "local",
    test_size: Annotated[float | None, options.share()] = None,
    cv: Annotated[int | None, typer.Option(min=2)] = None,
    groups: options.Groups = None,
    test: Annotated[str | None, typer.Option(metavar="DATA")] = None,
    param: Annotated[list[str] | None, typer.Option("--param", "-p", metavar="NAME=VALUE")] = None,
    no_identifiers: bool = False,
    no_digests: bool = False,
    random_state: options.RandomState = 0,
    memory_limit: options.MemoryLimit = None,
    *,
    common: options.CommonOptions,
) -> None:
    """Train a classifier on labelled series and save it.

    To measure accuracy, use --test-size, --test or --cv. With --test-size, the saved model is
    trained on the other series only. With --test and --cv, it is trained on all series. --test-size
    and --test also give an upper bound on the error on new series.

    Parameters
    ----------
    model
        Model file to write. Its name ends in .slts.
    method
        Classifier.
    test_size
        Share of the series to hold out, to measure accuracy.
    cv
        Number of folds, to measure accuracy by cross-validation.
    test
        Other data to measure accuracy on.
    param
        Parameter of the classifier. Repeat it to set several.
    no_identifiers
        Leave the names and times of training series out of the model file.
    no_digests
        Leave the digests of training series, from which copies are recognised, out of the model
        file.
    """
    tests = {"--test-size": test_size, "--cv": cv, "--test": test}
    given_tests = [name for name, value in tests.items() if value is not None]
    if len(given_tests) > 1:
        raise typer.BadParameter(
            f"give {' or '.join(given_tests)}, not both", param_hint=given_tests[0]
        )
    check_output_path(model, "the model", "--model", (".slts",), [data, test])
    settings = {
        "random_state": random_state,
        "n_jobs": common.jobs,
        "device": common.device,
        "memory_limit": memory_limit,
    }
    estimator, assigned = _make_estimator(method, param or [], settings)
    if groups is not None and not given_tests and not has_fit_parameter(estimator, "groups"):
        raise typer.BadParameter(
            f"{type(estimator).__name__} does not hold out groups when it is fitted: add --cv 5, "
            f"--test-size 0.3 or --test",
            param_hint="--groups",
        )
    scan = open_scan(data, common, groups=groups)
    training, held_out = scan, None
    # Test data are read before training, so that errors in them are reported early.
    if test_size is not None:
        ((training, held_out),) = split(scan, random_state, test_size, "--test-size")
    elif test is not None:
        held_out = _open_test(test, common, scan, groups)
    folds = [] if cv is None else split(scan, random_state, cv, "--cv")
    tested = []
    for number, (rest, fold) in enumerate(folds, start=1):
        common.messages.detail(f"fold {number} of {len(folds)}")
        copy = clone(estimator)
        _train(copy, rest, common.messages)
        tested.append(HeldOut.of(copy, fold))
    seconds = _train(estimator, training, common.messages)
    # Training may take long: keep the model even if measuring it fails.
    save(estimator, model, identifiers=not no_identifiers, digests=not no_digests)
    if held_out is not None:
        tested.append(HeldOut.of(estimator, held_out))
    n_copies = sum(one.n_copies for one in tested)
    if n_copies:
        n = sum(len(one.labels) for one in tested)
        common.messages.say(copies_warning(n_copies, n))
    certificate = None if held_out is None or n_copies else tested[0].certificate()
    result = {
        "model": str(model),
        "estimator": type(estimator).__name__,
        "parameters": assigned,
        "chosen": _chosen(estimator, assigned),
        "n_series": estimator.n_series_in_,
        "n_channels": estimator.n_channels_in_,
        "classes": estimator.classes_,
        "seconds": seconds,
        "held_out": _measured(tested),
        "n_training_copies": n_copies,
        "certificate": None if certificate is None else certificate.to_dict(),
        "n_folds": len(folds) or None,
        "validation": validation_accuracy(estimator.validation_),
        "columns": None if scan.columns is None else str(scan.columns),
        "n_steps": scan.all_missing.n_steps,
        "missing": scan.all_missing.by_channel,
    }
    if common.as_json:
        show_json(result)
    else:
        common.messages.done(_summary(result, certificate))


def _open_test(
    test: str, common: options.CommonOptions, training: CommandScan, groups: str | None
) -> CommandScan:
    """Return a scan of test data, which must have the channels and classes of the training data."""
    trained = read_labels(training)
    columns = training.columns
    expected = Expected(
        channels=training.scan.channel_names,
        classes=np.unique(trained.labels),
        label=columns.label if columns is not None and columns.has_header else None,
        n_channels=trained.n_channels,
        owner=training.name,
    )
    scan = open_scan(test, common, training=expected, groups=groups)
    tested = read_labels(scan)
    if trained.groups is not None and tested.groups is not None:
        both = np.intersect1d(trained.groups, tested.groups).tolist()
        if both:
            more = f" and {count(len(both) - 1, 'more group')}" if len(both) > 1 else ""
            raise CommandError(
                f"--groups {groups}: {training.name} and {scan.name} both have series of group "
                f"{both[0]!r}{more}. Accuracy on new groups needs test data from other groups: "
                f"remove shared groups from one of the two, or use --test-size or --cv, which "
                f"hold out whole groups"
            )
    return scan


def _make_estimator(
    method: str, parameters: Sequence[str], settings: dict[str, Any]
) -> tuple[Any, dict[str, Any]]:
    """Return a classifier and the parameters of texts ``"name=value"``.

    Settings that the classifier does not have are left out.
    """
    estimator = getattr(estimators, CLASSIFIERS[method])()
    owner, defaults = type(estimator).__name__, estimator.get_params()
    assigned = {}
    for text in parameters:
        name, equals, value = map(str.strip, text.partition("="))
        if not equals or not name:
            raise typer.BadParameter(f"expected name=value, got {text!r}", param_hint="--param")
        if name not in defaults:
            names = ", ".join(sorted(defaults))
            raise typer.BadParameter(
                f"{owner} has no parameter {name!r}. Its parameters are {names}",
                param_hint="--param",
            )
        assigned[name] = _parse_value(value)
    if settings["memory_limit"] is not None and "memory_limit" not in defaults:
        raise typer.BadParameter(
            f"{owner} needs all training series in memory: use --method local, slts or bbs",
            param_hint="--memory-limit",
        )
    estimator.set_params(**{k: v for k, v in settings.items() if k in defaults} | assigned)
    check_device(estimator.device, owner)
    return estimator, assigned


def _parse_value(text: str) -> Any:
    """Parse JSON or None, True, False; anything else is text.

    Examples
    --------
    >>> from slts.cli.fit import _parse_value
    >>> _parse_value("0.5"), _parse_value("[1, 2]"), _parse_value("None"), _parse_value("kmedoids")
    (0.5, [1, 2], None, 'kmedoids')
    """
    words = {"None": None, "True": True, "False": False}
    if text in words:
        return words[text]
    try:
        return json.loads(text)
    except ValueError:
        return text


def _train(estimator: Any, scan: CommandScan, messages: Messages) -> float:
    """Fit, and return the seconds it took."""
    estimator.set_params(verbose=messages.shows_progress)
    messages.detail(f"fitting {estimator!r}")
    start = time.monotonic()
    try:
        with messages.echo_log():
            estimator.fit(scan)
    except (ValueError, TypeError) as error:
        raise CommandError(str(error)) from error
    # The model that is saved does not print progress.
    estimator.set_params(verbose=False)
    return time.monotonic() - start


def _measured(tested: list[HeldOut]) -> dict[str, Any] | None:
    """Return the accuracy on all held-out series: of each fold, or of one test."""
    if not tested:
        return None
    names = ("predicted", "labels", *(("groups",) if tested[0].groups is not None else ()))
    return accuracy(*(np.concatenate([getattr(one, name) for one in tested]) for name in names))


def _chosen(estimator: Any, assigned: dict[str, Any]) -> dict[str, Any]:
    """Return parameters that were chosen, and not assigned."""
    chosen = dict(getattr(estimator, "best_params_", {}))
    parameters = estimator.get_params()
    if parameters.get("n_phases") == "auto":
        chosen["n_phases"] = estimator.model_.aligned[0].n_phases
    if parameters.get("C") == "auto":
        chosen["C"] = estimator.C_
    if "n_landmarks" in parameters and "n_landmarks" not in assigned:
        chosen["n_landmarks"] = len(estimator.landmarks_)
    return chosen


def _summary(result: dict[str, Any], certificate: Certificate | None) -> str:
    """Return what `--json` prints as a few lines of text."""
    chosen = ", ".join(f"{key}={value:.6g}" for key, value in result["chosen"].items())
    trained = (
        f"{result['estimator']} trained on {result['n_series']} series "
        f"({count(result['n_channels'], 'channel')}, {len(result['classes'])} classes) in "
        f"{duration(result['seconds'])}" + (f"; chosen: {chosen}" if chosen else "")
    )
    measured, how = result["held_out"], "on held-out series"
    if result["n_folds"]:
        how = f"cross-validation, {result['n_folds']} folds"
    elif result["n_training_copies"]:
        how = "on series that are not held out"
    elif measured is None and result["validation"] is not None:
        measured, how = result["validation"], "leave-one-out"
        if measured["kind"] == "held-out":
            how = "on training series that were held out"
    lines = [trained] if measured is None else [trained, f"{how}: {describe_accuracy(measured)}"]
    if how == "leave-one-out" and measured["interval"][1] < 1 / len(result["classes"]):
        lines.append(
            "no better than guessing. If labels are unrelated to the series, leave-one-out is "
            "below chance: leaving a series out makes its class less frequent"
        )
    if certificate is not None:
        lines.append(certificate.headline.sentence)
    return "\n".join([*lines, f"model: {result['model']}"])
