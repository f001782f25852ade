"""Units of the other reading of the protocol: the tuning part is kept aside for good.

The main study learns again on the whole training part once parameters are tuned. Read to the
letter, the paper does not: what it retains for tuning never comes back.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from slts._typing import FloatArray, IntArray
from slts.alignment import AlignmentSettings
from slts.alignment.reductions import products, similarities
from slts.estimators import LDMLTClassifier
from slts.landmarks import select_landmarks
from slts.learning.landmark import LandmarkData
from slts.study.baseline_work import decide_svm
from slts.study.landmark_work import accuracy_of, candidates, choose_landmarks
from slts.study.problems import Dataset, Parts, aside_count, divide_in_three
from slts.study.protocol import Protocol, Unit, seed_of

_ROWS_ARE_UNIT = AlignmentSettings(normalize=False)
_METHODS = "methods"

Score = dict[str, Any]


def aside_scores(unit: Unit, dataset: Dataset, protocol: Protocol) -> dict[str, Any]:
    """All methods of Table 2, or SLTS with landmarks chosen in three ways."""
    parts = divide_in_three(dataset, unit.dataset, unit.splits[0], protocol)
    score = _methods if unit.detail[0] == _METHODS else _selections
    base = {"dataset": unit.dataset, "split": unit.splits[0], "n_train": len(parts.fit)}
    return {"aside": [{**base, **found} for found in score(unit, parts, protocol)]}


def _methods(unit: Unit, parts: Parts, protocol: Protocol) -> list[Score]:
    fit = parts.fit
    K = similarities(parts.rows, parts.rows[fit], _ROWS_ARE_UNIT, n_jobs=1).astype(np.float64)
    nearest = parts.codes[fit][K[parts.test].argmax(axis=1)]
    counts = protocol.counts_of(unit.dataset)
    count = max(counts) if counts else aside_count(max(protocol.shares), len(fit))
    drawn = _draw(unit, parts, count)
    data = _align(parts, fit[drawn])
    return [
        {"method": "1nn", **_accuracy(nearest, parts)},
        {"method": "svm", **_svm(K, parts, protocol)},
        {"method": "ldmlt", **_ldmlt(unit, parts, protocol)},
        *(_over_landmarks(method, data, "random", parts, protocol) for method in ("bbs", "slts")),
    ]


def _selections(unit: Unit, parts: Parts, protocol: Protocol) -> list[Score]:
    train = parts.rows[parts.fit]
    counts = sorted({aside_count(share, len(train)) for share in protocol.shares})
    drawn = _draw(unit, parts, max(counts))
    seed = seed_of("selection", "aside", unit.dataset, unit.splits[0])
    chosen = {
        "random": [drawn[:count] for count in counts],
        "dselect": choose_landmarks(train, "dselect", counts, seed),
        "kmedoids": choose_landmarks(train, "kmedoids", counts, seed),
    }
    return [
        _over_landmarks("slts", _align(parts, parts.fit[indices]), how, parts, protocol)
        for how, lists in chosen.items()
        for indices in lists
    ]


def _draw(unit: Unit, parts: Parts, count: int) -> IntArray:
    seed = seed_of("landmarks", "aside", unit.dataset, unit.splits[0])
    train = parts.rows[parts.fit]
    return select_landmarks(train, min(count, len(train)), random_state=seed)


def _align(parts: Parts, landmarks: IntArray) -> LandmarkData:
    T = products(parts.rows, parts.rows[landmarks], _ROWS_ARE_UNIT, n_jobs=1)
    K = np.einsum("ijkk->ij", T)
    weights = np.ones(len(parts.codes))
    return LandmarkData(K, T, parts.codes, parts.codes[landmarks], weights, parts.n_classes)


def _over_landmarks(
    method: str, data: LandmarkData, how: str, parts: Parts, protocol: Protocol
) -> Score:
    decide, parameters = candidates(method, protocol)
    decisions = decide(data, parts.fit, _others(parts), parameters)
    found = _best(decisions, parameters, parts)
    return {"method": method, "selection": how, "landmarks": data.n_landmarks, **found}


def _svm(K: FloatArray, parts: Parts, protocol: Protocol) -> Score:
    codes, others = parts.codes[parts.fit], K[_others(parts)]
    decisions = [decide_svm(K[parts.fit], codes, others, C) for C in protocol.cs]
    return _best(decisions, [{"C": C} for C in protocol.cs], parts)


def _ldmlt(unit: Unit, parts: Parts, protocol: Protocol) -> Score:
    model = LDMLTClassifier(
        n_cycles=protocol.ldmlt_cycles,
        ranking_limit=protocol.ldmlt_ranking,
        calibration_size=None,
        n_jobs=1,
        random_state=seed_of("ldmlt", "aside", unit.dataset, unit.splits[0]),
    )
    model.fit(parts.rows[parts.fit], parts.codes[parts.fit])
    return _accuracy(np.asarray(model.predict(parts.rows[parts.test])), parts)


def _others(parts: Parts) -> IntArray:
    return np.concatenate([parts.tuning, parts.test])


def _best(
    decisions: Sequence[FloatArray] | FloatArray,
    parameters: Sequence[dict[str, float]],
    parts: Parts,
) -> Score:
    """Accuracy on the test part, of the decisions that are best on the tuning part."""
    n = len(parts.tuning)
    tuned = [accuracy_of(values[:n], parts.codes[parts.tuning])["accuracy"] for values in decisions]
    best = int(np.argmax(tuned))
    found = accuracy_of(decisions[best][n:], parts.codes[parts.test])
    return {**found, **parameters[best], "validation": tuned[best] / 100.0}


def _accuracy(predicted: IntArray, parts: Parts) -> Score:
    right = int(np.sum(predicted == parts.codes[parts.test]))
    return {"accuracy": 100.0 * right / len(parts.test), "n_test": len(parts.test)}
