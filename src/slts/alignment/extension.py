"""The native extension, and the instruction sets it can use."""

from __future__ import annotations

import os
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, NoReturn

if TYPE_CHECKING:
    from slts.alignment import _native as native
else:
    try:
        from slts.alignment import _native as native
    except ImportError as error:
        # Alignments on a GPU work without it, so the import of slts must not fail.
        _CAUSE = error

        class _Missing:
            def __getattr__(self, name: str) -> NoReturn:
                raise ImportError(
                    f"Alignments on the CPU need the native extension of slts, which cannot be "
                    f"imported ({_CAUSE}): reinstall slts, or use device='cuda'.",
                    name="slts.alignment._native",
                )

        native = _Missing()

__all__ = ["Target", "available_targets", "native", "selected_target"]


@dataclass(frozen=True, slots=True)
class Target:
    """An instruction set: index in the extension, name, and lanes per precision."""

    index: int
    name: str
    width_float32: int
    width_float64: int

    def width(self, dtype: str) -> int:
        """Return the number of landmarks that are aligned in lockstep."""
        return self.width_float32 if dtype == "float32" else self.width_float64


@cache
def available_targets() -> tuple[Target, ...]:
    """Instruction sets that this processor can run, best first."""
    return tuple(Target(k, *row) for k, row in enumerate(native.targets()))


def selected_target() -> Target:
    """Return the best target, or the one named by the environment variable ``SLTS_ISA``."""
    index = native.selected_target()
    if index >= 0:
        return available_targets()[index]
    names = ", ".join(target.name for target in available_targets())
    wanted = os.environ.get("SLTS_ISA")
    raise ValueError(f"SLTS_ISA must be one of {names} on this machine. Got {wanted!r} instead.")
