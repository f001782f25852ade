"""Learning problems on arrays: arrays in, frozen solutions with their objective and gap out.

metric.py           hinge loss + penalty: the matrix M of the similarity
separator.py        hinge loss in an L1 ball: the weights of the landmarks, a vertex of the LP
ridge.py            squares with a free intercept, exact for what is left out; arrays.py multiplies
logdet.py           LDMLT: the step for a triplet, and rankings by distance
medoids.py          k-medoids of a matrix of dissimilarities
calibration.py      accuracy, probabilities and p-values from held-out decisions

Parts of the first two:

hinge.py            rows of a hinge loss, points and their lower bounds; working sets of rows
vertex.py           from an interior solution of the linear program to a vertex
penalties.py        penalties of the metric, and their smoothings
smoothed_newton.py  Newton steps for the penalties that are not the squared norm
native/             in C++: the interior-point method, and the Newton equations of each problem
"""

from slts.solvers.metric import (
    REGULARIZERS,
    SQUARED_NORMS,
    MetricSolution,
    problem_strength,
    solve_metric_path,
)
from slts.solvers.separator import SeparatorSolution, solve_separator_path

__all__ = [
    "REGULARIZERS",
    "SQUARED_NORMS",
    "MetricSolution",
    "SeparatorSolution",
    "problem_strength",
    "solve_metric_path",
    "solve_separator_path",
]
