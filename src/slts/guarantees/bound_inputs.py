"""The inputs of the bounds: what they need to know of a fitted classifier and of a sample."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.linalg import lapack, qr

from slts._typing import AnyArray, FloatArray, IntArray
from slts.alignment import Aligner
from slts.estimators.landmark_classifier import LandmarkClassifier
from slts.series import SeriesBatch

# Size of the aligned products held in memory at once.
_BLOCK_BYTES = 64 * 2**20
# A margin within this distance of one may be tight. The rebuilt weights decide.
_TIGHT = 1e-6
# Weights agree if they differ by less than this share of their norm.
_AGREE = 1e-6
_BINDING = 1e-9


def parameters_of(model: LandmarkClassifier) -> tuple[float, float | None]:
    """Return gamma and lam of a fitted classifier; lam is None where no metric was learned."""
    return model.fit_params_["gamma"], model.fit_params_.get("lam")


def signs_of(labels: AnyArray, classes: AnyArray) -> FloatArray:
    """+1 where a label is the class of a one-vs-rest problem, else -1; (problems, labels)."""
    return np.stack([np.where(labels == positive, 1.0, -1.0) for positive in classes])


@dataclass(frozen=True)
class BoundInputs:
    """Margins, similarities and sizes of a sample under every one-vs-rest problem.

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

    def take(self, indices: IntArray) -> BoundInputs:
        """The inputs of some of the series."""
        return BoundInputs(
            self.labels[:, indices],
            self.margins[:, indices],
            self.squares[:, indices],
            self.similarities[:, indices],
            self.product_squares[indices],
        )


def bound_inputs(
    model: LandmarkClassifier, batch: SeriesBatch, labels: AnyArray, landmark_labels: AnyArray
) -> BoundInputs:
    """Align a sample with the landmarks, block by block, and keep what the bounds need."""
    rows, landmarks = model.row_map_(batch), model.row_map_(model.landmarks_)
    m, n, d, n_problems = len(rows), len(landmarks), rows.n_channels, len(model.coef_)
    metrics = np.asarray(model.metrics_).reshape(n_problems, d * d)
    landmark_signs = signs_of(landmark_labels, model.positive_classes_) / n
    scores, squares = np.empty((m, n_problems)), np.empty((m, n_problems))
    similarities, product_squares = np.empty((n_problems, m, n)), np.empty((m, n))
    step = max(1, _BLOCK_BYTES // (8 * n * d * d))
    aligner = Aligner(landmarks, model.row_map_.settings, model.device, model.n_jobs)
    for begin in range(0, m, step):
        part = slice(begin, begin + step)
        T = aligner.products(rows[part])
        flat = T.astype(np.float64, copy=False).reshape(len(T), n, d * d)
        Z = landmark_signs @ flat
        scores[part] = np.einsum("ice,ce->ic", Z, metrics)
        squares[part] = np.einsum("ice,ice->ic", Z, Z)
        similarities[:, part] = np.moveaxis(flat @ metrics.T, 2, 0)
        product_squares[part] = np.einsum("ije,ije->ij", flat, flat)
    signs = signs_of(labels, model.positive_classes_)
    margins = signs * scores.T / parameters_of(model)[0]
    # Rounding may push the norm of a unit matrix above 1.
    return BoundInputs(signs, margins, np.minimum(squares, 1.0).T, similarities, product_squares)


@dataclass(frozen=True)
class Compression:
    """A separator as a function of a few examples.

    Attributes
    ----------
    coef
        The rebuilt weights of all landmarks.
    used
        Landmarks with a nonzero weight.
    tight
        Examples with margin one that determine the weights, given `used` and, if `radius_binds`,
        the signs.
    radius_binds
        Whether ||coef||_1 = 1/gamma is one of the equations.
    errors
        Errors on all other examples. A decision value of zero is an error.
    """

    coef: FloatArray
    used: IntArray
    tight: IntArray
    radius_binds: bool
    errors: int


def compress(
    K: FloatArray, labels: FloatArray, coef: FloatArray, gamma: float
) -> Compression | None:
    """Find examples that determine the weights, rebuild the weights from them, and compare.

    Parameters
    ----------
    K
        Similarities of the examples to the landmarks.
    labels
        +1 or -1.
    coef
        Weights of the landmarks, a vertex of the linear program of the separator.
    gamma
        Margin of the separator.

    Returns
    -------
    Compression or None
        None if the weights cannot be rebuilt. There is no compression bound then.
    """
    used = np.flatnonzero(coef)
    norm = float(np.sum(np.abs(coef)))
    if len(used) == 0:
        return None
    binds = norm * gamma >= 1.0 - _BINDING
    signs = np.sign(coef[used]) if binds else None
    rows = labels[:, np.newaxis] * K[:, used]
    near = np.flatnonzero(np.abs(rows @ coef[used] - 1.0) <= _TIGHT)
    needed = len(used) - int(binds)
    tight = near[_independent_rows(rows[near], signs, needed)]
    if len(tight) < needed:
        return None
    values = _solve(rows[tight], signs, 1.0 / gamma)
    if values is None or np.abs(values - coef[used]).max() > _AGREE * norm:
        return None
    rebuilt = np.zeros_like(coef)
    rebuilt[used] = values
    wrong = rows @ values <= 0.0
    errors = int(np.count_nonzero(wrong) - np.count_nonzero(wrong[tight]))
    return Compression(rebuilt, used, np.sort(tight), binds, errors)


def _independent_rows(rows: FloatArray, signs: FloatArray | None, count: int) -> IntArray:
    """Up to `count` rows that are linearly independent of each other and of `signs`."""
    if count == 0 or len(rows) == 0:
        return np.empty(0, dtype=np.int64)
    if signs is not None:
        rows = rows - np.outer(rows @ signs, signs) / (signs @ signs)
    pivots = qr(rows.T, mode="r", pivoting=True)[1]
    return np.asarray(pivots[:count], dtype=np.int64)


def _solve(rows: FloatArray, signs: FloatArray | None, radius: float) -> FloatArray | None:
    """Weights with margin one on `rows` and, if their signs are given, with L1 norm `radius`."""
    right = np.ones(len(rows))
    if signs is not None:
        rows, right = np.vstack([rows, signs]), np.append(right, radius)
    # Similarities and signs have different units.
    scale = np.abs(rows).max(axis=1)
    if not np.all(scale > 0.0):
        return None
    _, _, values, info = lapack.dgesv(rows / scale[:, np.newaxis], right / scale)
    return np.asarray(values) if info == 0 else None
