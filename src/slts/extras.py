"""Import of optional dependencies, with an error that names the pip extra."""

from __future__ import annotations

import importlib
from types import ModuleType

__all__ = ["import_extra"]


def import_extra(module: str, extra: str) -> ModuleType:
    """Import `module`, or say which extra of slts installs it.

    Parameters
    ----------
    module : str
        Dotted name of the module.
    extra : str
        Extra of slts whose installation brings the module.

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
            # The module is there; something it needs is not. Its own message is the useful one.
            raise
        raise ImportError(
            f'{package} is needed for this and is not installed: pip install "slts[{extra}]"',
            name=error.name,
        ) from error
