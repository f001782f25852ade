"""Problems for tests of solvers: rows with labels and weights, and independent optima."""

import numpy as np
from scipy.optimize import linprog

from slts.solvers.hinge import HingeRows

KINDS = [
    "noisy", "separable", "duplicated", "few values", "zero rows", "all zero", "weights",
    "heavy row", "float32", "huge", "small", "sorted labels",
]  # fmt: skip


def problem(kind, rng, m, p):
    """Return features, labels and weights that sum to one."""
    X = np.tanh(rng.normal(size=(m, p)) + 0.3 * rng.normal(size=(m, 1)))
    y = np.where(X @ rng.normal(size=p) > 0.0, 1.0, -1.0)
    X, w = X * {"all zero": 0.0, "huge": 1e8, "small": 1e-6}.get(kind, 1.0), np.ones(m)
    if kind != "separable":
        y[rng.random(m) < 0.1] *= -1.0
    if kind == "duplicated":
        chosen = rng.integers(max(1, m // 50), size=m)
        X, y = X[chosen], y[chosen]
    elif kind == "few values":
        X = np.round(2.0 * X) + 1e-9 * rng.normal(size=(m, p))
    elif kind == "zero rows":
        X[::3] = 0.0
    elif kind == "weights":
        w = 10.0 ** rng.uniform(-5, 1, size=m)
        w[::7] = 0.0
    elif kind == "heavy row":
        w[17] = 0.6 * m
    elif kind == "float32":
        X = X.astype(np.float32)
    elif kind == "sorted labels":
        order = np.argsort(y, kind="stable")
        X, y = X[order], y[order]
    return X, y, w / w.sum()


def hinge_rows(rng, m=60, n=5):
    """Noisy rows with random weights."""
    X = rng.uniform(-1.0, 1.0, size=(m, n))
    y = np.sign(X @ rng.normal(size=n))
    y[rng.random(m) < 0.2] *= -1.0
    return HingeRows.build(X, y, rng.dirichlet(np.full(m, 3.0)), "X")


def linear_program(signed, weights, radius):
    """Return coefficients and optimum of the separator's whole linear program, by HiGHS."""
    (m, n), unit = signed.shape, np.abs(signed).max() or 1.0
    A = signed / unit
    # In units of the mean weight: the tolerances of HiGHS are absolute.
    result = linprog(
        np.concatenate([np.zeros(2 * n), weights / weights.mean()]),
        A_ub=np.block([[-A, A, -np.eye(m)], [np.ones((1, 2 * n)), np.zeros((1, m))]]),
        b_ub=np.append(-np.ones(m), unit * radius),
        method="highs-ds",
    )
    return (result.x[:n] - result.x[n : 2 * n]) / unit, float(result.fun) * weights.mean()


def smallest_norm(signed):
    """Return the smallest L1 norm of coefficients whose margins are at least one, by HiGHS."""
    n = signed.shape[1]
    A = np.hstack([-signed, signed])
    return linprog(np.ones(2 * n), A_ub=A, b_ub=-np.ones(len(A)), method="highs").fun


def metric_problem(kind, rng, m=60, d=3):
    """Products Z and labels for a metric."""
    Z = rng.normal(size=(m, d, d))
    Z /= np.linalg.norm(Z.reshape(m, -1), axis=1).max()
    labels = np.where(rng.random(m) < 0.4, 1.0, -1.0)
    drawn = Z[rng.integers(max(1, m // 4), size=m)] if kind == "duplicates" else Z
    separable = np.where(Z.reshape(m, -1) @ rng.normal(size=d * d) > 0, 1.0, -1.0)
    return {
        "separable": (Z, separable),
        "opposite duplicates": (np.concatenate([Z, Z]), np.concatenate([labels, -labels])),
        "duplicates": (drawn, labels),
        "zero rows": (Z * (np.arange(m) % 3 > 0)[:, None, None], labels),
        "all zero": (np.zeros_like(Z), labels),
        "collinear": (np.ones((m, d, d)) * 0.3 + 0.01 * Z, labels),
        "ill-conditioned": (Z * 10.0 ** -np.linspace(0, 6, d * d).reshape(d, d), labels),
        "one class": (Z, np.ones(m)),
        "few rows": (Z[:7], labels[:7]),
        "one channel": (Z[:, :1, :1], labels),
    }.get(kind, (Z, labels))
