"""From a unit to its result, in any process."""

from __future__ import annotations

import math
import time
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.model_selection import PredefinedSplit, StratifiedKFold
from sklearn.svm import LinearSVC
from sklearn.utils.extmath import randomized_svd
from threadpoolctl import threadpool_limits

import slts
from study.methods import ADAPTERS, BY_NAME, Method, warm_up
from study.paper import PATH_LENGTHS
from study.problems import (
    Indices,
    LabelledSeries,
    Loader,
    Problem,
    Score,
    divide,
    draw_at_most,
    load_once,
    load_published,
    make_heldout_problem,
    make_problem,
    make_up,
)
from study.protocol import Protocol, seed_of
from study.runner import Result, Unit
from study.statistics import probability_scores

# With more training series, similarities are computed in single precision and projected.
_LARGE = 2000
_SHOWN_METRICS = 3


@dataclass(frozen=True)
class Worker:
    """Computes the results of units. It can be sent to another process.

    Parameters
    ----------
    protocol
        Grids and shares.
    loader
        Loads a data set by its name.
    """

    protocol: Protocol
    loader: Loader = load_published

    def __call__(self, unit: Unit) -> Result:
        """Return the result of a unit: numbers and text that JSON can store."""
        cpu = time.process_time()
        if unit.kind == "cue":
            dataset = make_up(unit.dataset, unit.splits[0], self.protocol.cue_test)
        else:
            dataset = load_once(self.loader, unit.dataset)
        # One thread: units run side by side, and sums must not depend on the number of threads.
        with threadpool_limits(1), warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            result = _KINDS[unit.kind](unit, dataset, self.protocol)
        seconds = round(time.process_time() - cpu, 3)
        return {**result, "warnings": len(caught), "cpu_seconds": seconds}


def _facts(unit: Unit, dataset: LabelledSeries, protocol: Protocol) -> Result:
    """Counts of a data set, as in Table 1."""
    return {
        "facts": {
            "dataset": unit.dataset,
            "instances": len(dataset.batch),
            "shortest": int(dataset.batch.lengths.min()),
            "longest": int(dataset.batch.lengths.max()),
            "features": dataset.batch.n_channels,
            "classes": len(np.unique(dataset.labels)),
        }
    }


def _path(unit: Unit, dataset: LabelledSeries, protocol: Protocol) -> Result:
    """Two series of one class whose lengths, and path, are close to those of Figure 1."""
    lengths, labels = dataset.batch.lengths, dataset.labels
    first = np.argsort(np.abs(lengths - PATH_LENGTHS[0]), kind="stable")[:30]
    best, pair = math.inf, (0, 0)
    for a in first.tolist():
        others = np.setdiff1d(np.flatnonzero(labels == labels[a]), [a])
        near = np.argsort(np.abs(lengths[others] - PATH_LENGTHS[1]), kind="stable")[:5]
        for b in others[near].tolist():
            path = slts.align(dataset.batch[a], dataset.batch[b]).length
            found = (int(lengths[a]), int(lengths[b]), path)
            miss = sum(abs(x - y) for x, y in zip(found, PATH_LENGTHS, strict=True))
            if miss < best:
                best, pair = miss, (a, b)
    return {"path": [dataset.batch[k].tolist() for k in pair]}


def _landmarks(unit: Unit, dataset: LabelledSeries, protocol: Protocol) -> Result:
    """BBS and SLTS with random landmarks. Smaller sets of landmarks are part of larger ones."""
    problem = make_problem(dataset, unit.dataset, unit.splits[0], protocol)
    counts = [int(count) for count in unit.detail] or problem.counts(protocol.shares)
    return {
        "scores": [
            _landmark_score(problem, method, landmarks, "random", protocol)
            for landmarks in _select(problem, "random", counts)
            for method in ("bbs", "slts")
        ]
    }


def _selection(unit: Unit, dataset: LabelledSeries, protocol: Protocol) -> Result:
    """SLTS with landmarks that are selected in one way, for every share."""
    problem = make_problem(dataset, unit.dataset, unit.splits[0], protocol)
    return {"scores": _selection_scores(problem, str(unit.detail[0]), protocol)}


def _heldout(unit: Unit, dataset: LabelledSeries, protocol: Protocol) -> Result:
    """All methods of Table 2, or all ways to select landmarks, under the literal reading."""
    problem = make_heldout_problem(dataset, unit.dataset, unit.splits[0], protocol)
    if unit.detail == ("selection",):
        ways = ("random", "dselect", "kmedoids")
        return {"scores": [s for way in ways for s in _selection_scores(problem, way, protocol)]}
    counts = protocol.counts_of(unit.dataset) or problem.counts(protocol.shares)
    (landmarks,) = _select(problem, "random", [max(counts)])
    scores = [*_similarity_scores([problem], protocol), _ldmlt_score(problem, protocol)]
    scores += [
        _landmark_score(problem, name, landmarks, "random", protocol) for name in ("bbs", "slts")
    ]
    return {"scores": scores}


