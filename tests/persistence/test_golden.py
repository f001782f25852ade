"""Golden files of the current format load, and the file of an older format is refused.

A change that makes this module fail breaks the files of users.
"""

import json

import numpy as np
import pytest

import slts
from slts.persistence import describe
from tests.persistence.make_golden import FOLDER, MODELS


@pytest.mark.parametrize("read", [slts.load, describe])
def test_a_file_of_an_older_format_is_refused(read):
    expected = r"v2-slts\.slts cannot .* by slts 0\.2\.0 in format 2, and this .* reads format 4"
    with pytest.raises(slts.ModelFileError, match=expected):
        read(FOLDER / "v2-slts.slts")


@pytest.mark.parametrize("name", MODELS)
def test_a_golden_file_loads_as_the_model_it_was_made_from(name):
    estimator, labels = MODELS[name]
    model, facts = slts.load(FOLDER / f"{name}.slts"), describe(FOLDER / f"{name}.slts")
    expected = json.loads((FOLDER / f"{name}.json").read_text(encoding="utf-8"))
    assert {key: facts[key] for key in ("sha256", "channel_names", "classes")} == expected["facts"]
    assert (facts["format"], repr(model)) == (4, repr(estimator))
    assert model.classes_.dtype == np.asarray(labels).dtype
    assert model.series_name(int(model.landmark_indices_[0])) == expected["landmark"]
    series = [np.array(x) for x in expected["series"]]
    assert model.predict(series).tolist() == expected["predict"]
    # Processors differ in rounding.
    for method in ("decision_function", "predict_proba"):
        np.testing.assert_allclose(getattr(model, method)(series), expected[method], rtol=1e-9)
