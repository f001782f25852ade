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
    packages
        The packages of the model, if it is not of slts. Their code is compiled at the first call.
    extra
        The extra of slts that installs the packages.
    seeded
        Whether results depend on a seed.
    version
        Raise it when the model starts to give other results: kept results are then computed again.
    """

    make: Callable[..., Any]
    prepare: Callable[[slts.SeriesBatch, slts.SeriesBatch], tuple[Any, Any]]
    size: Callable[[Any], int]
    packages: tuple[str, ...] = ()
    extra: str = "study"
    seeded: bool = True
    version: int = 1

    def model(self, parameters: Mapping[str, Any], seed: int) -> Any:
        """Return an unfitted model that uses one thread."""
        seeds = {"random_state": seed} if self.seeded else {}
        return self.make(**parameters, n_jobs=1, **seeds)


def _unchanged(train: slts.SeriesBatch, test: slts.SeriesBatch) -> tuple[Any, Any]:
    return train, test


def _zero_padded(train: slts.SeriesBatch, test: slts.SeriesBatch) -> tuple[Any, Any]:
    """Return arrays (series, channels, steps), padded with zeros to the longest of all series.

    Missing values are interpolated linearly within each series.
    """
    train, test = (slts.as_series(batch, missing="interpolate") for batch in (train, test))
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


def _linear_size(scaler: Any, ridge: Any) -> int:
    return int(scaler.scale_.size + ridge.coef_.size + ridge.intercept_.size)


def _kernels_size(kernels: Any) -> int:
    names = [name for name in vars(kernels) if name.startswith("parameter")]
    return int(sum(np.size(part) for name in names for part in getattr(kernels, name)))


def _rocket_size(model: Any) -> int:
    kernels, scaler, ridge = (step for _, step in model.pipeline_.steps)
    return _kernels_size(kernels) + _linear_size(scaler, ridge)


def _hydra_size(model: Any) -> int:
    # The parts have no public names.
    parts = vars(model)
    hydra, scales = vars(parts["_transform_hydra"])["_hydra"], parts["_scale_hydra"]
    tensors = [hydra.W, *hydra.idx, scales.mu, scales.sigma]
    return (
        sum(int(tensor.numel()) for tensor in tensors)
        + _kernels_size(parts["_transform_multirocket"])
        + _linear_size(parts["_scale_multirocket"], model.classifier)
    )


def _forest_size(model: Any) -> int:
    """Four numbers for every split, and the shares of the classes for every leaf."""
    forest = model.estimator_
    trees = [tree.tree_ for tree in forest.estimators_]
    splits = sum(tree.node_count - tree.n_leaves for tree in trees)
    leaves = sum(tree.n_leaves for tree in trees)
    return int(4 * splits + len(forest.classes_) * leaves)


def _shapelet_size(model: Any) -> int:
    linear = _linear_size(*(step for _, step in model.estimator_.steps))
    return int(sum(map(np.size, model.transformer_.shapelets_))) + linear


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


def _peer(
    module: str,
    name: str,
    size: Callable[[Any], int],
    *,
    torch: bool = False,
    n_jobs: bool = True,
) -> Adapter:
    """Return the adapter of a classifier of aeon; `n_jobs` tells whether it has this parameter.

    RDST gets padded series too: from ragged ones it takes shapelets of half the shortest length.
    """

    def make(**parameters: Any) -> Any:
        if torch:
            importlib.import_module("torch").set_num_threads(1)
        if not n_jobs:
            del parameters["n_jobs"]
        return getattr(importlib.import_module(f"aeon.classification.{module}"), name)(**parameters)

    if torch:
        return Adapter(make, _zero_padded, size, ("aeon", "torch"), "study-torch")
    return Adapter(make, _zero_padded, size, ("aeon",))


ADAPTERS = {
    "local": Adapter(
        slts.LocalSLTSClassifier, _unchanged, lambda model: int(model.n_numbers_), version=12
    ),
    "slts": Adapter(slts.SLTSClassifierCV, _unchanged, _slts_size),
    "minirocket": _peer("convolution_based", "MiniRocketClassifier", _rocket_size),
    "multirocket": _peer("convolution_based", "MultiRocketClassifier", _rocket_size),
    "multirocket-hydra": _peer(
        "convolution_based", "MultiRocketHydraClassifier", _hydra_size, torch=True
    ),
    "quant": _peer("interval_based", "QUANTClassifier", _forest_size, torch=True, n_jobs=False),
    "rdst": _peer("shapelet_based", "RDSTClassifier", _shapelet_size),
    "1nn-dtw": Adapter(
        _Neighbor,
        _lists,
        lambda model: int(sum(map(np.size, model.training_series_))),
        ("aeon",),
        seeded=False,
    ),
}


@functools.cache
def warm_up(name: str) -> None:
    """Compile the code of a model on tiny problems, once per process."""
    adapter = ADAPTERS[name]
    if not adapter.packages:
        return
    rng = np.random.default_rng(0)
    for n_channels, growth in ((3, 0), (3, 1), (1, 0)):
        batch = slts.as_series([rng.normal(size=(n_channels, 12 + growth * k)) for k in range(8)])
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
    _main("multirocket-hydra", "MultiRocket-Hydra"),
    _main("quant", "QUANT"),
    _main("rdst", "RDST"),
    _main("1nn-dtw", "1NN-DTW"),
    _main("slts", "SLTS (paper)"),
    _ablation("no-snippets", "without snippets", n_snippets=0),
    _ablation("snippets-50", "50 snippets", n_snippets=50),
    _ablation("snippets-400", "400 snippets", n_snippets=400),
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
# The methods that are compared on synthetic families.
CUE_METHODS = (CENTRE, "slts", "1nn-dtw", "minirocket")
# The methods that are compared on the pool of public data sets.
POOL_METHODS = (CENTRE, "minirocket", "multirocket-hydra", "quant", "rdst")
# The configurations that the default is chosen from.
CANDIDATES = tuple(method.name for method in METHODS if method.adapter == "local")


def unavailable() -> dict[str, str]:
    """Return the methods whose package is missing, with the remedy."""
    found = {}
    for method in METHODS:
        adapter = ADAPTERS[method.adapter]
        missing = [name for name in adapter.packages if importlib.util.find_spec(name) is None]
        if missing:
            found[method.name] = (
                f'{" and ".join(missing)} not installed: pip install "slts[{adapter.extra}]"'
            )
    return found
