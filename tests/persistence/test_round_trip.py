"""A loaded model is the saved model, to the last bit."""

import copy
import hashlib
import json
import os
import pickle
import re
import threading

import joblib
import numpy as np
import pytest
import safetensors
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, StratifiedKFold
from sklearn.pipeline import make_pipeline

import slts
from slts import estimators
from slts.persistence import describe
from tests.persistence.small_models import (
    SMALL,
    assert_same_model,
    assert_same_value,
    by_name,
    fit,
    make_series,
    new_series,
    parts,
)

every_estimator = pytest.mark.parametrize("estimator", SMALL, ids=by_name)
EXPLAINED = [e for e in SMALL if hasattr(e, "linear_forms")]

CASES = {
    "two classes, text": {"labels": ("no", "yes")},
    "three classes, integers": {"labels": (30, -1, 7)},
    "floats": {"labels": (4.0, 1.0, -2.0)},
    "booleans": {"labels": (False, True)},
    "small integers": {"labels": np.array([3, 1, 2], dtype=np.int8)},
    "wide text": {"labels": np.array(["x", "yy", "w"], dtype="<U20")},
    "objects": {"labels": np.array(["x", "y\u00e4\u4e2d\U0001f600", 'q"\\'], dtype=object)},
    "one channel": {"channels": 1, "labels": ("a", "b")},
    "constant channel": {"homogeneous": True},
    "a band": {"band": 2, "objective": "cost"},
    "a parallelogram": {"band": slts.Itakura(3.0)},
    "raw rows": {"normalize": False},
    "scaled channels": {"scale": "asinh"},
    "single precision": {"dtype": "float32"},
    "without probabilities": {"calibration_cv": None, "calibration_size": None},
    "an intercept": {"fit_intercept": True},
}
# All classifiers store their classes in the same way, so few are fitted with each type of label.
LABEL_TYPES = ("floats", "booleans", "small integers", "wide text", "objects")


def applies(case, estimator):
    """Whether a classifier has the parameters of the case, or stands for others."""
    if case in LABEL_TYPES:
        return isinstance(estimator, slts.OneNNClassifier | slts.LocalSLTSClassifier)
    changes = CASES[case].keys()
    return bool({"labels", "channels"} & changes or changes & estimator.get_params().keys())


APPLICABLE = [
    pytest.param(case, estimator, id=f"{case}-{by_name(estimator)}")
    for case in CASES
    for estimator in SMALL
    if applies(case, estimator)
]


def round_trip(model, folder):
    path = folder / "model.slts"
    slts.save(model, path)
    return slts.load(path)


def test_every_classifier_of_the_package_is_tested():
    assert {by_name(estimator) for estimator in SMALL} == set(estimators.__all__) - {"SeriesScaler"}


@pytest.mark.slow
@pytest.mark.parametrize(("case", "estimator"), APPLICABLE)
def test_a_loaded_model_is_the_saved_one(case, estimator, tmp_path):
    model = fit(estimator, **CASES[case])
    loaded = round_trip(model, tmp_path)
    assert_same_model(model, loaded, new_series(CASES[case].get("channels", 2)))


@every_estimator
def test_channel_names_are_kept(estimator, tmp_path):
    X, y = make_series(("a", "b"))
    batch = slts.as_series(X)
    named = slts.SeriesBatch(batch.values, batch.offsets, ["left", "right"])
    model = clone(estimator).fit(named, y)
    loaded = round_trip(model, tmp_path)
    assert_same_model(model, loaded, new_series())
    assert describe(tmp_path / "model.slts")["channel_names"] == ["left", "right"]


@every_estimator
def test_a_table_remains_a_table(estimator, tmp_path):
    X = np.random.default_rng(0).normal(size=(24, 6)) + np.repeat([[0.0], [3.0]], 12, axis=0)
    model = clone(estimator).fit(X, np.repeat([0, 1], 12))
    loaded = round_trip(model, tmp_path)
    assert_same_model(model, loaded, X)
    with pytest.raises(slts.DataError, match="6 features"):
        loaded.predict(X[:, :5])


@every_estimator
def test_saving_again_gives_the_same_bytes(estimator, saved, tmp_path):
    _, content = saved[by_name(estimator)]
    slts.save(fit(estimator), tmp_path / "again.slts")
    assert (tmp_path / "again.slts").read_bytes() == content
    slts.save(slts.load(tmp_path / "again.slts"), tmp_path / "copy.slts")
    assert (tmp_path / "copy.slts").read_bytes() == content


@every_estimator
def test_a_loaded_model_can_be_pickled_copied_cloned_and_fitted(estimator, saved, tmp_path):
    model, _ = saved[by_name(estimator)]
    loaded = round_trip(model, tmp_path)
    assert_same_model(model, pickle.loads(pickle.dumps(loaded)), new_series())
    assert_same_model(model, copy.deepcopy(loaded), new_series())
    fresh = clone(loaded)
    assert not hasattr(fresh, "classes_")
    assert_same_model(model, fresh.fit(*make_series(("a", "b", "c"))), new_series())


