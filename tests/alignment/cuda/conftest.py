"""Fixtures for a real GPU, if there is one, and for an emulated one."""

import os
import shutil
import sys

import pytest

from slts.alignment import settings
from slts.alignment.cuda import programs
from tests.alignment.cuda.emulator import fake_cupy


@pytest.fixture
def gpu():
    """CuPy on a machine with a GPU, without memory pool so that compute-sanitizer sees arrays."""
    cupy = pytest.importorskip("cupy", reason="CuPy is not installed (extra cuda)")
    try:
        settings.require_gpu()
    except RuntimeError as error:
        pytest.skip(f"no GPU: {error}")
    cupy.cuda.set_allocator(None)
    yield cupy
    cupy.cuda.set_allocator(cupy.get_default_memory_pool().malloc)


@pytest.fixture
def pretend(monkeypatch):
    """Replace CuPy by another module."""

    def put(module):
        monkeypatch.setitem(sys.modules, "cupy", module)
        monkeypatch.setattr(settings, "_logged", set())
        programs._compiled.cache_clear()
        return module

    yield put
    programs._compiled.cache_clear()


@pytest.fixture(scope="session")
def programs_folder(tmp_path_factory):
    """Compiled programs, shared with the other test processes of a run."""
    base = tmp_path_factory.getbasetemp()
    folder = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "programs"
    folder.mkdir(exist_ok=True)
    return folder


@pytest.fixture
def emulated(pretend, programs_folder):
    """An emulated GPU that runs the kernel on the CPU."""
    if shutil.which("g++") is None or sys.platform != "linux":
        pytest.skip("the emulator needs Linux and g++")
    return pretend(fake_cupy(programs_folder))
