"""Alignments: one DTW recurrence, and what is kept of its paths.

native/        the recurrence and its reductions in C++, one source for every instruction set
extension.py   the native extension, or what says that there is none
targets.py     which instruction set runs
cuda/          the same on an NVIDIA GPU
band.py        which cells a path may use
settings.py    objective, band and precision, validated once
reductions.py  blocks of (series x landmark) pairs to arrays: scores, products, grouped, projected
pairwise.py    the public functions `align`, `similarity`, `aligned_products`
"""

from slts.alignment.aligner import Aligner, Alignment
from slts.alignment.band import Band, Itakura
from slts.alignment.cuda.device import DEVICES, check_device, require_device
from slts.alignment.pairwise import align, aligned_products, similarity
from slts.alignment.settings import AlignmentSettings, check_dtype

__all__ = [
    "DEVICES",
    "Aligner",
    "Alignment",
    "AlignmentSettings",
    "Band",
    "Itakura",
    "align",
    "aligned_products",
    "check_device",
    "check_dtype",
    "require_device",
    "similarity",
]
