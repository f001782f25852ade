"""Device and precision of the alignments: `device` and `dtype`."""

import copy
import inspect
import logging
import sys
import tracemalloc
from functools import cache

import numpy as np
import pytest
from sklearn.base import clone
from slts.landmarks import select_landmarks

import slts
from slts import estimators
from slts.alignment.cuda import device
from slts.alignment.cuda.backend import CudaBackend
from tests.alignment.cuda import conftest as cuda
from tests.alignment.cuda.emulator import fake_cupy
from tests.estimators.conftest import make_ragged
from tests.estimators.kinds import KINDS, LANDMARKED, quick

pretend, programs_folder, emulated = cuda.pretend, cuda.programs_folder, cuda.emulated

# Some choose landmarks by alignments, some compare several numbers of landmarks.
GIVEN = {
    slts.SLTSClassifierCV: {"n_landmarks": [8, 12], "gammas": [0.03, 0.1]},
    slts.BBSClassifier: {"landmarks": "kmedoids", "gamma": 0.05},
    slts.BBSClassifierCV: {"landmarks": "dselect", "gammas": [0.03, 0.1]},
    slts.SLTSClassifier: {"gamma": 0.05},
}
SMALL = [quick(kind, **GIVEN.get(kind, {})) for kind in KINDS]
OVER_LANDMARKS = [quick(kind, **GIVEN[kind]) for kind in LANDMARKED]


def by_name(estimator):
    return type(estimator).__name__


every_estimator = pytest.mark.parametrize("estimator", SMALL, ids=by_name)
every_landmark_classifier = pytest.mark.parametrize("estimator", OVER_LANDMARKS, ids=by_name)


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
def fit_small(two):
    """Copies of models of `two`, each fitted once."""
    X, y, _, _ = two
    fit = cache(lambda kind: quick(kind, **GIVEN.get(kind, {})).fit(X, y))
    return lambda estimator: copy.deepcopy(fit(type(estimator)))


def test_every_estimator_has_a_device():
    assert {type(estimator).__name__ for estimator in SMALL} == set(estimators.__all__) - {
        "SeriesScaler"
    }
    for estimator in SMALL:
        assert estimator.get_params()["device"] == "cpu"


@pytest.mark.slow
@every_estimator
def test_gpu_and_cpu_agree_and_nothing_is_aligned_elsewhere(
    estimator, three, cuda_grids, alignments, tmp_path
):
    X, y, new, _ = three
    on_gpu = clone(estimator).set_params(device="cuda").fit(X, y)
    decisions = on_gpu.decision_function(new)
    assert cuda_grids
    assert not alignments
    on_cpu = clone(estimator).fit(X, y)
    # Local metrics are learned from float32 on both devices.
    close = 1e-5 if isinstance(estimator, slts.LocalSLTSClassifier) else 1e-9
    np.testing.assert_allclose(decisions, on_cpu.decision_function(new), rtol=0, atol=close)
    np.testing.assert_array_equal(on_gpu.predict(new), on_cpu.predict(new))
    np.testing.assert_allclose(on_gpu.predict_proba(new), on_cpu.predict_proba(new), atol=close)
    if hasattr(estimator, "transform"):
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
    model = slts.SLTSClassifier(8, gamma=0.05, random_state=0, device="cuda").fit(X, y)
    certificate = slts.certify(model, new, truth)
    summary = slts.summarize(model, new)
    assert not alignments
    model.set_params(device="cpu")
    assert certificate.headline.value == pytest.approx(
        slts.certify(model, new, truth).headline.value
    )
    expected = slts.summarize(model, new).channel_importance
    np.testing.assert_allclose(summary.channel_importance, expected, rtol=1e-9)


@every_estimator
def test_other_devices_are_errors(estimator, two, fit_small):
    new = two[2]
    expected = (
        rf"The 'device' parameter of {type(estimator).__name__} must be one of "
        rf"\('cpu', 'cuda', 'auto'\)\. Got .* instead\."
    )
    model = fit_small(estimator).set_params(device="gpu")
    with pytest.raises(ValueError, match=expected):
        model.predict(new)
    if hasattr(model, "transform"):
        with pytest.raises(ValueError, match=expected):
            model.transform(new)


def test_select_landmarks_checks_the_device_even_if_nothing_is_aligned(two):
    with pytest.raises(ValueError, match="'device' parameter of select_landmarks must be one of"):
        select_landmarks(two[0], 2, device="gpu")


@every_estimator
def test_without_cupy_cuda_is_an_error_in_fit_and_in_prediction(
    estimator, two, fit_small, monkeypatch
):
    X, y, new, _ = two
    monkeypatch.setitem(sys.modules, "cupy", None)
    with pytest.raises(ImportError, match=r"pip install \"slts\[cuda\]\""):
        clone(estimator).set_params(device="cuda").fit(X, y)
    model = fit_small(estimator).set_params(device="cuda")
    with pytest.raises(ImportError, match=r"pip install \"slts\[cuda\]\""):
        model.predict(new)


