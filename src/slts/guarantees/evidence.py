"""What bounds need to know of a fitted classifier over landmarks and of a sample."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from slts._typing import FloatArray, IntArray
from slts.alignment.reductions import products
from slts.estimators.landmark_classifier import LandmarkClassifier
from slts.learning.regularized_metric import penalty_of
from slts.series import SeriesBatch

# Aligned products held at once.
_BLOCK_BYTES = 64 * 2**20


@dataclass(frozen=True)
class Problem:
    """One one-vs-rest problem of a fitted classifier.

    Attributes
    ----------
    positive
        Its class.
    metric, coef
        M and the weights of the landmarks.
    gamma, lam
        Parameters; lam is None where no metric was learned.
    gap, objective
        Of the metric problem; None where there was none.
    regularizer
        Name of its penalty.
    """

    positive: Any
    code: int
    metric: FloatArray
    coef: FloatArray
    gamma: float
    lam: float | None
    gap: float | None
    objective: float | None
    regularizer: str = "frobenius"

    @property
    def penalty(self) -> float:
        """The penalty of M, without lam."""
        return penalty_of(self.metric, self.regularizer)

    @property
    def norm(self) -> float:
        """||M||_F."""
        return float(np.linalg.norm(self.metric))

    @property
    def operator_norm(self) -> float:
        """||M||_op."""
        return float(np.linalg.norm(self.metric, 2))


@dataclass(frozen=True)
class Evidence:
    """A sample as every problem of the classifier sees it.

    Attributes
    ----------
    labels
        +1 or -1, shape (problems, series).
    margins
        l_i <M, Z_i>/gamma, shape (problems, series).
    squares
        ||Z_i||_F^2, shape (problems, series).
    similarities
        K_M, shape (problems, series, landmarks).
    product_squares
        ||T_ij||_F^2, shape (series, landmarks).
    """

    labels: FloatArray
    margins: FloatArray
    squares: FloatArray
    similarities: FloatArray
    product_squares: FloatArray

    @property
    def m(self) -> int:
        """Number of series."""
        return int(self.labels.shape[1])

    @property
    def losses(self) -> FloatArray:
        """Hinge losses of M, shape (problems, series)."""
        return np.maximum(0.0, 1.0 - self.margins)

    def take(self, indices: IntArray) -> Evidence:
        """The same for some of the series."""
        return Evidence(
            self.labels[:, indices],
            self.margins[:, indices],
            self.squares[:, indices],
            self.similarities[:, indices],
            self.product_squares[indices],
        )


def problems_of(model: LandmarkClassifier) -> list[Problem]:
    """The one-vs-rest problems of a fitted classifier, one for two classes."""
    two = len(model.classes_) == 2
    chosen = getattr(model, "best_params_", {})
    gamma = float(chosen.get("gamma", getattr(model, "gamma", np.nan)))
    lam = chosen.get("lam", getattr(model, "lam", None))
    solved = [report for report in model.reports_ if report.stage == "metric"]
    return [
        Problem(
            positive=model.classes_[1 if two else c],
            code=1 if two else c,
            metric=np.asarray(model.metrics_[c]),
            coef=model.coef_[c],
            gamma=gamma,
            lam=None if lam is None else float(lam),
            gap=solved[c].gap if solved else None,
            objective=solved[c].objective if solved else None,
            regularizer=getattr(model, "regularizer", "frobenius"),
        )
        for c in range(len(model.coef_))
    ]


def gather(
    model: LandmarkClassifier, batch: SeriesBatch, codes: IntArray, landmark_codes: IntArray
) -> Evidence:
    """Align a sample with the landmarks, block by block, and keep what bounds need."""
    problems = problems_of(model)
    rows, landmarks = model.row_map_(batch), model.row_map_(model.landmarks_)
    m, n, d = len(rows), len(landmarks), rows.n_channels
    metrics = np.stack([problem.metric for problem in problems]).reshape(len(problems), d * d)
    gammas = np.array([problem.gamma for problem in problems])
    signs = np.stack([np.where(landmark_codes == p.code, 1.0, -1.0) for p in problems]) / n
    labels = np.stack([np.where(codes == p.code, 1.0, -1.0) for p in problems])
    scores, squares = np.empty((m, len(problems))), np.empty((m, len(problems)))
    similarities = np.empty((len(problems), m, n))
    product_squares = np.empty((m, n))
    step = max(1, _BLOCK_BYTES // (8 * n * d * d))
    for begin in range(0, m, step):
        part = slice(begin, begin + step)
        T = products(
            rows[part], landmarks, model._settings(), device=model.device, n_jobs=model.n_jobs
        ).astype(np.float64, copy=False)
        flat = T.reshape(len(T), n, d * d)
        Z = signs @ flat
        scores[part] = np.einsum("ice,ce->ic", Z, metrics)
        squares[part] = np.einsum("ice,ice->ic", Z, Z)
        similarities[:, part] = np.moveaxis(flat @ metrics.T, 2, 0)
        product_squares[part] = np.einsum("ije,ije->ij", flat, flat)
    # Rounding may carry the norm of a unit matrix beyond 1.
    squares = np.minimum(squares, 1.0)
    margins = labels * scores.T / gammas[:, np.newaxis]
    return Evidence(labels, margins, squares.T, similarities, product_squares)
