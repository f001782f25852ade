"""Landmarks: which training series the others are compared with.

selection.py  `select_landmarks` by chance, by medoids or by diversity; how many a fraction means
kmedoids.py   medoids of a matrix of dissimilarities, by eager swaps
reservoir.py  a uniform sample of series that pass by once, wherever and in whatever order
"""

from slts.landmarks.kmedoids import Medoids, find_medoids
from slts.landmarks.selection import resolve_count, select_landmarks

__all__ = ["Medoids", "find_medoids", "resolve_count", "select_landmarks"]
