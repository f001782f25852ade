"""Whether there is a GPU, and which device does the work."""

from __future__ import annotations

import logging
from typing import Any

from slts.extras import import_extra

DEVICES = ("cpu", "cuda", "auto")
# Additions and multiplications below which starting up a GPU does not pay: seconds of one core.
WORTH_A_GPU = 5e10

_LOGGER = logging.getLogger("slts")
_said: set[str] = set()


def check_device(device: str, owner: str | None = None) -> None:
    """Refuse what names no device; `owner` is whose parameter it is."""
    if not isinstance(device, str) or device not in DEVICES:
        of = "" if owner is None else f" of {owner}"
        raise ValueError(
            f"The 'device' parameter{of} must be one of {DEVICES}. Got {device!r} instead."
        )


def require_device(device: str, owner: str) -> None:
    """Refuse what names no device, and a GPU that is not there: before any work, not amid it."""
    check_device(device, owner)
    if device == "cuda":
        require_gpu()


def runs_on_cuda(device: str, operations: float) -> bool:
    """Whether work of so many operations goes to the GPU.

    ``"cuda"`` must find one; ``"auto"`` takes it for large work if it is there, and logs its first
    choice (logger "slts", level INFO).
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
        _say_once(f"device='auto' uses the CPU: {error}")
        return False
    name = cupy.cuda.runtime.getDeviceProperties(cupy.cuda.Device().id)["name"]
    _say_once(f"device='auto' uses the GPU for large work: {name.decode()}")
    return True


def require_gpu() -> Any:
    """Give the module `cupy`, or say what is missing."""
    cupy = import_extra("cupy", "cuda")
    try:
        count = cupy.cuda.runtime.getDeviceCount()
    except cupy.cuda.runtime.CUDARuntimeError as error:
        raise RuntimeError(_no_gpu(f" ({error})")) from error
    if count == 0:
        raise RuntimeError(_no_gpu(""))
    return cupy


def _no_gpu(why: str) -> str:
    return (
        f"device='cuda' needs an NVIDIA GPU and its driver, and CuPy finds none{why}: use "
        f"device='cpu'. CuPy itself is there (the extra slts[cuda])."
    )


def _say_once(message: str) -> None:
    if message not in _said:
        _said.add(message)
        _LOGGER.info(message)
