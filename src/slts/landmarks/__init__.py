"""Landmarks: the training series that all series are compared with.

selection.py  `select_landmarks`: random, medoids or diverse; number of landmarks from a fraction
kmedoids.py   medoids of a dissimilarity matrix, by swaps
"""

from slts.landmarks.kmedoids import Medoids, find_medoids
from slts.landmarks.selection import choose_in_order, resolve_count, select_landmarks

__all__ = ["Medoids", "choose_in_order", "find_medoids", "resolve_count", "select_landmarks"]
