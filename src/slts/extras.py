"""Optional dependencies: imports that name the pip extra, and the Dask client of this process."""

from __future__ import annotations

import importlib
import sys
from types import ModuleType
from typing import Any

__all__ = ["LazyModule", "dask_client", "import_extra", "running_client"]


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


def dask_client() -> Any | None:
    """Give the running Dask client of this process, or None. Dask is not imported for this."""
    # Not `dask.base.get_scheduler`: it fails if the configuration still names a closed client.
    distributed: Any = sys.modules.get("distributed")
    try:
        client = None if distributed is None else distributed.default_client()
    except ValueError:
        return None
    if client is not None and client.status == "connecting":
        raise ConnectionError(
            f"The connection to the Dask scheduler {client.scheduler.address} is lost. Connect to "
            "a running cluster, or close the client to use the threads of this machine."
        )
    return client if client is not None and client.status == "running" else None


def running_client() -> Any | None:
    """Give the Dask client that can run tasks, or None.

    It is None inside a Dask task: a task that waits for other tasks could block all workers.
    """
    client = dask_client()
    if client is None:
        return None
    try:
        sys.modules["distributed"].get_worker()
    except ValueError:
        if client.asynchronous:
            raise RuntimeError(
                "the Dask client is asynchronous, and slts waits for its results: create the "
                "client without asynchronous=True"
            ) from None
        return client
    return None
