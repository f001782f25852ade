"""Alignments on an NVIDIA GPU, through CuPy.

kernel.cu    the recurrence and its reductions, compiled at run time
programs.py  the kernel compiled for one case: channels, precision, objective, band, reduction
backend.py   layouts, memory, launches and results

Importing these modules needs neither CuPy nor the native extension.
"""
