"""The reverse of `slts.report.packing`."""

import base64

import numpy as np


def unpack(packed):
    """The array given to `pack`, flat and rounded."""
    bits, scale, data = packed.split(" ")
    integers = np.frombuffer(base64.b64decode(data), dtype=f"<i{int(bits) // 8}")
    return np.where(integers == np.iinfo(integers.dtype).min, np.nan, integers * float(scale))


def path_of(moves):
    """The path given to `moves`, in steps of length one, shape (length, 2)."""
    steps = np.array([divmod(int(move), 2) for move in moves], dtype=np.int64).reshape(-1, 2)
    return np.concatenate([np.zeros((1, 2), dtype=np.int64), np.cumsum(steps, axis=0)])
