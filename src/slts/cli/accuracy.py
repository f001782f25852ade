"""Accuracy with its interval and its certificate, as numbers and as text."""

from __future__ import annotations

from typing import Any

import numpy as np

from slts._typing import AnyArray
from slts.cli.terminal import Messages
from slts.errors import DataError
from slts.guarantees import Certificate
from slts.guarantees.bounds import accuracy_interval, group_accuracy_interval, mean_over_groups
from slts.guarantees.held_out import HeldOut
from slts.quantities import count
from slts.solvers.calibration import Validation
from slts.tables import SeriesScan


def measure(model: Any, scan: SeriesScan, messages: Messages) -> tuple[HeldOut, Certificate | None]:
    """Predict labelled series, and bound the error on new series if the model has not seen them."""
    held_out = HeldOut.of(model, scan)
    try:
        certificate = held_out.certificate()
    except DataError as error:
        messages.say(f"no certificate: {error}")
        return held_out, None
    if held_out.n_copies:
        messages.say(held_out.check_copies("allow"))
    return held_out, certificate


def accuracy(
    predicted: AnyArray, truth: AnyArray, groups: AnyArray | None = None
) -> dict[str, Any]:
    """Return the accuracy with a 95% interval.

    The interval is exact (Clopper and Pearson) if series are independent. With groups, it is one
    for the mean accuracy of a new group.
    """
    right = predicted == truth
    measured = _of_series(len(truth), int(np.count_nonzero(right)))
    if groups is None:
        return measured
    return measured | _of_groups(*mean_over_groups(right, groups))


def validation_accuracy(validation: Validation | None) -> dict[str, Any] | None:
    """Return the accuracy on series that a fit held out, if it did, as `accuracy` does."""
    if validation is None:
        return None
    n = validation.n_series
    measured = {"kind": validation.kind, **_of_series(n, validation.accuracy * n)}
    if validation.n_groups is None or validation.group_accuracy is None:
        return measured
    return measured | _of_groups(validation.group_accuracy, validation.n_groups)


def _of_series(n: int, right: float) -> dict[str, Any]:
    interval = list(accuracy_interval(round(right), n))
    return {"n": n, "right": round(right), "accuracy": right / n, "interval": interval}


def _of_groups(mean: float, n: int) -> dict[str, Any]:
    interval = list(group_accuracy_interval(mean, n))
    return {"n_groups": n, "group_accuracy": mean, "interval": interval}


def describe_accuracy(measured: dict[str, Any]) -> str:
    """Return one line about what `accuracy` returns."""
    low, high = measured["interval"]
    interval = f"{low:.1%} to {high:.1%}"
    text = f"accuracy {measured['accuracy']:.1%} ({measured['right']} of {measured['n']}"
    if "n_groups" not in measured:
        return f"{text}; 95% interval {interval})"
    return (
        f"{text}); mean over {count(measured['n_groups'], 'group')} "
        f"{measured['group_accuracy']:.1%} (95% interval for a new group {interval})"
    )
