"""Plots with matplotlib (extra ``plots``). Each function draws on `ax` or `figure`, and returns it.

series.py  two aligned series with their path; contributions to a decision; similarity space
model.py   metrics of a class, weights of its landmarks, accuracy by landmarks, snippets
axes.py    shared axes, colours and labels
"""

from slts.plots.model import (
    plot_accuracy_by_landmarks,
    plot_landmark_weights,
    plot_metric,
    plot_snippets,
)
from slts.plots.series import plot_alignment, plot_contributions, plot_similarity_space

__all__ = [
    "plot_accuracy_by_landmarks",
    "plot_alignment",
    "plot_contributions",
    "plot_landmark_weights",
    "plot_metric",
    "plot_similarity_space",
    "plot_snippets",
]
