"""The methods as data: a line each, and nothing else to add for one more."""

from __future__ import annotations

import importlib.util
import inspect
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from slts.bench.makers import MAKERS

# What everything is compared with.
CENTRE = "local"
GROUPS = {
    "main": "methods",
    "ablation": "LocalSLTSClassifier with one thing changed",
    "option": "SLTSClassifierCV with one option changed",
}


@dataclass(frozen=True)
class Method:
    """One row of the comparison.

    Parameters
    ----------
    name
        In files and on the command line.
    title
        For people.
    group
        One of `GROUPS`.
    maker
        Key of `MAKERS`: what is made.
    parameters
        And with which parameters, where they are not the defaults.
    """

    name: str
    title: str
    group: str
    maker: str
    parameters: tuple[tuple[str, Any], ...] = ()

    @property
    def chance(self) -> bool:
        """Whether its results depend on a seed."""
        return MAKERS[self.maker].chance


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
# Configurations that a default is chosen from.
CANDIDATES = tuple(m.name for m in METHODS if m.maker == "local")


def unavailable(methods: Sequence[Method] = METHODS) -> dict[str, str]:
    """Methods that cannot be run here, and why."""
    found = {}
    for method in methods:
        maker = MAKERS[method.maker]
        if maker.package is not None and importlib.util.find_spec(maker.package) is None:
            found[method.name] = f'{maker.package} is not installed: pip install "slts[bench]"'
        elif maker.package is None:
            known = inspect.signature(maker.make).parameters
            absent = [name for name, _ in method.parameters if name not in known]
            if absent:
                found[method.name] = f"no such parameter: {', '.join(absent)}"
    return found
