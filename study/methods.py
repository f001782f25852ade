"""The compared methods, one line each, and the adapters that build and measure their models."""

from __future__ import annotations

import functools
import importlib
import importlib.util
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

import slts


@dataclass(frozen=True)
class Adapter:
    """How models of one kind are built.

    Parameters
    ----------
    make
        Takes parameters and returns an unfitted model.
    prepare
        Converts training and test series to the form that the model takes. It is not timed.
    size
        Counts the numbers that a fitted model stores.
    package
        The package of the model, if it is not slts. Its code is compiled at the first call.
    seeded
        Whether results depend on a seed.
    version
        Raise it when the model starts to give other results: kept results are then computed again.
    """

    make: Callable[..., Any]
    prepare: Callable[[slts.SeriesBatch, slts.SeriesBatch], tuple[Any, Any]]
    size: Callable[[Any], int]
    package: str | None = None
    seeded: bool = True
    version: int = 1

    def model(self, parameters: Mapping[str, Any], seed: int) -> Any:
        """Return an unfitted model that uses one thread."""
        seeds = {"random_state": seed} if self.seeded else {}
        return self.make(**parameters, n_jobs=1, **seeds)


def _unchanged(train: slts.SeriesBatch, test: slts.SeriesBatch) -> tuple[Any, Any]:
    return train, test


def _zero_padded(train: slts.SeriesBatch, test: slts.SeriesBatch) -> tuple[Any, Any]:
    """Return arrays (series, channels, steps), padded with zeros to the longest of all series."""
    steps = int(max(train.lengths.max(), test.lengths.max()))
    return _pad(train, steps), _pad(test, steps)


def _pad(batch: slts.SeriesBatch, steps: int) -> npt.NDArray[np.float64]:
    out = np.zeros((len(batch), batch.n_channels, steps))
    for k, series in enumerate(batch):
        out[k, :, : series.shape[1]] = series
    return out


def _lists(train: slts.SeriesBatch, test: slts.SeriesBatch) -> tuple[Any, Any]:
    """Return lists of arrays, or one array each if all series have the same length."""
    if len(np.unique([*train.lengths, *test.lengths])) == 1:
        return _zero_padded(train, test)
    return [np.array(x) for x in train], [np.array(x) for x in test]


def _slts_size(model: Any) -> int:
    return int(model.landmarks_.values.size + model.metrics_.size + model.coef_.size)


def _rocket_size(model: Any) -> int:
    kernels, scaler, ridge = (step for _, step in model.pipeline_.steps)
    names = [name for name in vars(kernels) if name.startswith("parameter")]
    stored = [part for name in names for part in getattr(kernels, name)]
    return int(sum(map(np.size, [*stored, scaler.scale_, ridge.coef_, ridge.intercept_])))


class _Neighbor:
    """The nearest-neighbour classifier of aeon; it keeps a reference to the training series."""

    def __init__(self, n_jobs: int) -> None:
        module = importlib.import_module("aeon.classification.distance_based")
        self._model = module.KNeighborsTimeSeriesClassifier(
            distance="dtw", n_neighbors=1, n_jobs=n_jobs
        )

    def fit(self, X: Any, y: Any) -> _Neighbor:
        self._model.fit(X, y)
        self.training_series_ = X
        return self

    def predict(self, X: Any) -> Any:
        return self._model.predict(X)


def _rocket(name: str) -> Adapter:
    def make(**parameters: Any) -> Any:
        module = importlib.import_module("aeon.classification.convolution_based")
        return getattr(module, name)(**parameters)

    return Adapter(make, _zero_padded, _rocket_size, "aeon")


ADAPTERS = {
    "local": Adapter(slts.LocalSLTSClassifier, _unchanged, lambda model: int(model.n_numbers_)),
    "slts": Adapter(slts.SLTSClassifierCV, _unchanged, _slts_size),
    "minirocket": _rocket("MiniRocketClassifier"),
    "multirocket": _rocket("MultiRocketClassifier"),
    "1nn-dtw": Adapter(
        _Neighbor,
        _lists,
        lambda model: int(sum(map(np.size, model.training_series_))),
        "aeon",
        seeded=False,
    ),
}