def test_without_a_gpu_cuda_is_an_error_at_once(pretend, tmp_path, two):
    pretend(fake_cupy(tmp_path, n_devices=0))
    # Without calibration, fitting aligns nothing.
    model = slts.OneNNClassifier(calibration_size=None, device="cuda")
    with pytest.raises(RuntimeError, match="needs an NVIDIA GPU"):
        model.fit(two[0], two[1])
    assert not hasattr(model, "classes_")


@every_estimator
def test_auto_without_a_gpu_uses_the_cpu_and_logs_it_once(
    estimator, two, fit_small, pretend, tmp_path, monkeypatch, caplog
):
    X, y, new, _ = two
    pretend(fake_cupy(tmp_path, n_devices=0))
    monkeypatch.setattr(device, "WORTH_A_GPU", 0.0)
    with caplog.at_level(logging.INFO, logger="slts"):
        model = clone(estimator).set_params(device="auto").fit(X, y)
        found = model.decision_function(new)
    assert [r.message for r in caplog.records if "uses the CPU" in r.message] == [
        record.message for record in caplog.records
    ]
    assert len(caplog.records) == 1
    np.testing.assert_array_equal(found, fit_small(estimator).decision_function(new))


@every_landmark_classifier
def test_single_precision_gives_nearly_the_same_outputs(estimator, three, tmp_path):
    X, y, new, _ = three
    double, single = (
        clone(estimator).set_params(dtype=t).fit(X, y) for t in ("float64", "float32")
    )
    np.testing.assert_array_equal(single.landmark_indices_, double.landmark_indices_)
    assert single.transform(new).dtype == np.float32
    assert double.transform(new).dtype == np.float64
    for method in ("decision_function", "predict_proba", "transform"):
        found, expected = (getattr(model, method)(new) for model in (single, double))
        assert np.abs(found - expected).max() <= 1e-5 * max(1.0, np.abs(expected).max())
    assert (single.decision_function(new) != double.decision_function(new)).any()
    explained = slts.explain(single, new[0])
    np.testing.assert_allclose(
        explained.offset + explained.contributions.sum(axis=(1, 2)),
        single.decision_function(new[:1])[0],
        atol=1e-5 * max(1.0, np.abs(explained.decision).max()),
    )
    # The file stores the precision.
    slts.save(single, tmp_path / "m.slts")
    loaded = slts.load(tmp_path / "m.slts")
    assert loaded.dtype == "float32"
    np.testing.assert_array_equal(loaded.decision_function(new), single.decision_function(new))


def test_single_precision_takes_half_the_memory():
    X, y = make_ragged(2, 40, seed=0, channels=24)
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


def test_only_classifiers_over_landmarks_have_a_precision():
    have = {
        type(estimator).__name__
        for estimator in SMALL
        if "dtype" in inspect.signature(type(estimator)).parameters
    }
    assert have == {"SLTSClassifier", "SLTSClassifierCV", "BBSClassifier", "BBSClassifierCV"}


@pytest.fixture
def command(two, tmp_path, capsys):
    """Run a command line on a model and a file of series; gives exit code and messages."""
    options = pytest.importorskip("slts.cli.options")
    assert options._DEVICES == device.DEVICES
    from slts.cli import main

    X, y, new, truth = two
    slts.save(slts.BBSClassifier(6, random_state=0).fit(X, y), tmp_path / "m.slts")
    batch = slts.as_series(new)
    np.savez(tmp_path / "new.npz", values=batch.values, offsets=batch.offsets, y=truth)
    places = {"MODEL": tmp_path / "m.slts", "DATA": tmp_path / "new.npz"}

    def run(*arguments):
        code = main([str(places.get(argument, argument)) for argument in arguments])
        return code, capsys.readouterr().err

    return run


COMMANDS = [
    ("predict", "MODEL", "DATA"),
    ("evaluate", "MODEL", "DATA"),
    ("certify", "MODEL", "DATA"),
    ("explain", "MODEL", "DATA"),
    ("fit", "DATA", "--method", "slts", "--model", "new.slts"),
]
every_command = pytest.mark.parametrize("line", COMMANDS, ids=lambda line: line[0])


@every_command
def test_commands_align_on_the_gpu(line, command, cuda_grids, alignments, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert command(*line, "--device", "cuda")[0] == 0
    assert cuda_grids
    # Explanations align on the CPU.
    assert not alignments or line[0] == "explain"


@every_command
def test_commands_report_that_there_is_no_gpu(line, command, pretend, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    pretend(fake_cupy(tmp_path, n_devices=0))
    code, message = command(*line, "--device", "cuda")
    assert code == 1
    assert "Error: device='cuda' needs an NVIDIA GPU" in message
    assert command(*line, "--device", "gpu")[0] == 2
    assert command(*line, "--device", "auto")[0] == 0
