"""``slts fit``: train a classifier and save it."""

from __future__ import annotations

import ast
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
import typer
from sklearn.model_selection import GroupShuffleSplit, StratifiedShuffleSplit
from sklearn.utils.validation import has_fit_parameter
from typer import Option

from slts import estimators
from slts.cli import options
from slts.cli.evaluate import accuracy, describe_accuracy, measure, validation_accuracy
from slts.cli.options import Expected, check_output, in_memory, open_scan, read_data
from slts.cli.terminal import CommandError, show_json
from slts.estimators.parameters import check_parameters
from slts.execution import duration
from slts.persistence import save
from slts.quantities import count, list_first
from slts.series.keys import series_digests, series_keys
from slts.tables import Dataset, ExpectedColumns, SeriesScan

CLASSIFIERS = {
    "local": estimators.LocalSLTSClassifier,
    "slts-cv": estimators.SLTSClassifierCV,
    "slts": estimators.SLTSClassifier,
    "bbs-cv": estimators.BBSClassifierCV,
    "bbs": estimators.BBSClassifier,
    "1nn": estimators.OneNNClassifier,
    "svm": estimators.SimilaritySVC,
    "ldmlt": estimators.LDMLTClassifier,
}

_MEMORY_LIMIT = "Memory for training, such as 2GB. Half of the available memory by default."
_NO_DIGESTS = (
    "Leave the digests of training series, from which copies are recognised, out of the model file."
)
_NO_IDENTIFIERS = "Leave the names and times of training series out of the model file."
_SAME_PEOPLE = (
    "The same people, sessions or machines may be on both sides. If so, name them with --groups."
)
_PARAM = "Parameter of the classifier. Repeat it to set several."
_TEST_SIZE = "Share of the series, or of the groups, to hold out and measure accuracy on."

Model = Annotated[Path, Option("--model", "-m", help="Model file to write; ends in .slts.")]
Method = Annotated[
    Literal["local", "slts-cv", "slts", "bbs-cv", "bbs", "1nn", "svm", "ldmlt"],
    Option(help="Classifier."),
]
TestSize = Annotated[float | None, Option(callback=options.check_share, help=_TEST_SIZE)]
Test = Annotated[str | None, Option(metavar="DATA", help="Other data to measure accuracy on.")]
Param = Annotated[list[str] | None, Option("--param", "-p", metavar="NAME=VALUE", help=_PARAM)]
NoIdentifiers = Annotated[bool, Option("--no-identifiers", help=_NO_IDENTIFIERS)]
NoDigests = Annotated[bool, Option("--no-digests", help=_NO_DIGESTS)]
MemoryLimit = Annotated[str | None, Option(metavar="SIZE", help=_MEMORY_LIMIT)]


@options.with_common_options
def fit(
    data: options.Data,
    model: Model,
    method: Method = "local",
    test_size: TestSize = None,
    test: Test = None,
    groups: options.Groups = None,
    param: Param = None,
    no_identifiers: NoIdentifiers = False,
    no_digests: NoDigests = False,
    random_state: options.RandomState = 0,
    memory_limit: MemoryLimit = None,
    *,
    common: options.CommonOptions,
) -> None:
    """Train a classifier on labelled series and save it.

    To measure accuracy, use --test-size or --test. With --test-size, the saved model is trained on
    the other series only. With --test, it is trained on all series. Both also give an upper bound
    on the error on new series.
    """
    if test_size is not None and test is not None:
        raise typer.BadParameter("give --test-size or --test, not both", param_hint="--test")
    check_output(model, "--model", (".slts",), data, test)
    assigned = _parse_parameters(param or [])
    estimator = CLASSIFIERS[method](random_state=random_state, verbose=not common.quiet)
    estimator.set_params(device=common.device, n_jobs=common.jobs)
    limit = {} if memory_limit is None else {"memory_limit": memory_limit}
    _set_parameters(estimator, limit | assigned)
    is_tested = test_size is not None or test is not None
    if groups is not None and not is_tested and not has_fit_parameter(estimator, "groups"):
        reason = f"{type(estimator).__name__} does not hold out groups when it is fitted"
        raise typer.BadParameter(f"{reason}: add --test-size 0.3 or --test", param_hint="--groups")
    held_out: SeriesScan | None = None
    if test_size is not None:
        dataset = read_data(data, common, groups=groups, limit=memory_limit)
        training, held_out = map(in_memory, hold_out(dataset, test_size, random_state))
    else:
        training = open_scan(data, common, groups=groups)
    if test is not None:
        # Before training, so that errors are reported early.
        held_out = _open_test(test, training, common, groups)
    seconds = _train(estimator, training)
    # Training may take long: keep the model even if measuring it fails.
    save(estimator, model, identifiers=not no_identifiers, digests=not no_digests)
    result = {"model": str(model), "parameters": assigned, "seconds": seconds}
    result |= _facts(estimator) | {"held_out": None, "certificate": None}
    if held_out is not None:
        tested, certificate = measure(estimator, held_out, common.messages)
        measured = accuracy(tested.predicted, tested.labels, tested.groups)
        result["held_out"] = {"kind": "test", "n_copies": tested.n_copies, **measured}
        result["certificate"] = None if certificate is None else certificate.to_dict()
    if common.as_json:
        show_json(result)
    else:
        common.messages.done(_summary(result, splits_series=groups is None and test is None))


