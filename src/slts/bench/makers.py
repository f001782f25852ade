"""From a method to a model: data in the form it takes, and how many numbers it stores."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from slts._typing import FloatArray
from slts.estimators import LocalSLTSClassifier, SLTSClassifierCV
from slts.extras import import_extra
from slts.series import SeriesBatch, as_series

Prepared: TypeAlias = tuple[Any, Any]


@dataclass(frozen=True)
class Maker:
    """How the models of one kind are made.

    Parameters
    ----------
    make
        Gives an unfitted model, from its parameters.
    prepare
        Training and test series in the form the model takes; not timed.
    size
        Numbers that a fitted model stores.
    package
        What it comes from, if not from slts; its code is compiled when first called.
    chance
        Whether results depend on a seed.
    """

    make: Callable[..., Any]
    prepare: Callable[[SeriesBatch, SeriesBatch], Prepared]
    size: Callable[[Any], int]
    package: str | None = None
    chance: bool = True

    def model(self, parameters: Mapping[str, Any], seed: int) -> Any:
        """An unfitted model that runs in one thread."""
        own = {"random_state": seed} if self.chance else {}
        return self.make(**parameters, n_jobs=1, **own)


def _as_is(train: SeriesBatch, test: SeriesBatch) -> Prepared:
    return train, test


def _padded(train: SeriesBatch, test: SeriesBatch) -> Prepared:
    """Both as (series, channels, steps), filled up with zeros to the longest of all."""
    steps = int(max(train.lengths.max(), test.lengths.max()))
    return _pad(train, steps), _pad(test, steps)


def _pad(batch: SeriesBatch, steps: int) -> FloatArray:
    out = np.zeros((len(batch), batch.n_channels, steps))
    for k, series in enumerate(batch):
        out[k, :, : series.shape[1]] = series
    return out


def _listed(train: SeriesBatch, test: SeriesBatch) -> Prepared:
    """Both as lists of arrays; as one array if there is one length."""
    lengths = np.concatenate([train.lengths, test.lengths])
    if lengths.min() == lengths.max():
        return _padded(train, test)
    return [np.array(x) for x in train], [np.array(x) for x in test]


def _local_size(model: Any) -> int:
    return int(model.n_numbers_)


def _slts_size(model: Any) -> int:
    paths = 0 if model.path_metrics_ is None else model.path_metrics_.size
    return int(model.landmarks_.values.size + model.metrics_.size + model.coef_.size + paths)


def _rocket_size(model: Any) -> int:
    kernels, scaler, ridge = (step for _, step in model.pipeline_.steps)
    names = [name for name in vars(kernels) if name.startswith("parameter")]
    stored = [part for name in names for part in getattr(kernels, name)]
    stored += [scaler.scale_, ridge.coef_, ridge.intercept_]
    return int(sum(np.size(part) for part in stored))


def _neighbor_size(model: Any) -> int:
    return int(sum(np.size(series) for series in model.training_series_))


class _Neighbor:
    """aeon's nearest neighbour; remembers its training series under a name of ours."""

    def __init__(self, n_jobs: int) -> None:
        module = import_extra("aeon.classification.distance_based", "bench")
        self._model = module.KNeighborsTimeSeriesClassifier(
            distance="dtw", n_neighbors=1, n_jobs=n_jobs
        )
        self.training_series_: Any = ()

    def fit(self, X: Any, y: Any) -> _Neighbor:
        self._model.fit(X, y)
        self.training_series_ = X
        return self

    def predict(self, X: Any) -> Any:
        return self._model.predict(X)


def _rocket(name: str, **parameters: Any) -> Any:
    module = import_extra("aeon.classification.convolution_based", "bench")
    return getattr(module, name)(**parameters)


MAKERS = {
    "local": Maker(LocalSLTSClassifier, _as_is, _local_size),
    "slts": Maker(SLTSClassifierCV, _as_is, _slts_size),
    "minirocket": Maker(
        functools.partial(_rocket, "MiniRocketClassifier"), _padded, _rocket_size, "aeon"
    ),
    "multirocket": Maker(
        functools.partial(_rocket, "MultiRocketClassifier"), _padded, _rocket_size, "aeon"
    ),
    "1nn-dtw": Maker(_Neighbor, _listed, _neighbor_size, "aeon", chance=False),
}


@functools.cache
def warm_up(name: str) -> None:
    """Compile what a model compiles, once per process, on a tiny problem."""
    maker = MAKERS[name]
    if maker.package is None:
        return
    rng = np.random.default_rng(0)
    codes = np.arange(8) % 2
    for steps in ([12] * 8, [12 + k for k in range(8)]):
        batch = as_series([rng.normal(size=(3, n)) for n in steps])
        train, test = maker.prepare(batch, batch)
        maker.model({}, 0).fit(train, codes).predict(test)
