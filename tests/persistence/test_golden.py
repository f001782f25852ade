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
    "v2-slts": "d0bc0b13f1f41ea5119b28a55fb9b681f21e3bfab61b606a911860bd03bba53f",
    "v2-slts-cv": "9502669bde258cfab77d7be3e7e820b9f09b8fc16d476affcc5162af3047e3f2",
    "v2-bbs": "b367304a7b82fbf79fddde3515dfdd6938bec7d4cecb3c3755cbbaa684227d92",
    "v2-bbs-cv": "06ff91dbbaea5cc6f545a4dbf520393780b959f7f3f23d3392ef4793b52f743f",
    "v2-one-nn": "c8dfe8673a3309e07de2bd7dbe5330099ba23cacfda076b6b29ee68157eefb85",
    "v2-svc": "05e05c9c55cd76486eb1572c6dce3d7d35cb582945eb9708e0bf7c5c8b4f8dec",
    "v2-ldmlt": "ad4902d33ca248768aecba65b07d99e73ae83bfbc81d65a5073fcabf6658e7dd",
    "v2-local": "30602dca9c12467a7c566e43abf4a61a12677b242cb90addde9da361c90945fd",
    "v2-slts-names": "395cf73ae78cb3ef627c1e4ab229872557bb377e4c23e353c7b0bf92c5b15485",
    "v2-local-snippets": "8f08fc08b557c6a0344a5f89abe76e5c4ad622b42a4ba7bcf9b0c343b754ed85",
}
every_file = pytest.mark.parametrize("name", HASHES)


def test_every_classifier_has_a_golden_file():
    kept = {type(estimator).__name__ for estimator, *_ in MODELS.values()}
    assert kept == set(estimators.__all__) - {"SeriesScaler"}
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


def test_a_file_from_before_validation_has_none():
    assert slts.load(FOLDER / "v2-slts.slts").validation_ is None


def test_a_file_from_before_snippets_has_none(tmp_path):
    model = slts.load(FOLDER / "v2-local.slts")
    assert (model.n_snippets, model.snippets_, model.snippet_coef_) == (0, None, None)
    slts.save(model, tmp_path / "again.slts")
    again = slts.load(tmp_path / "again.slts")
    x = np.random.default_rng(0).normal(size=(2, 9))
    np.testing.assert_array_equal(again.decision_function([x]), model.decision_function([x]))
    assert slts.explain(again, x).by_snippet.shape == (3, 0)
