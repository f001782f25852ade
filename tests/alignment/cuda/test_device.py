"""Choice of the device, and errors if the requested one is missing."""

import logging
import sys
from types import SimpleNamespace

import numpy as np
import pytest

import slts
from slts.alignment import settings
from tests.alignment.cuda.emulator import CUDARuntimeError, fake_cupy
from tests.data import run_python

X = [np.eye(2), np.eye(2)[::-1]]


def test_a_missing_cupy_is_an_error_that_names_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "cupy", None)
    for function in (slts.similarity, slts.aligned_products):
        with pytest.raises(ImportError, match=r"pip install \"slts\[cuda\]\""):
            function(X, device="cuda")


def test_a_missing_gpu_is_an_error(pretend, tmp_path):
    pretend(fake_cupy(tmp_path, n_devices=0))
    with pytest.raises(RuntimeError, match=r"needs an NVIDIA GPU.*device='cpu'"):
        slts.similarity(X, device="cuda")


def test_a_missing_driver_is_an_error_with_its_cause(pretend, tmp_path):
    def no_driver():
        raise CUDARuntimeError("cudaErrorInsufficientDriver")

    pretend(fake_cupy(tmp_path)).cuda.runtime.getDeviceCount = no_driver
    with pytest.raises(RuntimeError, match="cudaErrorInsufficientDriver"):
        slts.similarity(X, device="cuda")


@pytest.mark.parametrize("name", ["gpu", "CUDA", None, 0])
def test_other_names_are_errors(name):
    with pytest.raises(ValueError, match="'device' parameter"):
        slts.similarity(X, device=name)


def test_auto_leaves_small_work_on_the_cpu_without_looking_for_a_gpu(monkeypatch):
    monkeypatch.setitem(sys.modules, "cupy", SimpleNamespace())
    np.testing.assert_array_equal(slts.similarity(X, device="auto"), slts.similarity(X))


def test_auto_says_once_which_device_does_large_work(pretend, tmp_path, caplog):
    pretend(fake_cupy(tmp_path))
    with caplog.at_level(logging.INFO, logger="slts"):
        assert settings.runs_on_cuda("auto", 1e12)
        assert settings.runs_on_cuda("auto", 1e12)
    (record,) = caplog.records
    assert record.message == "device='auto' uses the GPU for large work: Emulator"


def test_auto_without_a_gpu_uses_the_cpu_and_says_why(pretend, tmp_path, caplog):
    pretend(fake_cupy(tmp_path, n_devices=0))
    with caplog.at_level(logging.INFO, logger="slts"):
        assert not settings.runs_on_cuda("auto", 1e12)
    assert "uses the CPU" in caplog.text


def test_slts_imports_without_the_native_extension_and_says_so_when_it_is_needed():
    program = """
import sys
sys.modules["slts.alignment._native"] = None
import slts
import slts.alignment.cuda.backend
assert "cupy" not in sys.modules
try:
    slts.similarity([[[1.0, 2.0]]])
except ImportError as error:
    print(error)
"""
    printed = run_python(program)
    assert "native extension" in printed
    assert "device='cuda'" in printed
