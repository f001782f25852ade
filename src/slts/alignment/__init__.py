"""Alignments: one DTW recurrence, and reductions of its paths.

native/       the recurrence and its reductions in C++, one source for all instruction sets
cuda/         the same on an NVIDIA GPU
settings.py   objective, band, normalisation, precision; layouts of landmarks; the device
cpu.py        the native extension; blocks of (series, landmarks) mapped over it
aligner.py    `Aligner`: similarities, products, sums, projections and paths of a set of landmarks
pairwise.py   the public functions `align`, `similarity`, `distance`, `aligned_products`
"""

from slts.alignment.aligner import Aligner, Alignment
from slts.alignment.pairwise import align, aligned_products, distance, similarity
from slts.alignment.settings import (
    DEVICES,
    AlignmentSettings,
    Band,
    Itakura,
    array_module,
    check_device,
    require_device,
)

__all__ = [
    "DEVICES",
    "Aligner",
    "Alignment",
    "AlignmentSettings",
    "Band",
    "Itakura",
    "align",
    "aligned_products",
    "array_module",
    "check_device",
    "distance",
    "require_device",
    "similarity",
]