@pytest.mark.parametrize("estimator", EXPLAINED, ids=by_name)
def test_a_loaded_model_is_explained_like_the_saved_one(estimator, saved, tmp_path):
    model, _ = saved[by_name(estimator)]
    loaded = round_trip(model, tmp_path)
    x = new_series()[0]
    first, second = slts.explain(model, x), slts.explain(loaded, x)
    for name in ("predicted", "decision", "offset", "contributions", "by_landmark", "by_snippet"):
        assert_same_value(getattr(first, name), getattr(second, name), name)
    for name, value in vars(slts.summarize(model)).items():
        assert_same_value(value, getattr(slts.summarize(loaded), name), name)


@every_estimator
def test_a_loaded_model_is_certified_like_the_saved_one(estimator, saved, tmp_path):
    model, _ = saved[by_name(estimator)]
    loaded = round_trip(model, tmp_path)
    X, y = make_series(("a", "b", "c"), per_class=10, seed=5)
    assert slts.certify(loaded, X, y) == slts.certify(model, X, y)
    X, y = make_series(("a", "b", "c"))
    with pytest.raises(slts.DataError, match="the model was not trained on"):
        slts.certify(loaded, X, y)
    if isinstance(model, slts.SLTSClassifier | slts.SLTSClassifierCV):
        assert slts.certify(loaded, X, y, sample="training") == slts.certify(
            model, X, y, sample="training"
        )


def test_the_output_container_is_kept(tmp_path):
    model = fit(SMALL[0]).set_output(transform="pandas")
    loaded = round_trip(model, tmp_path)
    assert loaded.transform(new_series()).equals(model.transform(new_series()))


PARAMETERS = {
    "class_weight": {"a": 2.0, "b": 1, "c": np.float32(0.5)},
    "landmarks": np.array([4, 2, 9, 10], dtype=np.int16),
    "n_landmarks": np.int64(10),
    "gamma": np.float64(0.01),
    "calibration_cv": [(np.arange(12, 24), np.arange(12)), (np.arange(12), np.arange(12, 24))],
    "n_jobs": -1,
    "verbose": 0,
}


def test_parameters_keep_their_types(tmp_path):
    model = fit(slts.SLTSClassifier(), **PARAMETERS)
    loaded = round_trip(model, tmp_path)
    assert_same_value(model.get_params(), loaded.get_params())


@pytest.mark.parametrize("weights", [{1: 2.0, 2: 1.0, 3: 1.0}, "balanced"])
def test_weights_of_numbered_classes_are_kept(weights, tmp_path):
    model = fit(slts.BBSClassifier(10, random_state=0), labels=(1, 2, 3), class_weight=weights)
    assert_same_value(round_trip(model, tmp_path).class_weight, weights)


@pytest.mark.parametrize("counts", [range(10, 17, 3), (10, 12), np.array([10, 12]), [0.5, 0.6]])
def test_lists_of_numbers_keep_their_form(counts, tmp_path):
    model = fit(SMALL[3], n_landmarks=counts)
    assert_same_value(round_trip(model, tmp_path).n_landmarks, counts)


def test_more_jobs_than_any_machine_has(tmp_path, monkeypatch):
    """Fitted, saved, loaded and used with no more threads than tasks or than cores can use."""
    running, start = [], threading.Thread.start

    def counted(thread):
        start(thread)
        running.append(threading.active_count())

    before = threading.active_count()
    monkeypatch.setattr(threading.Thread, "start", counted)
    model = fit(slts.SLTSClassifier(8, random_state=0), n_jobs=100_000)
    # Three problems, joblib's threads that manage them, and six that are idle.
    most = before + max(3, 4 * joblib.cpu_count()) + 5 + 6
    assert max(running) <= most
    loaded = round_trip(model, tmp_path)
    assert loaded.n_jobs == 100_000
    assert_same_value(loaded.predict(new_series()), model.predict(new_series()))
    assert max(running) <= most


def test_a_generator_is_described_but_not_stored(tmp_path):
    model = fit(slts.SLTSClassifier(8), random_state=np.random.RandomState(3))
    loaded = round_trip(model, tmp_path)
    assert loaded.random_state is None
    assert describe(tmp_path / "model.slts")["parameters"]["random_state"] == "RandomState(MT19937)"
    assert_same_value(loaded.decision_function(new_series()), model.decision_function(new_series()))


def test_a_splitter_is_described_and_replaced_by_the_default(tmp_path):
    model = fit(SMALL[1], cv=StratifiedKFold(3))
    path = tmp_path / "model.slts"
    with pytest.warns(UserWarning, match=r"'cv' parameter .* the default, 0\.3") as caught:
        slts.save(model, path)
    assert caught[0].filename == __file__
    loaded = slts.load(path)
    assert loaded.cv == slts.SLTSClassifierCV().cv
    assert "StratifiedKFold(n_splits=3" in describe(path)["parameters"]["cv"]
    assert_same_value(loaded.cv_results_, model.cv_results_)


