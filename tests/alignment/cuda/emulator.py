"""A replacement for CuPy that runs kernel.cu on the CPU, lane by lane."""

import ctypes
import hashlib
import subprocess
import tempfile
from pathlib import Path
from types import SimpleNamespace

import numpy as np

HERE = Path(__file__).parent
ENTRY = """
extern "C" void emulate(const char* name, unsigned grid, unsigned block, void** arguments) {
    const auto is = [&](const char* other) { return std::strcmp(name, other) == 0; };
    if (is("run_pairs")) emulator::launch(run_pairs, grid, block, arguments);
    if (is("pack_landmarks")) emulator::launch(pack_landmarks, grid, block, arguments);
    if (is("project_rows")) emulator::launch(project_rows, grid, block, arguments);
    if (is("add_chunks")) emulator::launch(add_chunks, grid, block, arguments);
}
"""


class Array(np.ndarray):
    """A NumPy array with the pointer attribute of CuPy, which refuses arrays of the host."""

    data = property(lambda self: SimpleNamespace(ptr=self.ctypes.data))

    def __array_ufunc__(self, ufunc, method, *inputs, **options):
        if "out" in options:
            options["out"] = tuple(_plain(a) for a in options["out"])
        result = getattr(ufunc, method)(*map(_plain, inputs), **options)
        return np.asarray(result).view(Array)

    def __array_function__(self, function, kinds, args, options):
        args = [[*map(_plain, a)] if isinstance(a, list) else _plain(a) for a in args]
        return np.asarray(function(*args, **options)).view(Array)


def _plain(argument):
    assert type(argument) is not np.ndarray or argument.ndim == 0, "an array of the host"
    return argument.view(np.ndarray) if isinstance(argument, Array) else argument


class CUDARuntimeError(RuntimeError):
    pass


class OutOfMemoryError(MemoryError):
    pass


class Kernel:
    """A function of a compiled module."""

    num_regs = 128
    max_dynamic_shared_size_bytes = 0

    def __init__(self, library, name):
        self._library, self._name = library, name.encode()

    def __call__(self, grid, block, arguments, shared_mem=0):
        assert grid[0] > 0
        assert shared_mem <= self.max_dynamic_shared_size_bytes <= 232448
        kept = [
            np.array(a.ctypes.data if isinstance(a, Array) else a) for a in map(_exact, arguments)
        ]
        pointers = (ctypes.c_void_p * len(kept))(*(a.ctypes.data for a in kept))
        self._library.emulate(self._name, grid[0], block[0], pointers)


def _exact(argument):
    assert isinstance(argument, (Array, np.generic)), (
        "CuPy would have to guess the width of this argument"
    )
    return argument


def fake_cupy(folder, n_devices=1, multiprocessors=2):
    """Make the module. It builds programs in `folder`, which processes may share."""

    class RawModule:
        def __init__(self, code, options):
            source = f'#include "{HERE / "emulator.hpp"}"\n{code}\n{ENTRY}'
            flags = [option for option in options if option.startswith("-D")]
            name = hashlib.sha256(" ".join([source, *flags]).encode()).hexdigest()[:16]
            built = folder / f"{name}.so"
            if not built.exists():
                with tempfile.TemporaryDirectory(dir=folder) as own:
                    file, library = Path(own, "kernel.cpp"), Path(own, "kernel.so")
                    file.write_text(source)
                    command = ["g++", "-std=c++20", "-O1", "-mfma", "-ffp-contract=off", "-w"]
                    command += ["-fPIC", "-shared", *flags, str(file), "-o", str(library)]
                    subprocess.run(command, check=True, capture_output=True)
                    library.replace(built)
            self._library = ctypes.CDLL(str(built))

        def get_function(self, name):
            return Kernel(self._library, name)

        def get_global(self, name):
            at = ctypes.addressof(ctypes.c_char.in_dll(self._library, name))
            return SimpleNamespace(
                copy_from_host=lambda source, size: ctypes.memmove(at, source, size)
            )

    def asnumpy(array, out=None):
        if out is None:
            return np.array(array)
        assert out.flags.c_contiguous
        assert (out.dtype, out.shape) == (array.dtype, array.shape)
        out[...] = array
        return out

    def poisoned(shape, dtype):
        array = np.empty(shape, dtype).view(Array)
        array.reshape(-1).view(np.uint8)[:] = 0xFF
        return array

    attributes = {
        "MultiProcessorCount": multiprocessors,
        "MaxRegistersPerMultiprocessor": 65536,
        "MaxSharedMemoryPerMultiprocessor": 233472,
    }
    runtime = SimpleNamespace(
        getDeviceCount=lambda: n_devices, memGetInfo=lambda: (2**28, 2**28),
        getDeviceProperties=lambda device: {"name": b"Emulator"}, CUDARuntimeError=CUDARuntimeError,
    )  # fmt: skip
    return SimpleNamespace(
        RawModule=RawModule,
        ndarray=Array,
        asarray=lambda a: np.ascontiguousarray(a).view(Array),
        asnumpy=asnumpy,
        linalg=SimpleNamespace(
            eigh=lambda a: tuple(part.view(Array) for part in np.linalg.eigh(a.view(np.ndarray)))
        ),
        empty=poisoned,
        zeros=lambda shape, dtype=np.float64: np.zeros(shape, dtype).view(Array),
        full=lambda shape, value, dtype: np.full(shape, value, dtype).view(Array),
        get_default_memory_pool=lambda: SimpleNamespace(
            free_bytes=lambda: 0, free_all_blocks=lambda: None
        ),
        cuda=SimpleNamespace(
            runtime=runtime,
            memory=SimpleNamespace(OutOfMemoryError=OutOfMemoryError),
            Device=lambda: SimpleNamespace(id=0, attributes=attributes),
        ),
    )
