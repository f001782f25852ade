"""Units of the other methods: 1NN and SVM on similarities, LDMLT; and the facts of Table 1."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.svm import LinearSVC
from sklearn.utils.extmath import randomized_svd

from slts._typing import AnyArray, FloatArray, IntArray
from slts.alignment import AlignmentSettings
from slts.alignment.reductions import similarities
from slts.estimators import LDMLTClassifier
from slts.estimators.splitting import make_splits
from slts.series import SeriesBatch
from slts.study.landmark_work import accuracy_of
from slts.study.problems import Dataset, Problem
from slts.study.protocol import Protocol, Unit, seed_of

# Similarities of more training series than this are computed in single precision and projected.
_LARGE = 2000


def dataset_facts(unit: Unit, dataset: Dataset) -> dict[str, Any]:
    """Counts of a data set, as Table 1 has them."""
    lengths = dataset.batch.lengths
    return {
        "facts": {
            "dataset": unit.dataset,
            "instances": len(dataset.batch),
            "shortest": int(lengths.min()),
            "longest": int(lengths.max()),
            "features": dataset.batch.n_channels,
            "classes": len(np.unique(dataset.labels)),
        }
    }


def similarity_scores(unit: Unit, problem: Problem, protocol: Protocol) -> dict[str, Any]:
    """1NN, and the SVM for each of the unit's splits, from one matrix of similarities."""
    large = len(problem.train) > _LARGE
    settings = AlignmentSettings(normalize=False, dtype="float32" if large else "float64")
    to_train = similarities(problem.test, problem.train, settings, n_jobs=1)
    nearest = problem.codes[to_train.argmax(axis=1)]
    right = int(np.sum(nearest == problem.test_codes))
    base = {"dataset": unit.dataset, "n_train": len(problem.train)}
    scores: list[dict[str, Any]] = [
        {
            "method": "1nn",
            "split": unit.splits[0],
            **base,
            "accuracy": 100.0 * right / len(problem.test),
            "n_test": len(problem.test),
        }
    ]
    columns = _columns(unit, len(problem.train), protocol)
    landmarks = problem.train if columns is None else problem.train[columns]
    known = to_train if columns is None else to_train[:, columns]
    features, test_features = _features(problem.train, landmarks, known, settings, protocol)
    for split in unit.splits:
        seed = seed_of("tuning", unit.dataset, split)
        found = _tuned_svm(features, problem.codes, test_features, protocol, seed)
        scores.append(
            {
                "method": "svm",
                "split": split,
                **base,
                **accuracy_of(found.pop("decisions"), problem.test_codes),
                **found,
            }
        )
    return {"scores": scores}


def ldmlt_scores(unit: Unit, problem: Problem, protocol: Protocol) -> dict[str, Any]:
    """LDMLT with a nearest neighbour."""
    split = unit.splits[0]
    model = LDMLTClassifier(
        n_cycles=protocol.ldmlt_cycles,
        ranking_limit=protocol.ldmlt_ranking,
        calibration_size=None,
        n_jobs=1,
        random_state=seed_of("ldmlt", unit.dataset, split),
    )
    model.fit(problem.train, problem.codes)
    right = int(np.sum(model.predict(problem.test) == problem.test_codes))
    return {
        "scores": [
            {
                "method": "ldmlt",
                "dataset": unit.dataset,
                "split": split,
                "n_train": len(problem.train),
                "accuracy": 100.0 * right / len(problem.test),
                "n_test": len(problem.test),
                "cycles": model.report_.n_cycles,
                "disorder": model.report_.disorder[-1],
            }
        ]
    }


def _columns(unit: Unit, n_train: int, protocol: Protocol) -> IntArray | None:
    limit = protocol.svm_columns
    if limit is None or n_train <= max(limit, _LARGE):
        return None
    rng = np.random.RandomState(seed_of("columns", unit.dataset))
    return np.sort(rng.permutation(n_train)[:limit])


def _features(
    train: SeriesBatch,
    landmarks: SeriesBatch,
    known: AnyArray,
    settings: AlignmentSettings,
    protocol: Protocol,
) -> tuple[FloatArray, FloatArray]:
    """Similarities of training and test series; of many, their leading singular directions.

    The penalty of the SVM does not see rotations, so projection on all directions would change
    nothing; the ones left out carry next to nothing of the similarities.
    """
    K = similarities(train, landmarks, settings, n_jobs=1)
    if K.shape[1] <= max(protocol.svm_rank, _LARGE):
        return K.astype(np.float64, copy=False), known.astype(np.float64, copy=False)
    left, values, right = randomized_svd(K, protocol.svm_rank, n_iter=4, random_state=0)
    return (left * values).astype(np.float64), (known @ right.T).astype(np.float64)


def _tuned_svm(
    features: FloatArray, codes: IntArray, test: FloatArray, protocol: Protocol, seed: int
) -> dict[str, Any]:
    ((train, held_out),) = make_splits(protocol.tuning_share, codes, random_state=seed)
    accuracies = []
    for C in protocol.cs:
        values = decide_svm(features[train], codes[train], features[held_out], C)
        accuracies.append(accuracy_of(values, codes[held_out])["accuracy"])
    best = int(np.argmax(accuracies))
    return {
        "decisions": decide_svm(features, codes, test, protocol.cs[best]),
        "C": protocol.cs[best],
        "validation": accuracies[best] / 100.0,
    }


def decide_svm(features: FloatArray, codes: IntArray, others: FloatArray, C: float) -> FloatArray:
    """Decision values of a linear SVM, one column per class; one in all if there are two."""
    # As SimilaritySVC. The primal solver needs no seed and does not slow down as C grows.
    svm = LinearSVC(C=C, dual=False, fit_intercept=False).fit(features, codes)
    values: FloatArray = np.asarray(svm.decision_function(others))
    return values[:, np.newaxis] if values.ndim == 1 else values
