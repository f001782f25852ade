"""Optional dependencies: imported with an error that names the pip extra, or used if in use."""

from __future__ import annotations

import importlib
import sys
from types import ModuleType
from typing import Any

__all__ = ["LazyModule", "dask_client", "import_extra", "running_client"]


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


class LazyModule:
    """A module of an extra that is imported when one of its attributes is used."""

    def __init__(self, module: str, extra: str) -> None:
        self._module = module
        self._extra = extra

    def __getattr__(self, name: str) -> Any:
        return getattr(import_extra(self._module, self._extra), name)


def dask_client() -> Any | None:
    """Give the Dask client of this process, if one runs; Dask is not imported for it."""
    # Not `dask.base.get_scheduler`: it fails where the configuration still names a closed client.
    distributed: Any = sys.modules.get("distributed")
    try:
        client = None if distributed is None else distributed.default_client()
    except ValueError:
        return None
    return client if client is not None and client.status == "running" else None


def running_client() -> Any | None:
    """Give the Dask client that work can be handed to.

    Inside a task there is none: it would wait for workers that wait for it.
    """
    client = dask_client()
    if client is None:
        return None
    try:
        sys.modules["distributed"].get_worker()
    except ValueError:
        if client.asynchronous:
            raise RuntimeError(
                "the Dask client is asynchronous, and slts waits for its workers: make one without "
                "asynchronous=True"
            ) from None
        return client
    return None
