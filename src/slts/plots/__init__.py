"""Pictures (extra ``plots``: matplotlib). Each function draws on `ax` and returns it.

alignment.py    two series, their affinity matrix and the path through it
model.py        the metrics of a class, the weights of its landmarks
explanation.py  contributions of steps and channels to one decision
space.py        series as points: principal components of their similarities
curves.py       accuracy against the number of landmarks
goodness.py     how good a similarity is, over margins and landmarks
axes.py         axes, colours and markers they share
"""

from slts.plots.alignment import plot_alignment
from slts.plots.curves import plot_accuracy_by_landmarks
from slts.plots.explanation import plot_contributions
from slts.plots.goodness import plot_goodness
from slts.plots.model import plot_landmark_weights, plot_local_metrics, plot_metric
from slts.plots.space import plot_similarity_space

__all__ = [
    "plot_accuracy_by_landmarks",
    "plot_alignment",
    "plot_contributions",
    "plot_goodness",
    "plot_landmark_weights",
    "plot_local_metrics",
    "plot_metric",
    "plot_similarity_space",
]
