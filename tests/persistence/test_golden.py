"""Golden files of the current format load, and the file of an older format is refused.

`make_golden.py` wrote the files and the predictions of their models. They are not written again: a
change that makes this module fail breaks the files of users. The hashes detect replaced files.
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
    "v2-slts": "5286907b4d172d40c9075a918e652da2614984c5ddff5dd0ebb770700a185844",
    "v2-slts-cv": "894ce21e3a40d632815ef008e28e83d080ee79f63e3cac6df80ff768defb1deb",
    "v2-bbs": "de2983fd610db785f4b9cbc30935f1d534d75431a0b65b7cc184489333daa54a",
    "v2-bbs-cv": "cee92e4c81155360b27a496c28fcc6dc9c139bcb6b240eb4451c3f8baf824d4c",
    "v2-one-nn": "9bbb3e9674c3f0e73cbad346a07ae8838887c3f47545be5ba392fd6203ceb956",
    "v2-svc": "57da7a917b8c295c8ec0f63fcabf7122e889c6140b02bdc82d91e81761876728",
    "v2-ldmlt": "122de34fff96bf45c0df0044b114d56c34f427fc5ed9bb9582ce00c47d2533f2",
    "v2-local": "2d932f4bf5dd8b88b06b432e7cc571ded4e73e2beddba70f786a586643e245ea",
}
every_file = pytest.mark.parametrize("name", HASHES)


def test_every_classifier_has_a_golden_file():
    kept = {type(estimator).__name__ for estimator, *_ in MODELS.values()}
    assert kept == set(estimators.__all__)
    assert {path.stem for path in FOLDER.glob("v2-*.slts")} == set(HASHES) == set(MODELS)


def test_a_file_of_an_older_format_is_refused():
    expected = (
        r"v1-slts\.slts cannot be loaded: it was written by slts 0\.1\.0 in format 1, and this "
        r"slts, .*, reads format 2 only: train the model again and save it, or load it with the "
        r"version that wrote it"
    )
    for read in (slts.load, describe):
        with pytest.raises(slts.ModelFileError, match=expected):
            read(FOLDER / "v1-slts.slts")


@every_file
def test_the_golden_file_is_the_one_that_was_written(name):
    content = (FOLDER / f"{name}.slts").read_bytes()
    assert hashlib.sha256(content).hexdigest() == HASHES[name]


@every_file
def test_the_golden_file_loads_with_the_same_predictions(name):
    model = slts.load(FOLDER / f"{name}.slts")
    expected = json.loads((FOLDER / f"{name}.json").read_text(encoding="utf-8"))
    series = [np.array(x) for x in expected["series"]]
    assert model.classes_.tolist() == expected["classes"]
    assert model.predict(series).tolist() == expected["predict"]
    # Processors differ in rounding.
    for method in ("decision_function", "predict_proba"):
        np.testing.assert_allclose(getattr(model, method)(series), expected[method], rtol=1e-9)


@every_file
def test_the_golden_file_holds_the_parameters_it_was_made_with(name):
    estimator, labels, channels = MODELS[name]
    model = slts.load(FOLDER / f"{name}.slts")
    assert repr(model) == repr(estimator)
    assert model.classes_.dtype == np.asarray(labels).dtype
    facts = describe(FOLDER / f"{name}.slts")
    assert facts["format"] == 2
    assert facts["channel_names"] == ["u", "v"][:channels]
    assert facts["training"]["series"] == 6 * len(labels)
