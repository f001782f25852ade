"""A loaded model is the saved model, to the last bit."""

import copy
import hashlib
import json
import os
import pickle
import re

import numpy as np
import pytest
import safetensors
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV, StratifiedKFold
from sklearn.pipeline import make_pipeline

import slts
from slts import estimators
from slts.persistence import describe
from tests.persistence import small_models
from tests.persistence.small_models import SMALL, assert_same_model, by_name, fit, new_series

every_estimator = pytest.mark.parametrize("estimator", SMALL, ids=by_name)
CASES = {
    "two classes": {"labels": ("no", "yes")},
    "booleans": {"labels": (False, True)},
    "small integers": {"labels": np.array([3, 1, 2], dtype=np.int8)},
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
APPLICABLE = [
    pytest.param(estimator, changes, id=f"{case}-{by_name(estimator)}")
    for case, changes in CASES.items()
    for estimator in SMALL
    if {"labels", *estimator.get_params()} & changes.keys()
]


def round_trip(model, folder):
    slts.save(model, folder / "model.slts")
    return slts.load(folder / "model.slts")


def test_every_classifier_of_the_package_is_tested():
    assert {by_name(estimator) for estimator in SMALL} == set(estimators.__all__)


@pytest.mark.parametrize(("estimator", "changes"), APPLICABLE)
def test_a_loaded_model_is_the_saved_one(estimator, changes, tmp_path):
    model = fit(estimator, **changes)
    loaded = round_trip(model, tmp_path)
    assert_same_model(model, loaded, new_series(changes.get("channels", 2)))


@every_estimator
def test_identifiers_and_digests_are_kept_unless_they_are_left_out(estimator, tmp_path):
    X, y = small_models.make_series(("a", "b"))
    model, path = clone(estimator).fit(small_models.with_identifiers(X), y), tmp_path / "m.slts"
    loaded = round_trip(model, tmp_path)
    assert_same_model(model, loaded, X)
    index = model.origins_.indices[0]
    assert loaded.series_name(index).endswith(f"recording {index}")
    assert b"recording" in (tmp_path / "model.slts").read_bytes()
    slts.save(model, path, identifiers=False, digests=False)
    assert b"recording" not in path.read_bytes()
    loaded = slts.load(path)
    assert loaded.series_name(index).endswith(f"training series {index}")
    assert getattr(getattr(loaded, "landmarks_", None), "times", None) is None
    assert loaded.training_digests_ is None is not model.training_digests_
    small_models.assert_same_value(loaded.decision_function(X), model.decision_function(X))


@every_estimator
def test_saving_again_gives_the_same_bytes(estimator, saved, tmp_path):
    content, path = saved[by_name(estimator)][1], tmp_path / "again.slts"
    slts.save(fit(estimator), path)
    assert path.read_bytes() == content
    slts.save(slts.load(path).set_params(device="auto"), path)
    assert (path.read_bytes(), slts.load(path).device) == (content, "cpu")
    assert "device" not in describe(path)["parameters"]


@every_estimator
def test_a_loaded_model_can_be_pickled_copied_and_fitted_again(estimator, saved, tmp_path):
    model, _ = saved[by_name(estimator)]
    loaded = round_trip(model, tmp_path)
    again = clone(loaded).fit(*small_models.make_series(("a", "b", "c")))
    for other in (pickle.loads(pickle.dumps(loaded)), copy.deepcopy(loaded), again):
        assert_same_model(model, other, new_series())


HALVES = np.arange(12), np.arange(12, 24)
PARAMETERS = {
    "class_weight": {"a": 2.0, "b": 1, "c": np.float32(0.5)},
    "landmarks": np.array([4, 2, 9, 10], dtype=np.int16), "n_landmarks": np.int64(4),
    "gamma": np.float64(0.01), "calibration_cv": [HALVES, HALVES[::-1]], "n_jobs": 100_000,
    "verbose": 0,
}  # fmt: skip


@pytest.mark.parametrize(
    ("estimator", "parameters"),
    [(SMALL[0], PARAMETERS), (SMALL[2], {"class_weight": "balanced"})]
    + [(SMALL[3], {"n_landmarks": n}) for n in (range(10, 17, 3), (10, 12), np.array([10, 12]))],
)
def test_parameters_keep_their_types(estimator, parameters, tmp_path):
    model = fit(estimator, **parameters).set_output(transform="pandas")
    loaded = round_trip(model, tmp_path)
    small_models.assert_same_value(model.get_params(), loaded.get_params())
    assert loaded.transform(new_series()).equals(model.transform(new_series()))


def test_a_splitter_and_a_generator_are_described_and_replaced_by_the_default(tmp_path):
    model = fit(SMALL[1], cv=StratifiedKFold(3), random_state=np.random.RandomState(3))
    path = tmp_path / "model.slts"
    with pytest.warns(UserWarning, match=r"'cv' parameter .* the default, 0\.3") as caught:
        slts.save(model, path)
    assert [warning.filename for warning in caught] == [__file__]
    loaded, described = slts.load(path), describe(path)["parameters"]
    assert (loaded.cv, loaded.random_state) == (slts.SLTSClassifierCV().cv, None)
    assert "StratifiedKFold(n_splits=3" in described["cv"]
    assert described["random_state"] == "RandomState(MT19937)"
    small_models.assert_same_value(loaded.cv_results_, model.cv_results_)


@every_estimator
def test_a_file_is_safetensors_with_its_digest_and_describes_itself(estimator, saved, tmp_path):
    _, content = saved[by_name(estimator)]
    path = tmp_path / "m.slts"
    path.write_bytes(content)
    facts = describe(path)
    assert json.loads(json.dumps(facts)) == facts
    assert facts["estimator"] == by_name(estimator)
    assert (facts["slts"], facts["format"]) == (slts.__version__, 4)
    assert facts["classes"] == ["a", "b", "c"]
    steps = slts.as_series(small_models.make_series(("a", "b", "c"))[0]).n_steps
    assert facts["training"] == {"series": 24, "steps": steps, "classes": 3}
    with safetensors.safe_open(path, framework="numpy") as file:
        assert set(file.metadata()) == {"slts"}
        assert set(file.keys()) == small_models.parts(content)[0].keys() - {"__metadata__"}
    digits = facts["sha256"].encode()
    assert content.count(digits) == 1
    blank = content.replace(digits, b"0" * 64)
    assert hashlib.sha256(blank).hexdigest().encode() == digits


def test_an_incomplete_file_does_not_replace_the_old_one(saved, tmp_path, monkeypatch):
    path = tmp_path / "m.slts"
    path.write_bytes(b"the old file")
    monkeypatch.setattr(os, "fsync", lambda file: os.fstat(-1))
    with pytest.raises(OSError, match="Bad file"):
        slts.save(saved["OneNNClassifier"][0], path)
    assert path.read_bytes() == b"the old file"


class Descendant(slts.SLTSClassifier):
    pass


@pytest.mark.parametrize("model", [
    GridSearchCV(SMALL[0], {}), make_pipeline(SMALL[0]), Descendant(), slts.SLTSClassifier, "m",
], ids=by_name)  # fmt: skip
def test_other_objects_are_refused_with_a_hint(model, tmp_path):
    with pytest.raises(TypeError, match=rf"^{by_name(model)} cannot be saved.* save\(model, "):
        slts.save(model, tmp_path / "m.slts")


def test_unusable_models_and_names_are_refused(tmp_path):
    with pytest.raises(NotFittedError):
        slts.save(slts.SLTSClassifier(), tmp_path / "m.slts")
    model = fit(SMALL[0])
    with pytest.raises(ValueError, match=re.escape("must end in '.slts'")):
        slts.save(model, tmp_path / "model.pkl")
    model.remark_ = "mine"
    with pytest.raises(TypeError, match="files cannot store: remark_"):
        slts.save(model, tmp_path / "m.slts")
    assert not os.listdir(tmp_path)
