"""The learning problems. Arrays in, frozen solutions out; convex solves carry a duality gap.

metric.py         hinge loss + squared Frobenius norm: the matrix M of the similarity
separator.py      hinge loss in an L1 ball: the weights of the landmarks, a vertex of the LP
landmark.py       both, one-vs-rest, from one set of alignments: BBS and SLTS
logdet.py         LDMLT: a Mahalanobis matrix from triplets of series
loo_ridge.py      ridge regression on inner products, its penalty by exact leave-one-out
local.py          local metrics by that regression, and how many phases they have
calibration.py    probabilities from held-out decision values

Metric and separator share an interior-point method:

hinge.py          the rows of a hinge loss, and what a regularizer must offer
equal_rows.py     one row, with the sum of the weights, for rows that are equal
working_set.py    solve on the rows that decide, certify on all of them
interior.py       predictor-corrector steps
ridge.py          Newton equations of the squared norm
l1ball.py         Newton equations of the L1 ball
smallest_norm.py  the smallest separator when the loss can be zero
vertex.py         from an interior solution of the LP to a vertex

Where the rows lie in parts, on disk or on other machines, problems in memory bound the whole:

partitioned.py    the metric and the separator
landmark_parts.py both, one-vs-rest, from alignments in parts
part_queries.py   what a solver asks of every part, and the answers
part_search.py    which rows come to the solver, and when the gap is closed

Metrics under other penalties come from Newton steps on a smoothed problem:

regularized_metric.py  hinge loss + nuclear norm, L1 norm or squared norm of semi-definite matrices
smoothed.py            the steps, less and less smoothed, with a bound at each width
penalties.py           the penalties, their smoothings and their dual bounds
"""

from slts.learning.metric import (
    MetricSolution,
    one_vs_rest_features,
    solve_metric,
    solve_metric_path,
)
from slts.learning.regularized_metric import REGULARIZERS, solve_regularized_path
from slts.learning.separator import SeparatorSolution, solve_separator, solve_separator_path

__all__ = [
    "REGULARIZERS",
    "MetricSolution",
    "SeparatorSolution",
    "one_vs_rest_features",
    "solve_metric",
    "solve_metric_path",
    "solve_regularized_path",
    "solve_separator",
    "solve_separator_path",
]
