"""Learning problems on arrays: arrays in, frozen solutions with their objective and gap out.

metric.py       hinge loss + penalty: the matrix M of the similarity
separator.py    hinge loss in an L1 ball: the weights of the landmarks, a vertex of the LP
ridge.py        squares with a free intercept, exact for what is left out; products of matrices
logdet.py       LDMLT: the step for a triplet, and rankings by distance
calibration.py  accuracy, probabilities and p-values from held-out decisions

Parts of the first two:

hinge.py        rows of a hinge loss, points and bounds; working sets of rows; the squared norm
penalties.py    penalties that are not smooth, and Newton steps for them
native/         in C++: the interior-point method, and the Newton equations of each problem
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