@functools.cache
def warm_up(name: str) -> None:
    """Compile the code of a model on a tiny problem, once per process."""
    adapter = ADAPTERS[name]
    if adapter.package is None:
        return
    rng = np.random.default_rng(0)
    for growth in (0, 1):
        batch = slts.as_series([rng.normal(size=(3, 12 + growth * k)) for k in range(8)])
        train, test = adapter.prepare(batch, batch)
        adapter.model({}, 0).fit(train, np.arange(8) % 2).predict(test)


# The method that all others are compared with.
CENTRE = "local"
# What is cross-validated inside training sets, to check the choice of the defaults.
CHOICES = "choices"
GROUPS = {
    "main": "methods",
    "ablation": "LocalSLTSClassifier with one change",
    "option": "SLTSClassifierCV with one changed option",
}


@dataclass(frozen=True)
class Method:
    """One row of the comparison.

    Parameters
    ----------
    name
        Name in files and on the command line.
    title
        Name in documents.
    group
        A key of `GROUPS`.
    adapter
        A key of `ADAPTERS`.
    parameters
        Parameters that differ from the defaults.
    """

    name: str
    title: str
    group: str
    adapter: str
    parameters: tuple[tuple[str, Any], ...] = ()

    @property
    def seeded(self) -> bool:
        """Whether results depend on a seed."""
        return ADAPTERS[self.adapter].seeded


def _main(name: str, title: str) -> Method:
    return Method(name, title, "main", name)


def _ablation(name: str, title: str, **parameters: Any) -> Method:
    return Method(name, title, "ablation", "local", tuple(parameters.items()))


def _option(name: str, title: str, **parameters: Any) -> Method:
    return Method(name, title, "option", "slts", tuple(parameters.items()))


METHODS = (
    _main("local", "LocalSLTS"),
    _main("minirocket", "MiniRocket"),
    _main("multirocket", "MultiRocket"),
    _main("1nn-dtw", "1NN-DTW"),
    _main("slts", "SLTS (paper)"),
    _ablation("values-only", "representation: values only", representations=("values",)),
    _ablation("changes-only", "representation: changes only", representations=("changes",)),
    _ablation("levels-only", "representation: levels only", representations=("levels",)),
    _ablation(
        "no-values", "without the representation values", representations=("changes", "levels")
    ),
    _ablation(
        "no-changes", "without the representation changes", representations=("values", "levels")
    ),
    _ablation(
        "no-levels", "without the representation levels", representations=("values", "changes")
    ),
    _ablation("cost-only", "objective: cost only", objective="cost"),
    _ablation("affinity-only", "objective: affinity only", objective="affinity"),
    _ablation("metric-shared", "one metric for all landmarks", metrics="shared"),
    _ablation("metric-landmark", "a metric for each landmark", metrics="landmark"),
    _ablation("phases-1", "1 phase", n_phases=1),
    _ablation("phases-3", "3 phases", n_phases=3),
    _ablation("rank-full", "metrics of full rank", metric_rank=1000),
    _ablation("components-12", "12 components", n_components=12),
    _ablation("components-48", "48 components", n_components=48),
    _option("slts-homogeneous", "homogeneous channel", homogeneous=True),
    _option("slts-standard", "scale: standard", scale="standard"),
    _option("slts-asinh", "scale: asinh", scale="asinh"),
    _option(
        "slts-both", "scale: standard, homogeneous channel", scale="standard", homogeneous=True
    ),
    _option("slts-nuclear", "regularizer: nuclear", regularizer="nuclear"),
    _option("slts-l1", "regularizer: l1", regularizer="l1"),
    _option("slts-mahalanobis", "regularizer: mahalanobis", regularizer="mahalanobis"),
)
BY_NAME = {method.name: method for method in METHODS}
# The configurations that the default is chosen from.
CANDIDATES = tuple(method.name for method in METHODS if method.adapter == "local")


def unavailable() -> dict[str, str]:
    """Return the methods whose package is missing, with the remedy."""
    found = {}
    for method in METHODS:
        package = ADAPTERS[method.adapter].package
        if package is not None and importlib.util.find_spec(package) is None:
            found[method.name] = f'{package} is not installed: pip install "slts[study]"'
    return found
