"""Problems for tests of solvers: rows with labels and weights, and independent optima."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy.optimize import linprog
from scipy.sparse import csr_matrix, hstack, identity, vstack
from slts.solvers.row_queries import Query

from slts.solvers.hinge import HingeExamples

Part = tuple[np.ndarray, np.ndarray, np.ndarray]


def answer(query: Query, rows: Sequence[np.ndarray], step: int = 1 << 40, part: int = 0) -> Any:
    """Return the reply of a part, asked in blocks of ``step`` rows."""
    replies = [
        query.answer(HingeExamples(*(array[at : at + step] for array in rows)), part, at)
        for at in range(0, max(1, len(rows[1])), step)
    ]
    return type(replies[0]).merged(replies)  # type: ignore[arg-type]


def problem(kind: str, rng: np.random.Generator, m: int, p: int) -> Part:
    X = np.tanh(rng.normal(size=(m, p)) + 0.3 * rng.normal(size=(m, 1)))
    y = np.where(X @ rng.normal(size=p) > 0.0, 1.0, -1.0)
    w = np.ones(m)
    if kind != "separable":
        y[rng.random(m) < 0.1] *= -1.0
    if kind == "duplicated":
        chosen = rng.integers(max(1, m // 50), size=m)
        X, y = X[chosen], y[chosen]
    elif kind == "few values":
        X = np.round(2.0 * X) + 1e-9 * rng.normal(size=(m, p))
    elif kind == "zero rows":
        X[::3] = 0.0
    elif kind == "all zero":
        X[:] = 0.0
    elif kind == "weights":
        w = 10.0 ** rng.uniform(-5, 1, size=m)
        w[::7] = 0.0
    elif kind == "heavy row":
        w[17] = 0.6 * m
    elif kind == "float32":
        X = X.astype(np.float32)
    elif kind == "huge":
        X *= 1e8
    elif kind == "small":
        X *= 1e-6
    elif kind == "sorted labels":
        order = np.argsort(y, kind="stable")
        X, y = X[order], y[order]
    return X, y, w / w.sum()


def full_program(rows: Part, gamma: float) -> float:
    """Return the optimum of the whole linear program, by HiGHS."""
    X, y, w = rows
    (m, p), A = X.shape, X * y[:, None]
    upper = vstack(
        [
            hstack([csr_matrix(-A), csr_matrix(A), -identity(m)]),
            csr_matrix(np.append(np.ones(2 * p), np.zeros(m))),
        ]
    )
    # In units of the mean weight: the tolerances of HiGHS are absolute.
    cost, right = np.append(np.zeros(2 * p), m * w), np.append(-np.ones(m), 1.0 / gamma)
    return float(linprog(cost, A_ub=upper, b_ub=right, method="highs").fun) / m


def one_class_of_equal_rows(rng: np.random.Generator, m: int, dtype: Any = np.float64) -> Part:
    """Two noisy classes, and one whose rows are all the same: two in five."""
    X = 0.3 * rng.normal(size=(m, 16))
    y = np.where(rng.random(m) < 0.5, 1.0, -1.0)
    X[:, 0] += 0.3 * y
    X[:, 15] = 0.0
    same = rng.random(m) < 0.4
    X[same], y[same] = np.eye(16)[15], 1.0
    return X.astype(dtype), y, np.full(m, 1.0 / m)


def merged_by_hand(rows: Part) -> Part:
    X, y, w = rows
    signed, owner = np.unique(X.astype(np.float64) * y[:, None], axis=0, return_inverse=True)
    return signed, np.ones(len(signed)), np.bincount(owner.ravel(), weights=w)
