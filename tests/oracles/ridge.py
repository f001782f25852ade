"""Ridge regression with a free intercept, and leave-one-out by fits to all other series."""

import numpy as np


def ridge(X, Y, weights, penalty):
    """Slope and intercept that minimise the weighted squares and the penalty of the slope."""
    A = np.hstack([X, np.ones((len(X), 1))])
    matrix = (A.T * weights) @ A + penalty * np.diag([*np.ones(X.shape[1]), 0.0])
    solution = np.linalg.solve(matrix, (A.T * weights) @ Y)
    return solution[:-1], solution[-1]


def left_out(X, Y, weights, penalty):
    """Predict each series by the fit to all others."""
    predictions = np.empty_like(Y)
    for i in range(len(X)):
        others = np.arange(len(X)) != i
        slope, intercept = ridge(X[others], Y[others], weights[others], penalty)
        predictions[i] = X[i] @ slope + intercept
    return predictions
