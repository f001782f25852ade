"""Pictures (extra ``plots``: matplotlib). Each function draws on `ax` and returns it.

alignment.py  two series, their affinity matrix and the path through it
"""

from slts.plots.alignment import plot_alignment

__all__ = ["plot_alignment"]