@every_estimator
def test_describe_gives_plain_values(estimator, saved, tmp_path):
    _, content = saved[by_name(estimator)]
    path = tmp_path / "m.slts"
    path.write_bytes(content)
    facts = describe(path)
    assert json.loads(json.dumps(facts)) == facts
    assert facts["estimator"] == by_name(estimator)
    assert facts["slts"] == slts.__version__
    assert facts["format"] == 2
    assert facts["classes"] == ["a", "b", "c"]
    steps = sum(x.shape[1] for x in make_series(("a", "b", "c"))[0])
    assert facts["training"] == {"series": 24, "steps": steps, "classes": 3}
    assert facts["parameters"]["verbose"] == "False"


@every_estimator
def test_the_file_is_plain_safetensors_with_the_hash_it_documents(estimator, saved, tmp_path):
    _, content = saved[by_name(estimator)]
    path = tmp_path / "m.slts"
    path.write_bytes(content)
    with safetensors.safe_open(path, framework="numpy") as file:
        assert set(file.metadata()) == {"slts"}
        for name in file.keys():  # noqa: SIM118 - not a dict
            assert np.isfinite(file.get_tensor(name)).all()
    _, document, _ = parts(content)
    digits = document["sha256"].encode()
    assert content.count(digits) == 1
    blank = content.replace(digits, b"0" * 64)
    assert hashlib.sha256(blank).hexdigest().encode() == digits


def test_an_incomplete_file_does_not_replace_the_old_one(saved, tmp_path, monkeypatch):
    def fail(*args):
        raise OSError("disk full")

    path = tmp_path / "m.slts"
    path.write_bytes(b"the old file")
    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(OSError, match="disk full"):
        slts.save(saved["OneNNClassifier"][0], path)
    assert path.read_bytes() == b"the old file"


def test_unfitted_models_are_refused(tmp_path):
    with pytest.raises(NotFittedError):
        slts.save(slts.SLTSClassifier(), tmp_path / "m.slts")
    assert not os.listdir(tmp_path)


class Descendant(slts.SLTSClassifier):
    pass


@pytest.mark.parametrize(
    ("model", "hint"),
    [
        (LogisticRegression(), "best_estimator_ of a search"),
        (make_pipeline(slts.SLTSClassifier()), r"such as pipeline\[-1\]"),
        (Descendant(), "SimilaritySVC, LDMLTClassifier"),
        ("model", "str cannot be saved"),
        (slts.SLTSClassifier, "type cannot be saved"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_other_objects_are_refused_with_a_hint(model, hint, tmp_path):
    with pytest.raises(TypeError, match=hint):
        slts.save(model, tmp_path / "m.slts")


def test_a_search_is_saved_through_its_best_estimator(tmp_path):
    X, y = make_series(("a", "b"))
    search = GridSearchCV(slts.OneNNClassifier(), {"band": [None, 1]}, cv=2).fit(X, y)
    with pytest.raises(TypeError, match="best_estimator_ of a search"):
        slts.save(search, tmp_path / "m.slts")
    assert_same_model(
        search.best_estimator_, round_trip(search.best_estimator_, tmp_path), new_series()
    )


def test_a_model_comes_before_its_path(tmp_path):
    with pytest.raises(TypeError, match=r"Path cannot be saved.*Write save\(model, path\)"):
        slts.save(tmp_path / "m.slts", slts.OneNNClassifier())


def test_names_must_end_in_slts(tmp_path):
    with pytest.raises(ValueError, match=re.escape("must end in '.slts'")):
        slts.save(fit(SMALL[4]), tmp_path / "model.pkl")


def test_parameters_changed_after_fit_are_refused(tmp_path):
    model = fit(SMALL[0]).set_params(band=1)
    with pytest.raises(slts.ModelFileError, match="band or normalize have changed since fit"):
        slts.save(model, tmp_path / "m.slts")
    assert not os.listdir(tmp_path)


def test_unknown_attributes_are_refused(tmp_path):
    model = fit(SMALL[0])
    model.remark_ = "mine"
    with pytest.raises(TypeError, match="files cannot store: remark_"):
        slts.save(model, tmp_path / "m.slts")


def test_numbers_that_are_not_finite_are_refused(tmp_path):
    model = fit(SMALL[0])
    model.coef_[0, 0] = np.nan
    with pytest.raises(slts.ModelFileError, match="coef_ has NaN or infinite values"):
        slts.save(model, tmp_path / "m.slts")


@every_estimator
def test_the_device_is_not_kept(estimator, saved, tmp_path):
    """The bytes of a file do not depend on the machine."""
    model, content = saved[by_name(estimator)]
    slts.save(copy.copy(model).set_params(device="auto"), tmp_path / "auto.slts")
    assert (tmp_path / "auto.slts").read_bytes() == content
    assert "device" not in describe(tmp_path / "auto.slts")["parameters"]
    assert slts.load(tmp_path / "auto.slts").device == "cpu"