def _select(problem: Problem, way: str, counts: Sequence[int]) -> list[Indices]:
    """Select landmarks, once for each number of them, as positions in the training set."""
    series = problem.series[problem.train]
    seed = problem.seed("landmarks" if way == "random" else "selection")
    if way == "kmedoids":
        return [
            slts.select_landmarks(series, count, method=way, random_state=seed, n_jobs=1)
            for count in counts
        ]
    order = slts.select_landmarks(series, max(counts), method=way, random_state=seed, n_jobs=1)
    return [order[:count] for count in counts]


def _selection_scores(problem: Problem, way: str, protocol: Protocol) -> list[Score]:
    return [
        _landmark_score(problem, "slts", landmarks, way, protocol)
        for landmarks in _select(problem, way, problem.counts(protocol.shares))
    ]


def _tuned(
    problem: Problem, method: str, landmarks: Indices, protocol: Protocol
) -> tuple[Any, dict[str, float]]:
    """Train BBS or SLTS with the parameters that are best on the tuning set; return them too."""
    series, labels = problem.series, problem.labels
    outside = np.setdiff1d(problem.tuning, problem.train)
    # The training set comes first, so that positions of landmarks stay valid.
    pool = np.concatenate([problem.train, outside])
    cv = PredefinedSplit(np.where(np.isin(pool, problem.tuning), 0, -1))
    common: dict[str, Any] = {"landmarks": landmarks, "n_jobs": 1}
    model: Any
    if method == "bbs":
        model = slts.BBSClassifierCV(gammas=protocol.gammas, cv=cv, **common)
    else:
        model = slts.SLTSClassifierCV(gammas=protocol.gammas, lams=protocol.lams, cv=cv, **common)
    model.fit(series[pool], labels[pool])
    validation = float(model.best_score_)
    chosen = {name: value for name, value in model.best_params_.items() if name != "n_landmarks"}
    if len(outside):
        plain = slts.BBSClassifier if method == "bbs" else slts.SLTSClassifier
        model = plain(**chosen, calibration_cv=None, **common)
        model.fit(series[problem.train], labels[problem.train])
    return model, {**chosen, "validation": validation}


def _landmark_score(
    problem: Problem, method: str, landmarks: Indices, way: str, protocol: Protocol
) -> Score:
    model, chosen = _tuned(problem, method, landmarks, protocol)
    predicted = model.predict(problem.series[problem.test])
    return problem.score(method, predicted, selection=way, landmarks=len(landmarks), **chosen)


def _pca(unit: Unit, dataset: LabelledSeries, protocol: Protocol) -> Result:
    """Two principal components of the similarities to a few landmarks, under each metric."""
    problem = make_problem(dataset, unit.dataset, unit.splits[0], protocol)
    (landmarks,) = _select(problem, "random", [protocol.pca_landmarks])
    model, chosen = _tuned(problem, "slts", landmarks, protocol)
    order = np.concatenate([problem.train, problem.test])
    T = slts.aligned_products(problem.series[order], model.landmarks_, n_jobs=1)
    metrics = [np.eye(problem.series.n_channels), *model.metrics_]
    spaces = [_principal(np.einsum("ijkl,kl->ij", T, metric)) for metric in metrics]
    shown = spaces[: 1 + _SHOWN_METRICS] if problem.split == 0 else []
    _, codes = np.unique(problem.labels, return_inverse=True)
    return {
        "pca": {
            "split": problem.split,
            "variance": [100.0 * share for _, share in spaces],
            "codes": codes[order].tolist() if shown else [],
            "points": [np.round(points, 6).tolist() for points, _ in shown],
            **chosen,
        }
    }


def _principal(features: npt.NDArray[np.float64]) -> tuple[npt.NDArray[np.float64], float]:
    """First two principal components, and the share of the variance that they explain."""
    left, values, _ = np.linalg.svd(features - features.mean(axis=0), full_matrices=False)
    points = left[:, :2] * values[:2]
    # The sign of a component is arbitrary. This choice makes it repeatable.
    points = points * np.where(np.abs(points.min(axis=0)) > points.max(axis=0), -1.0, 1.0)
    total = float(np.sum(values**2))
    return points, float(np.sum(values[:2] ** 2)) / total if total > 0 else 1.0


def _similarity(unit: Unit, dataset: LabelledSeries, protocol: Protocol) -> Result:
    """1NN once, and the SVM for each split of the unit."""
    problems = [make_problem(dataset, unit.dataset, split, protocol) for split in unit.splits]
    return {"scores": _similarity_scores(problems, protocol)}


