"""Device and precision of the alignments: `device` and `dtype`."""

import copy
import logging
import sys
import tracemalloc
from functools import cache

import numpy as np
import pytest

import slts
from slts import select_landmarks
from slts.alignment import settings
from slts.alignment.cuda.backend import CudaBackend
from tests.alignment.cuda import conftest as cuda
from tests.alignment.cuda.emulator import fake_cupy
from tests.data import clusters
from tests.estimators.kinds import KINDS, LANDMARKED, every, every_kind, quick

pretend, programs_folder, emulated = cuda.pretend, cuda.programs_folder, cuda.emulated

# Some choose landmarks by alignments, some compare several numbers of landmarks.
PARAMETERS = {
    slts.SLTSClassifierCV: {"n_landmarks": [8, 12], "gammas": [0.03, 0.1]},
    slts.BBSClassifier: {"landmarks": "kmedoids", "gamma": 0.05},
    slts.BBSClassifierCV: {"landmarks": "dselect", "gammas": [0.03, 0.1]},
    slts.SLTSClassifier: {"gamma": 0.05},
}


def make(kind, **parameters):
    return quick(kind, **PARAMETERS.get(kind, {}) | parameters)


@pytest.fixture
def cuda_grids(emulated, monkeypatch):
    """Sizes (series, landmarks) of everything that the emulated GPU aligns."""
    log = []
    init = CudaBackend.__init__

    def logged(self, series, layouts, *args, **kwargs):
        log.append((len(series), len(layouts.landmarks)))
        init(self, series, layouts, *args, **kwargs)

    monkeypatch.setattr(CudaBackend, "__init__", logged)
    return log


@pytest.fixture(scope="module")
def fit_two(two):
    """Copies of models of `two`, each fitted once."""
    fit = cache(lambda kind: make(kind).fit(*two[:2]))
    return lambda kind: copy.deepcopy(fit(kind))


# -- a GPU


@pytest.mark.slow
@every_kind
def test_gpu_and_cpu_agree_and_nothing_is_aligned_elsewhere(
    kind, three, cuda_grids, alignments, tmp_path
):
    X, y, new, _ = three
    on_gpu = make(kind, device="cuda").fit(X, y)
    decisions = on_gpu.decision_function(new)
    assert cuda_grids
    assert not alignments
    on_cpu = make(kind).fit(X, y)
    # The local classifier learns from float32 on both devices.
    close = 1e-5 if kind is slts.LocalSLTSClassifier else 1e-9
    np.testing.assert_allclose(decisions, on_cpu.decision_function(new), rtol=0, atol=close)
    np.testing.assert_array_equal(on_gpu.predict(new), on_cpu.predict(new))
    np.testing.assert_allclose(on_gpu.predict_proba(new), on_cpu.predict_proba(new), atol=close)
    if hasattr(kind, "transform"):
        np.testing.assert_allclose(on_gpu.transform(new), on_cpu.transform(new), atol=close)
    # Files do not store the device.
    slts.save(on_gpu, tmp_path / "m.slts")
    count = len(cuda_grids)
    loaded = slts.load(tmp_path / "m.slts")
    assert loaded.device == "cpu"
    np.testing.assert_allclose(loaded.decision_function(new), decisions, rtol=0, atol=1e-9)
    assert len(cuda_grids) == count
    loaded.set_params(device="cuda").predict(new)
    assert len(cuda_grids) > count


@pytest.mark.parametrize("method", ["kmedoids", "dselect"])
def test_landmarks_are_chosen_on_the_gpu(method, three, cuda_grids, alignments):
    on_gpu = select_landmarks(three[0], 5, method=method, random_state=0, device="cuda")
    assert cuda_grids
    assert not alignments
    on_cpu = select_landmarks(three[0], 5, method=method, random_state=0)
    np.testing.assert_array_equal(on_gpu, on_cpu)


def test_certificates_and_summaries_align_on_the_gpu(three, cuda_grids, alignments):
    X, y, new, truth = three
    model = make(slts.SLTSClassifier, device="cuda").fit(X, y)
    certificate, summary = slts.certify(model, new, truth), slts.summarize(model, new)
    assert not alignments
    model.set_params(device="cpu")
    value = slts.certify(model, new, truth).headline.value
    assert certificate.headline.value == pytest.approx(value)
    expected = slts.summarize(model, new).channel_importance
    np.testing.assert_allclose(summary.channel_importance, expected, rtol=1e-9)


# -- no GPU


@every_kind
def test_a_device_that_is_not_there_is_an_error(kind, two, fit_two, monkeypatch):
    X, y, new, _ = two
    monkeypatch.setitem(sys.modules, "cupy", None)
    message = "'device' parameter"
    for name, error, match in (
        ("gpu", ValueError, message),
        ("cuda", ImportError, r"slts\[cuda\]"),
    ):
        model = fit_two(kind).set_params(device=name)
        for method in ("predict", "transform"):
            if hasattr(model, method):
                with pytest.raises(error, match=match):
                    getattr(model, method)(new)
        with pytest.raises(error, match=match):
            model.fit(X, y)
    with pytest.raises(ValueError, match=message):
        select_landmarks(X, 2, device="gpu")


