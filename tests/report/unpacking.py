"""The reverse of `slts.report.packing`."""

import base64
import string

import numpy as np

ALPHABET = string.ascii_uppercase + string.ascii_lowercase + string.digits + "+/"


def unpack(packed):
    """The arrays given to `pack` or `pack_integers`, flat; those of `pack` are rounded."""
    flat = np.frombuffer(base64.b64decode(packed["data"]), dtype=f"<i{packed['bits'] // 8}")
    parts = np.split(flat, np.cumsum(packed["sizes"])[:-1])
    return [part * scale for part, scale in zip(parts, packed["scales"], strict=True)]


def unpack_path(text):
    """The path given to `pack_path`, in steps of length one, shape (length, 2)."""
    codes = np.array([ALPHABET.index(letter) for letter in text], dtype=np.int64)
    moves = np.stack([codes // 16, codes // 4 % 4, codes % 4], axis=1).ravel()
    moves = moves[moves > 0]
    steps = np.stack([moves // 2, moves % 2], axis=1)
    return np.concatenate([np.zeros((1, 2), dtype=np.int64), np.cumsum(steps, axis=0)])
