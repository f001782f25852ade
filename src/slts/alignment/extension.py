"""The native extension; where there is no build of it, what says so when it is needed.

Reductions on a GPU do without it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NoReturn

if TYPE_CHECKING:
    from slts.alignment import _native as native
else:
    try:
        from slts.alignment import _native as native
    except ImportError as error:
        _CAUSE = error

        class _Missing:
            def __getattr__(self, name: str) -> NoReturn:
                raise ImportError(
                    f"Alignments on the CPU need the native extension of slts, which cannot be "
                    f"imported here ({_CAUSE}): reinstall slts, or use device='cuda'.",
                    name="slts.alignment._native",
                )

        native = _Missing()

__all__ = ["native"]