def test_without_a_gpu_cuda_is_an_error_at_once(pretend, tmp_path, two):
    pretend(fake_cupy(tmp_path, n_devices=0))
    # Without calibration, fitting aligns nothing.
    model = slts.OneNNClassifier(calibration_size=None, device="cuda")
    with pytest.raises(RuntimeError, match="needs an NVIDIA GPU"):
        model.fit(two[0], two[1])
    assert not hasattr(model, "classes_")


@every_kind
def test_auto_without_a_gpu_uses_the_cpu_and_logs_it_once(
    kind, two, fit_two, pretend, tmp_path, monkeypatch, caplog
):
    X, y, new, _ = two
    pretend(fake_cupy(tmp_path, n_devices=0))
    monkeypatch.setattr(settings, "WORTH_A_GPU", 0.0)
    with caplog.at_level(logging.INFO, logger="slts"):
        decisions = make(kind, device="auto").fit(X, y).decision_function(new)
    assert len(caplog.records) == 1
    assert "uses the CPU" in caplog.text
    expected = fit_two(kind).decision_function(new)
    np.testing.assert_allclose(decisions, expected, rtol=0, atol=1e-12 * np.abs(expected).max())


# -- precision


def test_only_classifiers_over_landmarks_have_a_precision():
    assert [kind for kind in KINDS if "dtype" in kind().get_params()] == LANDMARKED


@every(LANDMARKED)
def test_single_precision_gives_nearly_the_same_outputs(kind, three, tmp_path):
    X, y, new, _ = three
    double, single = (make(kind, dtype=dtype).fit(X, y) for dtype in ("float64", "float32"))
    np.testing.assert_array_equal(single.landmark_indices_, double.landmark_indices_)
    assert single.transform(new).dtype == np.float32
    assert double.transform(new).dtype == np.float64
    for method in ("decision_function", "predict_proba", "transform"):
        values, expected = (getattr(model, method)(new) for model in (single, double))
        assert np.abs(values - expected).max() <= 1e-5 * max(1.0, np.abs(expected).max())
    assert (single.decision_function(new) != double.decision_function(new)).any()
    explanation = slts.explain(single, new[0])
    np.testing.assert_allclose(
        explanation.offset + explanation.contributions.sum(axis=(1, 2)),
        single.decision_function(new[:1])[0],
        atol=1e-5 * max(1.0, np.abs(explanation.decision).max()),
    )
    # The file stores the precision.
    slts.save(single, tmp_path / "m.slts")
    loaded = slts.load(tmp_path / "m.slts")
    assert loaded.dtype == "float32"
    np.testing.assert_array_equal(loaded.decision_function(new), single.decision_function(new))


def test_single_precision_takes_half_the_memory():
    X, y = clusters(80, channels=24)
    peaks = {}
    for dtype in ("float64", "float32"):
        model = slts.SLTSClassifier(40, dtype=dtype, calibration_cv=None, random_state=0)
        tracemalloc.start()
        model.fit(X, y)
        peaks[dtype] = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    products = 80 * 40 * 24**2 * 8
    assert peaks["float64"] > products
    assert peaks["float64"] - peaks["float32"] > 0.45 * products


# -- the command line


@pytest.fixture
def command(two, tmp_path, capsys, monkeypatch):
    """Run a command line on a model and a file of series; gives exit code and messages."""
    main = pytest.importorskip("slts.cli").main
    X, y, new, truth = two
    slts.save(slts.BBSClassifier(6, random_state=0).fit(X, y), tmp_path / "m.slts")
    batch = slts.as_series(new)
    np.savez(tmp_path / "new.npz", values=batch.values, offsets=batch.offsets, y=truth)
    monkeypatch.chdir(tmp_path)

    def run(*arguments):
        code = main(list(arguments))
        return code, capsys.readouterr().err

    return run


COMMANDS = [
    ("predict", "m.slts", "new.npz"),
    ("evaluate", "m.slts", "new.npz"),
    ("certify", "m.slts", "new.npz"),
    ("explain", "m.slts", "new.npz"),
    ("fit", "new.npz", "--method", "slts", "--model", "new.slts"),
]
every_command = pytest.mark.parametrize("line", COMMANDS, ids=lambda line: line[0])


@every_command
def test_commands_align_on_the_gpu(line, command, cuda_grids, alignments):
    assert command(*line, "--device", "cuda")[0] == 0
    assert cuda_grids
    # Explanations align on the CPU.
    assert not alignments or line[0] == "explain"


@every_command
def test_commands_report_that_there_is_no_gpu(line, command, pretend, tmp_path):
    pretend(fake_cupy(tmp_path, n_devices=0))
    code, message = command(*line, "--device", "cuda")
    assert code == 1
    assert "needs an NVIDIA GPU" in message
    assert command(*line, "--device", "gpu")[0] == 2
    assert command(*line, "--device", "auto")[0] == 0
