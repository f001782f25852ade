"""What each parameter of an estimator may be: one declaration, for `fit` and for model files.

What depends on the training data, such as the largest number of landmarks, is checked where the
data are known.
"""

from __future__ import annotations

import math
import numbers
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import BaseEstimator

from slts.alignment import DEVICES, Itakura
from slts.alignment.settings import DTYPES
from slts.features.row_map import SCALES
from slts.quantities import parse_bytes
from slts.solvers import REGULARIZERS
from slts.training.landmarks import SELECTION_METHODS

_MOST_JOBS = 2**31 - 1


class Kind(NamedTuple):
    """A set of values with a name, as it follows "must be"."""

    text: str
    accepts: Callable[[Any], bool]

    def __or__(self, other: Kind) -> Kind:
        return Kind(f"{self.text} or {other.text}", lambda v: self.accepts(v) or other.accepts(v))


# ---- kinds of plain values


def _is_bool(value: Any) -> bool:
    return isinstance(value, bool | np.bool_)


def _is_integer(value: Any) -> bool:
    return isinstance(value, numbers.Integral) and not _is_bool(value)


def _is_number(value: Any) -> bool:
    return isinstance(value, numbers.Real) and not _is_bool(value)


def _is_finite(value: Any) -> bool:
    try:
        return _is_number(value) and math.isfinite(value)
    except OverflowError:
        return False


NOTHING = Kind("None", lambda v: v is None)
# Users may also set it to 0 or 1.
SWITCH = Kind("True or False", lambda v: _is_bool(v) or (_is_number(v) and v in (0, 1)))
FINITE = Kind("a finite number", _is_finite)
POSITIVE = Kind("a positive finite number", lambda v: _is_finite(v) and v > 0)
LABEL = Kind("a label", lambda v: isinstance(v, str) or _is_bool(v) or _is_number(v))


def at_least(least: int) -> Kind:
    """Integers from `least` on."""
    return Kind(f"an integer >= {least}", lambda v: _is_integer(v) and v >= least)


def one_of(*texts: str) -> Kind:
    """One of a few texts."""
    text = f"one of {texts}" if len(texts) > 1 else repr(texts[0])
    return Kind(text, lambda v: isinstance(v, str) and v in texts)


def list_of(item: Kind) -> Kind:
    """A list, tuple, range or array of one axis that has items of one kind, at least one."""

    def accepts(value: Any) -> bool:
        if isinstance(value, np.ndarray):
            return value.ndim == 1 and len(value) > 0 and _all(item, value)
        return isinstance(value, list | tuple | range) and len(value) > 0 and _all(item, value)

    return Kind(f"a list of values, each {item.text}", accepts)


def dict_of(key: Kind, item: Kind) -> Kind:
    """Dicts with one kind of keys and one kind of items."""

    def accepts(value: Any) -> bool:
        return isinstance(value, Mapping) and _all(key, value) and _all(item, value.values())

    return Kind(f"a dict with keys {key.text} and items {item.text}", accepts)


def _all(kind: Kind, values: Iterable[Any]) -> bool:
    return all(map(kind.accepts, values))


# ---- parameters, by name


def _is_size(value: Any) -> bool:
    try:
        parse_bytes(value)
    except (ValueError, OverflowError):
        return False
    return True


def _are_indices(value: Any) -> bool:
    if isinstance(value, range):
        return len(value) > 0 and min(value[0], value[-1]) >= 0
    try:
        indices = np.asarray(value)
    except ValueError:
        return False
    usable = indices.ndim == 1 and indices.size > 0 and indices.dtype.kind in "iu"
    return usable and indices.min() >= 0 and len(np.unique(indices)) == len(indices)


def _is_splitter(value: Any) -> bool:
    if isinstance(value, str | Mapping | np.ndarray | range):
        return False
    empty = isinstance(value, list | tuple) and not value
    return hasattr(value, "split") or (isinstance(value, Iterable) and not empty)


_COUNT = at_least(1) | Kind(
    "a fraction of the series in (0, 1]",
    lambda v: _is_finite(v) and not _is_integer(v) and 0 < v <= 1,
)
_CV = (
    at_least(2)
    | Kind(
        "a hold-out fraction between 0 and 1",
        lambda v: _is_finite(v) and not _is_integer(v) and 0 < v < 1,
    )
    | Kind("a splitter", _is_splitter)
)
_INDICES = Kind("distinct indices of training series", _are_indices)
_RANDOM_STATE = Kind(
    "a RandomState", lambda v: v is np.random or isinstance(v, np.random.RandomState)
)
_SEED = Kind("an integer from 0 to 2**32 - 1", lambda v: _is_integer(v) and 0 <= v < 2**32)
SEVERAL_COUNTS = NOTHING | _COUNT | list_of(_COUNT)
PARAMETERS: Mapping[str, Kind] = {
    "C": POSITIVE | one_of("auto"),
    "band": NOTHING | at_least(0) | Kind("Itakura(max_slope)", lambda v: isinstance(v, Itakura)),
    "calibration_cv": NOTHING | _CV,
    "calibration_size": NOTHING | at_least(1),
    "class_weight": NOTHING | one_of("balanced") | dict_of(LABEL, FINITE),
    "cv": _CV,
    "device": one_of(*DEVICES),
    "dtype": one_of(*DTYPES),
    "fit_intercept": SWITCH,
    "gamma": POSITIVE,
    "gammas": list_of(POSITIVE),
    "homogeneous": one_of("auto") | SWITCH,
    "lam": POSITIVE,
    "lams": list_of(POSITIVE),
    "landmarks": one_of(*SELECTION_METHODS) | _INDICES,
    "margin": Kind("a finite number >= 0", lambda v: _is_finite(v) and v >= 0),
    "max_length": NOTHING | at_least(1),
    "memory_limit": NOTHING
    | Kind("a positive number of bytes or text such as '2GB' or '512 MiB'", _is_size),
    "metric_rank": at_least(1),
    "n_components": at_least(1),
    "n_cycles": at_least(1),
    "n_jobs": NOTHING
    | Kind(
        "an integer except 0 (-1 uses all cores)",
        lambda v: _is_integer(v) and 0 < abs(v) <= _MOST_JOBS,
    ),
    "n_landmarks": NOTHING | _COUNT,
    "n_snippets": NOTHING | at_least(0),
    "n_phases": one_of("auto") | at_least(1),
    "normalize": SWITCH,
    "objective": one_of("affinity", "cost"),
    "penalties": list_of(POSITIVE),
    "random_state": NOTHING | _SEED | _RANDOM_STATE,
    "ranking_limit": NOTHING | at_least(2),
    "regularizer": one_of(*REGULARIZERS),
    "scale": NOTHING | one_of(*SCALES),
    "triplets_per_series": Kind(
        "a positive number up to 1,000,000", lambda v: _is_finite(v) and 0 < v <= 1e6
    ),
    "verbose": NOTHING | Kind("True, False or a number", lambda v: _is_bool(v) or _is_finite(v)),
}


def check_parameters(estimator: BaseEstimator, declared: Mapping[str, Kind]) -> None:
    """Raise an error that names the first parameter that is not as declared."""
    for name, value in estimator.get_params(deep=False).items():
        if name in declared and not declared[name].accepts(value):
            raise ValueError(
                f"The '{name}' parameter of {type(estimator).__name__} must be "
                f"{declared[name].text}. Got {value!r} instead."
            )
