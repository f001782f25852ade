"""The learning problems: arrays in, frozen solutions out. Convex solves have a duality gap.

metric.py         hinge loss + penalty: the matrix M of the similarity
separator.py      hinge loss in an L1 ball: the weights of the landmarks, a vertex of the LP
logdet.py         LDMLT: the step for a triplet, and rankings by distance
loo_ridge.py      ridge regression on inner products, its penalty by exact leave-one-out
banded.py         symmetric matrices in band form: all penalties at once
anchor_span.py    coordinates of series in the span of some of them
blas.py           products of large matrices, in tiles for the threads of a fit, or on a GPU
local.py          local metrics by that regression, and their number of phases
calibration.py    accuracy, probabilities and p-values from held-out decision values

Metric and separator, for rows in memory and for rows in parts (on disk, on other machines):

hinge.py                  the rows of a hinge loss, problems, points with certificates
constraint_generation.py  solve on the rows that decide, certify on all rows
row_queries.py            what is asked about the rows, and the replies
native/                   in C++: interior-point method, its steps and the Newton equations of each
                          problem; matrices of the ridge regression
vertex.py                 from an interior solution of the LP to a vertex

Metrics under other penalties:

smoothed_newton.py  Newton steps on a smoothed problem
penalties.py        nuclear norm, L1 norm, squared norm of semi-definite matrices

"""

from slts.learning.constraint_generation import rows_in_memory, solve_together
from slts.learning.hinge import HingeExamples
from slts.learning.metric import (
    REGULARIZERS,
    MetricProblem,
    MetricSolution,
    metric_in_parts,
    one_vs_rest_features,
    solve_metric,
    solve_metric_path,
)
from slts.learning.separator import (
    SeparatorProblem,
    SeparatorSolution,
    separator_in_parts,
    solve_separator,
    solve_separator_path,
)

__all__ = [
    "REGULARIZERS",
    "HingeExamples",
    "MetricProblem",
    "MetricSolution",
    "SeparatorProblem",
    "SeparatorSolution",
    "metric_in_parts",
    "one_vs_rest_features",
    "rows_in_memory",
    "separator_in_parts",
    "solve_metric",
    "solve_metric_path",
    "solve_separator",
    "solve_separator_path",
    "solve_together",
]