def _similarity_scores(problems: Sequence[Problem], protocol: Protocol) -> list[Score]:
    """1NN and SVM. The problems share their training and test set."""
    first = problems[0]
    series, train, test = first.series, first.train, first.test
    large = len(train) > _LARGE
    dtype = "float32" if large else "float64"
    K = slts.similarity(series[test], series[train], dtype=dtype, n_jobs=1)
    scores = [first.score("1nn", first.labels[train][K.argmax(axis=1)])]
    features = np.zeros((len(series), len(train)), dtype=K.dtype)
    features[test] = K
    others = np.union1d(train, first.tuning)
    features[others] = slts.similarity(series[others], series[train], dtype=dtype, n_jobs=1)
    if large:
        # A linear SVM is invariant to rotations, so only the smallest directions are lost.
        _, _, right = randomized_svd(features[train], protocol.svm_rank, n_iter=4, random_state=0)
        features = features @ right.T
    return scores + [_svm_score(p, features.astype(np.float64), protocol) for p in problems]


def _svm_score(problem: Problem, features: npt.NDArray[Any], protocol: Protocol) -> Score:
    def fit(C: float, part: Indices) -> Any:
        # As SimilaritySVC. The primal solver needs no seed and does not slow down as C grows.
        svm = LinearSVC(C=C, dual=False, fit_intercept=False)
        return svm.fit(features[part], problem.labels[part])

    tuning, fit_part = problem.tuning, problem.fit
    validation = [
        fit(C, fit_part).score(features[tuning], problem.labels[tuning]) for C in protocol.cs
    ]
    best = int(np.argmax(validation))
    predicted = fit(protocol.cs[best], problem.train).predict(features[problem.test])
    return problem.score("svm", predicted, C=protocol.cs[best], validation=float(validation[best]))


def _ldmlt(unit: Unit, dataset: LabelledSeries, protocol: Protocol) -> Result:
    problem = make_problem(dataset, unit.dataset, unit.splits[0], protocol)
    return {"scores": [_ldmlt_score(problem, protocol)]}


def _ldmlt_score(problem: Problem, protocol: Protocol) -> Score:
    model = slts.LDMLTClassifier(
        n_cycles=protocol.ldmlt_cycles,
        ranking_limit=protocol.ldmlt_ranking,
        calibration_size=None,
        n_jobs=1,
        random_state=problem.seed("ldmlt"),
    )
    model.fit(problem.series[problem.train], problem.labels[problem.train])
    return problem.score("ldmlt", model.predict(problem.series[problem.test]))


def _model(unit: Unit, dataset: LabelledSeries, protocol: Protocol) -> Result:
    """Accuracy of a compared method on the test set, its times and its size."""
    method, split = BY_NAME[str(unit.detail[0])], unit.splits[0]
    train, test = divide(dataset, unit.dataset, split, protocol)
    problem = Problem(unit.dataset, split, dataset.batch, dataset.labels, train, train[:0], test)
    return {"scores": [_measure(method, problem, probabilities=True)]}


def _choice(unit: Unit, dataset: LabelledSeries, protocol: Protocol) -> Result:
    """Cross-validated accuracies of a configuration, inside the training set of the first split."""
    method = BY_NAME[str(unit.detail[0])]
    train, _ = divide(dataset, unit.dataset, 0, protocol)
    seed = seed_of("choice", unit.dataset)
    train = draw_at_most(protocol.choice_series, train, dataset.labels, seed)
    # Nothing outside the training set is within reach.
    series, labels = dataset.batch[train], dataset.labels[train]
    folds = []
    for repeat in range(protocol.choice_repeats):
        folding = StratifiedKFold(protocol.choice_folds, shuffle=True, random_state=seed + repeat)
        for fit, rest in folding.split(labels, labels):
            problem = Problem(unit.dataset, 0, series, labels, fit, fit[:0], rest)
            folds.append(_measure(method, problem)["accuracy"])
    return {"choice": {"method": method.name, "dataset": unit.dataset, "folds": folds}}


def _measure(method: Method, problem: Problem, *, probabilities: bool = False) -> Score:
    adapter = ADAPTERS[method.adapter]
    warm_up(method.adapter)
    train, test = problem.series[problem.train], problem.series[problem.test]
    X, X_test = adapter.prepare(train, test)
    # All variants of a method share the seed, so that they differ only in what was changed.
    seed = seed_of("model", method.adapter, problem.dataset, problem.split)
    model = adapter.model(dict(method.parameters), seed)
    clock = [time.process_time()]
    model.fit(X, problem.labels[problem.train])
    clock.append(time.process_time())
    predicted = model.predict(X_test)
    clock.append(time.process_time())
    fit_seconds, predict_seconds = np.round(np.diff(clock), 4).tolist()
    figures = {}
    if probabilities and hasattr(model, "predict_proba"):
        truth = problem.labels[problem.test][:, np.newaxis] == model.classes_
        figures = probability_scores(model.predict_proba(X_test), truth)
    return problem.score(
        method.name,
        predicted,
        fit_seconds=fit_seconds,
        predict_seconds=predict_seconds,
        numbers=adapter.size(model),
        **figures,
    )


_KINDS = {
    "facts": _facts,
    "path": _path,
    "landmarks": _landmarks,
    "selection": _selection,
    "heldout": _heldout,
    "pca": _pca,
    "similarity": _similarity,
    "ldmlt": _ldmlt,
    "model": _model,
    "cue": _model,
    "choice": _choice,
}
