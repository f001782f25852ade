"""Ridge regression with a free intercept, and predictions of series by fits to all others."""

import numpy as np


def ridge(X, Y, weights, penalty):
    """Slope and intercept that minimise the weighted squares and the penalty of the slope."""
    A = np.hstack([X, np.ones((len(X), 1))])
    matrix = (A.T * weights) @ A + penalty * np.diag([*np.ones(X.shape[1]), 0.0])
    solution = np.linalg.solve(matrix, (A.T * weights) @ Y)
    return solution[:-1], solution[-1]


def left_out(X, Y, weights, penalty, parts=None):
    """Predict each series, or the series of each part, by the fit to all others."""
    parts = np.arange(len(Y)) if parts is None else parts
    predictions = np.empty_like(Y)
    for part in np.unique(parts):
        others = parts != part
        slope, intercept = ridge(X[others], Y[others], weights[others], penalty)
        predictions[~others] = X[~others] @ slope + intercept
    return predictions
