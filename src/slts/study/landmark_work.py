"""Units that learn over landmarks: BBS and SLTS at several numbers of them, and the PCA."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from slts._typing import AnyArray, FloatArray, IntArray
from slts.alignment import AlignmentSettings
from slts.alignment.reductions import products, similarities
from slts.estimators.search import Decide, search
from slts.estimators.splitting import make_splits
from slts.landmarks import find_medoids, resolve_count, select_landmarks
from slts.learning.calibration import two_sided
from slts.learning.landmark import (
    LandmarkData,
    bbs_decisions,
    fit_bbs,
    fit_slts,
    project,
    slts_decisions,
)
from slts.series import SeriesBatch
from slts.study.problems import Problem
from slts.study.protocol import Protocol, Unit, seed_of

_ROWS_ARE_UNIT = AlignmentSettings(normalize=False)
_SHOWN_METRICS = 3

Score = dict[str, Any]


def landmark_scores(unit: Unit, problem: Problem, protocol: Protocol) -> dict[str, Any]:
    """BBS and SLTS with random landmarks, the fewer being the first of the more."""
    split = unit.splits[0]
    n_train = len(problem.train)
    counts = [int(count) for count in unit.detail] or _counts(protocol, n_train)
    drawn = select_landmarks(
        problem.train,
        min(max(counts), n_train),
        random_state=seed_of("landmarks", unit.dataset, split),
    )
    views = _Views.align(problem, drawn)
    seed = seed_of("tuning", unit.dataset, split)
    scores = []
    for count in counts:
        view = views.take(np.arange(min(count, n_train)))
        for method in ("bbs", "slts"):
            scores.append(
                {
                    "method": method,
                    "dataset": unit.dataset,
                    "split": split,
                    "selection": "random",
                    "landmarks": count,
                    "n_train": n_train,
                    **view.evaluate(method, protocol, seed),
                }
            )
    return {"scores": scores}


def selection_scores(unit: Unit, problem: Problem, protocol: Protocol) -> dict[str, Any]:
    """SLTS with landmarks chosen by diversity or as medoids, for every share."""
    split, method = unit.splits[0], str(unit.detail[0])
    n_train = len(problem.train)
    counts = _counts(protocol, n_train)
    seed = seed_of("selection", unit.dataset, split)
    views = _Views.align(problem, np.arange(n_train))
    chosen = choose_landmarks(problem.train, method, counts, seed)
    tuning = seed_of("tuning", unit.dataset, split)
    return {
        "scores": [
            {
                "method": "slts",
                "dataset": unit.dataset,
                "split": split,
                "selection": method,
                "landmarks": count,
                "n_train": n_train,
                **views.take(indices).evaluate("slts", protocol, tuning),
            }
            for count, indices in zip(counts, chosen, strict=True)
        ]
    }


def similarity_space(unit: Unit, problem: Problem, protocol: Protocol) -> dict[str, Any]:
    """Two principal components of the similarities to a few landmarks, under each metric."""
    split = unit.splits[0]
    count = min(protocol.pca_landmarks, len(problem.train))
    drawn = select_landmarks(
        problem.train, count, random_state=seed_of("landmarks", unit.dataset, split)
    )
    views = _Views.align(problem, drawn)
    chosen = views.tune("slts", protocol, seed_of("tuning", unit.dataset, split))
    model = fit_slts(views.train, chosen["gamma"], chosen["lam"], n_jobs=1)
    assert model.metrics is not None
    identity = np.eye(problem.train.n_channels)[np.newaxis]
    metrics = np.concatenate([identity, model.metrics])
    K = np.concatenate([project(views.train, metrics), project(views.test, metrics)], axis=1)
    spaces = [_principal(features) for features in K]
    shown = spaces[: 1 + _SHOWN_METRICS] if split == 0 else []
    return {
        "pca": {
            "dataset": unit.dataset,
            "split": split,
            "variance": [100.0 * share for _, share in spaces],
            "gamma": chosen["gamma"],
            "lam": chosen["lam"],
            "codes": np.concatenate([problem.codes, problem.test_codes]).tolist() if shown else [],
            "points": [np.round(points, 6).tolist() for points, _ in shown],
        }
    }


class _Views:
    """Training and test series through their alignments with the same landmarks."""

    def __init__(self, train: LandmarkData, test: LandmarkData) -> None:
        self.train, self.test = train, test

    @classmethod
    def align(cls, problem: Problem, landmarks: IntArray) -> _Views:
        """Align both parts once; everything else is learned from the products."""
        chosen, codes = problem.train[landmarks], problem.codes[landmarks]
        sides = []
        for series, labels in ((problem.train, problem.codes), (problem.test, problem.test_codes)):
            T = products(series, chosen, _ROWS_ARE_UNIT, n_jobs=1)
            # At M = I the similarity is the trace of the product.
            K = np.einsum("ijkk->ij", T)
            sides.append(LandmarkData(K, T, labels, codes, np.ones(len(labels)), problem.n_classes))
        return cls(*sides)

    def take(self, columns: IntArray) -> _Views:
        """The same series with some of the landmarks."""
        return _Views(_columns(self.train, columns), _columns(self.test, columns))

    def tune(self, method: str, protocol: Protocol, seed: int) -> dict[str, Any]:
        """Parameters with the best accuracy on held-out training series."""
        splits = make_splits(protocol.tuning_share, self.train.codes, random_state=seed)
        decide, parameters = candidates(method, protocol)
        found = search(self.train, [self.train.n_landmarks], parameters, decide, splits)
        chosen = dict(found.candidates[found.best])
        del chosen["n_landmarks"]
        return {**chosen, "validation": float(found.scores[found.best].mean())}

    def evaluate(self, method: str, protocol: Protocol, seed: int) -> dict[str, Any]:
        """Accuracy in percent on the test part, parameters tuned on the training part."""
        chosen = self.tune(method, protocol, seed)
        K = self.test.similarities
        assert K is not None
        if method == "bbs":
            model = fit_bbs(self.train, chosen["gamma"], n_jobs=1)
            decisions = K @ model.coef.T
        else:
            model = fit_slts(self.train, chosen["gamma"], chosen["lam"], n_jobs=1)
            assert model.metrics is not None
            projected = project(self.test, model.metrics)
            decisions = np.einsum("cij,cj->ic", projected, model.coef)
        return {**accuracy_of(decisions, self.test.codes), **chosen}


def accuracy_of(decisions: FloatArray, codes: IntArray) -> dict[str, Any]:
    """Accuracy in percent of the largest decision values."""
    values = two_sided(decisions[:, 0] if decisions.shape[1] == 1 else decisions)
    right = int(np.sum(values.argmax(axis=1) == codes))
    return {"accuracy": 100.0 * right / len(codes), "n_test": len(codes)}


def candidates(method: str, protocol: Protocol) -> tuple[Decide, list[dict[str, float]]]:
    """How BBS or SLTS decides, and the parameters to choose from."""

    def bbs(
        data: LandmarkData, train: IntArray, test: IntArray, tried: Sequence[dict[str, float]]
    ) -> FloatArray:
        return bbs_decisions(data, train, test, [p["gamma"] for p in tried], n_jobs=1)

    def slts(
        data: LandmarkData, train: IntArray, test: IntArray, tried: Sequence[dict[str, float]]
    ) -> FloatArray:
        pairs = [(p["gamma"], p["lam"]) for p in tried]
        return slts_decisions(data, train, test, pairs, n_jobs=1)

    if method == "bbs":
        return bbs, [{"gamma": gamma} for gamma in protocol.gammas]
    return slts, [
        {"gamma": gamma, "lam": lam} for gamma in protocol.gammas for lam in protocol.lams
    ]


def _counts(protocol: Protocol, n_train: int) -> list[int]:
    """Numbers of landmarks that the shares mean, each once."""
    return sorted({resolve_count(share, n_train) for share in protocol.shares})


def choose_landmarks(
    train: SeriesBatch, method: str, counts: Sequence[int], seed: int
) -> list[IntArray]:
    """Landmarks by diversity or as medoids, one list for each number of them."""
    if method == "dselect":
        order = select_landmarks(train, max(counts), method="dselect", random_state=seed)
        return [order[:count] for count in counts]
    K = similarities(train, train, _ROWS_ARE_UNIT, n_jobs=1)
    dissimilarity = 1.0 - 0.5 * (K + K.T).astype(np.float64)
    np.fill_diagonal(dissimilarity, 0.0)
    np.maximum(dissimilarity, 0.0, out=dissimilarity)
    return [find_medoids(dissimilarity, count, random_state=seed).indices for count in counts]


def _columns(data: LandmarkData, columns: IntArray) -> LandmarkData:
    assert data.similarities is not None
    assert data.products is not None
    return LandmarkData(
        data.similarities[:, columns],
        data.products[:, columns],
        data.codes,
        data.landmark_codes[columns],
        data.weights,
        data.n_classes,
    )


def _principal(features: AnyArray) -> tuple[FloatArray, float]:
    """First two principal components, and the share of the variance they explain."""
    centred = features - features.mean(axis=0)
    left, values, _ = np.linalg.svd(centred, full_matrices=False)
    points = left[:, :2] * values[:2]
    # The sign of a component is arbitrary; this one makes it repeatable.
    points = points * np.where(np.abs(points.min(axis=0)) > points.max(axis=0), -1.0, 1.0)
    total = float(np.sum(values**2))
    return points, float(np.sum(values[:2] ** 2)) / total if total > 0 else 1.0
