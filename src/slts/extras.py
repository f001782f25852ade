"""Optional dependencies: imports whose errors name the pip extra."""

from __future__ import annotations

import importlib
from types import ModuleType
from typing import Any

__all__ = ["LazyModule", "import_extra"]


def import_extra(module: str, extra: str) -> ModuleType:
    """Import `module`, or raise an error that names the extra of slts that installs it.

    Parameters
    ----------
    module : str
        Dotted name of the module.
    extra : str
        Extra of slts that installs the module.

    Returns
    -------
    ModuleType
        The module.

    Raises
    ------
    ImportError
        If the module is not installed.
    """
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        package = module.partition(".")[0]
        if error.name is None or error.name.partition(".")[0] != package:
            # The module is installed, but one of its dependencies is not: keep that message.
            raise
        raise ImportError(
            f'{package} is required here but is not installed: pip install "slts[{extra}]"',
            name=error.name,
        ) from error


class LazyModule:
    """A module of an extra that is imported when one of its attributes is used."""

    def __init__(self, module: str, extra: str) -> None:
        self._module = module
        self._extra = extra

    def __getattr__(self, name: str) -> Any:
        return getattr(import_extra(self._module, self._extra), name)