def _parse_parameters(texts: Sequence[str]) -> dict[str, Any]:
    """Parse texts such as "gamma=0.5": values are Python literals, or else text.

    Examples
    --------
    >>> from slts.cli.fit import _parse_parameters
    >>> _parse_parameters(["gamma=0.5", "cv=None", "landmarks=kmedoids"])
    {'gamma': 0.5, 'cv': None, 'landmarks': 'kmedoids'}
    """
    parameters: dict[str, Any] = {}
    for text in texts:
        name, equals, value = map(str.strip, text.partition("="))
        if not equals or not name:
            raise typer.BadParameter(f"expected name=value, got {text!r}", param_hint="--param")
        try:
            parameters[name] = ast.literal_eval(value)
        except (ValueError, SyntaxError):
            parameters[name] = value
    return parameters


def _set_parameters(estimator: Any, parameters: dict[str, Any]) -> None:
    """Set and check parameters, before anything is read."""
    try:
        estimator.set_params(**parameters)
        check_parameters(estimator, estimator.parameter_kinds)
    except ValueError as error:
        raise typer.BadParameter(str(error), param_hint="--param") from error


def hold_out(dataset: Dataset, share: float, seed: int) -> tuple[Dataset, Dataset]:
    """Hold out a share of the series of every class, or a share of the groups, at random.

    The draw depends on the seed and the series, or the names of the groups, not on their order.
    Groups are drawn with equal probability, whatever their size, so that bounds on the error in a
    new group hold. The only series of a class is not held out.
    """
    labels, groups = dataset.labels, dataset.groups
    if labels is None:
        raise CommandError(f"{dataset.source} has no labels (--label)")
    if groups is None:
        order = np.argsort(series_keys(series_digests(dataset.series), seed), kind="stable")
        codes, counts = np.unique(labels, return_inverse=True, return_counts=True)[1:]
        order = order[counts[codes[order]] > 1]
        splitter = StratifiedShuffleSplit(1, test_size=share, random_state=seed)
    else:
        order = np.arange(len(dataset))
        splitter = GroupShuffleSplit(1, test_size=share, random_state=seed)
    try:
        ((_, test),) = splitter.split(order, labels[order], groups)
    except ValueError as error:
        raise CommandError(f"--test-size {share}: {error}") from error
    rows = np.sort(order[test])
    others = np.setdiff1d(np.arange(len(dataset)), rows)
    only = np.setdiff1d(labels[rows], labels[others]).tolist()
    if only:
        raise CommandError(
            f"--test-size {share}: all series of class {only[0]!r} are held out, so that it cannot "
            f"be learned. Add series of this class, leave it out, or use --test"
        )
    return dataset[others], dataset[rows]


def _open_test(
    test: str, training: SeriesScan, common: options.CommonOptions, groups: str | None
) -> SeriesScan:
    """Open test data with the channels of the training data, but of other groups."""
    expected = Expected(ExpectedColumns(training.channel_names), common.every)
    scan = open_scan(test, common, expected, groups)
    if groups is None:
        return scan
    both = list_first(sorted(_groups(training) & _groups(scan)), 3)
    if both:
        raise CommandError(
            f"--groups {groups}: {training.name} and {scan.name} both have series of {both}. "
            f"Remove them from one of the two, or use --test-size, which holds out whole groups"
        )
    return scan


def _groups(scan: SeriesScan) -> set[str]:
    batches = scan.batches()
    return {str(group) for batch in batches if batch.groups is not None for group in batch.groups}


def _train(estimator: Any, scan: SeriesScan) -> float:
    """Fit, and return the seconds it took."""
    start = time.monotonic()
    try:
        estimator.fit(scan)
    except (ValueError, TypeError) as error:
        raise CommandError(str(error)) from error
    # The model that is saved does not print progress.
    estimator.set_params(verbose=False)
    return time.monotonic() - start


def _facts(estimator: Any) -> dict[str, Any]:
    """Return what a fitted classifier says about itself."""
    return {
        "estimator": type(estimator).__name__,
        "chosen": getattr(estimator, "best_params_", {}),
        "n_series": estimator.n_series_in_,
        "n_channels": estimator.n_channels_in_,
        "classes": estimator.classes_,
        "validation": validation_accuracy(estimator.validation_),
    }


def _summary(result: dict[str, Any], *, splits_series: bool) -> str:
    """Return what `--json` prints as a few lines of text."""
    lines = [
        f"{result['estimator']} trained on {result['n_series']} series "
        f"({count(result['n_channels'], 'channel')}, {len(result['classes'])} classes) in "
        f"{duration(result['seconds'])}"
    ]
    if result["chosen"]:
        chosen = (f"{name}={value:.6g}" for name, value in result["chosen"].items())
        lines[0] += f"; chosen: {', '.join(chosen)}"
    measured = result["held_out"] or result["validation"]
    if measured is not None:
        lines.append(f"{measured['kind']}: {describe_accuracy(measured)}")
        if splits_series:
            lines.append(_SAME_PEOPLE)
    if result["certificate"] is not None:
        lines.append(result["certificate"]["bounds"][0]["sentence"])
    return "\n".join([*lines, f"model: {result['model']}"])
