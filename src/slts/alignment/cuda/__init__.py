"""Reductions on an NVIDIA GPU, through CuPy.

kernel.cu    the recurrence and its reductions, one source, compiled at run time
device.py    whether there is a GPU, and which device does the work
layout.py    landmarks sorted and packed side by side; weights by landmark (NumPy only)
programs.py  the kernel compiled for one case: channels, precision, objective, band, reduction
grid.py      who maps the blocks: memory, launches, results

Needs neither CuPy nor the native extension to be imported.
"""
