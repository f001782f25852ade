"""Which instruction set the kernel runs on."""

from __future__ import annotations

import os
from dataclasses import dataclass
from functools import cache

from slts.alignment.extension import native


@dataclass(frozen=True, slots=True)
class Target:
    """One instruction set: its index in the extension and its lanes by precision."""

    index: int
    name: str
    width_float32: int
    width_float64: int

    def width(self, dtype: str) -> int:
        """Landmarks handled in lockstep."""
        return self.width_float32 if dtype == "float32" else self.width_float64


@cache
def available_targets() -> tuple[Target, ...]:
    """Instruction sets this processor can run, best first."""
    return tuple(Target(k, *row) for k, row in enumerate(native.targets()))


def selected_target() -> Target:
    """The best one, or the one that the environment variable ``SLTS_ISA`` names."""
    index = native.selected_target()
    if index >= 0:
        return available_targets()[index]
    names = ", ".join(target.name for target in available_targets())
    wanted = os.environ.get("SLTS_ISA")
    raise ValueError(f"SLTS_ISA must be one of {names} on this machine. Got {wanted!r} instead.")
