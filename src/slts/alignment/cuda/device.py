"""Which device computes alignments and the sums over them."""

from __future__ import annotations

import logging
from typing import Any

import numpy as np

from slts.extras import import_extra

DEVICES = ("cpu", "cuda", "auto")
# Operations below which starting a GPU takes longer than the work: seconds of one core.
WORTH_A_GPU = 5e10

_LOGGER = logging.getLogger("slts")
_logged: set[str] = set()


def check_device(device: str, owner: str | None = None) -> None:
    """Raise an error unless `device` names a device. `owner` has the parameter."""
    if not isinstance(device, str) or device not in DEVICES:
        of = "" if owner is None else f" of {owner}"
        raise ValueError(
            f"The 'device' parameter{of} must be one of {DEVICES}. Got {device!r} instead."
        )


def require_device(device: str, owner: str) -> None:
    """Raise an error before any work if the device is unknown or the GPU is missing."""
    check_device(device, owner)
    if device == "cuda":
        require_gpu()


def runs_on_cuda(device: str, operations: float) -> bool:
    """Whether the GPU computes this many operations.

    ``"cuda"`` requires a GPU. ``"auto"`` uses a GPU for large work if there is one, and logs the
    choice once (logger "slts", level INFO).
    """
    check_device(device)
    if device == "cuda":
        require_gpu()
        return True
    if device == "cpu" or operations < WORTH_A_GPU:
        return False
    try:
        cupy = require_gpu()
    except (ImportError, RuntimeError) as error:
        _log_once(f"device='auto' uses the CPU: {error}")
        return False
    name = cupy.cuda.runtime.getDeviceProperties(cupy.cuda.Device().id)["name"]
    _log_once(f"device='auto' uses the GPU for large work: {name.decode()}")
    return True


def array_module(device: str, operations: float) -> Any:
    """Return CuPy if the GPU computes this many operations, else NumPy."""
    return require_gpu() if runs_on_cuda(device, operations) else np


def require_gpu() -> Any:
    """Return the module `cupy`, or raise an error that says what is missing."""
    cupy = import_extra("cupy", "cuda")
    cause = None
    try:
        if cupy.cuda.runtime.getDeviceCount() > 0:
            return cupy
    except cupy.cuda.runtime.CUDARuntimeError as error:
        cause = error
    raise RuntimeError(
        f"device='cuda' needs an NVIDIA GPU and its driver, but CuPy finds none"
        f"{f' ({cause})' if cause else ''}: use device='cpu'. CuPy itself is installed (extra "
        f"slts[cuda])."
    ) from cause


def _log_once(message: str) -> None:
    if message not in _logged:
        _logged.add(message)
        _LOGGER.info(message)
