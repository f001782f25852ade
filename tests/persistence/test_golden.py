"""Files of format 1 load for ever.

`make_golden.py` wrote them and what their models answered. They are never written again: a change
that makes this module fail breaks the files that people have. Their hashes stand here so that
nobody replaces one in passing.
"""

import hashlib
import json

import numpy as np
import pytest

import slts
from slts import estimators
from slts.persistence import describe
from tests.persistence.make_golden import FOLDER, MODELS

HASHES = {
    "v1-bbs": "97a62b66eda8589aed06658de5e99998920ee94d009bf21c0c1e778598d1e221",
    "v1-bbs-cv": "4fe78bd379ba4cd58ac14b2099e923d739d20314380cf5f5e4db27fa87e72130",
    "v1-ldmlt": "5179cea1e4c6daf02d78ea0373cb0ca4cbdac38539b11ac82dd866a21741033e",
    "v1-local": "d359b23c8f8c1d39acdb49bba407a66052731c03692617dc8c5d67a127a2a10c",
    "v1-one-nn": "06fbfb37e5c99837be9c8082ae743e7da447ef3f777b4d51716380dc2893965e",
    "v1-slts": "2c7e8ac1e4edb27c45683bbb4b986c2d8be0809cbef18d03ccd52d969a2d2f29",
    "v1-slts-cv": "f83f3e59ac7ba30166f3816bba1f17dd628d619be1d4791f9283f065891b18b1",
    "v1-svc": "c66b00728cee7406f7c51cd70e820dd17acfa9c07bf4a4e5de90597db8d903f8",
}
every_file = pytest.mark.parametrize("name", HASHES)


def test_every_classifier_has_a_golden_file():
    kept = {type(estimator).__name__ for estimator, *_ in MODELS.values()}
    assert kept == set(estimators.__all__)
    assert {path.stem for path in FOLDER.glob("*.slts")} == set(HASHES)


@every_file
def test_the_golden_file_is_the_one_that_was_written(name):
    content = (FOLDER / f"{name}.slts").read_bytes()
    assert hashlib.sha256(content).hexdigest() == HASHES[name]


@every_file
def test_the_golden_file_loads_and_answers_as_it_did(name):
    model = slts.load(FOLDER / f"{name}.slts")
    expected = json.loads((FOLDER / f"{name}.json").read_text(encoding="utf-8"))
    series = [np.array(x) for x in expected["series"]]
    assert model.classes_.tolist() == expected["classes"]
    assert model.predict(series).tolist() == expected["predict"]
    # Other processors round otherwise.
    for method in ("decision_function", "predict_proba"):
        np.testing.assert_allclose(getattr(model, method)(series), expected[method], rtol=1e-9)


@every_file
def test_the_golden_file_holds_the_parameters_it_was_made_with(name):
    estimator, labels, channels = MODELS[name]
    model = slts.load(FOLDER / f"{name}.slts")
    assert repr(model) == repr(estimator)
    # Parameters that are younger than the file.
    assert model.device == "cpu"
    assert model.get_params().get("dtype", "float64") == "float64"
    assert model.classes_.dtype == np.asarray(labels).dtype
    facts = describe(FOLDER / f"{name}.slts")
    assert facts["format"] == 1
    assert facts["channel_names"] == ["u", "v"][:channels]
    assert facts["training"]["series"] == 6 * len(labels)
