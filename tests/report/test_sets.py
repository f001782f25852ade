"""The section about prediction sets, and the sets in the explorer."""

import numpy as np
import pytest

import slts
from slts.report import collect, render


@pytest.fixture
def sets(model, three):
    return slts.prediction_sets(model).predict(three.X_test, 0.05)


def section(content):
    found = render(content).partition('id="sets"')[2].partition("</section>")[0]
    return " ".join(found.split())


def test_sizes_and_coverage_are_those_of_the_sets(content, sets, three, model):
    rows = {one["alpha"]: one for one in content["sets"]["sizes"]}
    assert list(rows) == [0.1, 0.05]
    found = rows[0.05]
    sizes = sets.sizes
    counts = [int(np.sum(sizes == 0)), int(np.sum(sizes == 1)), int(np.sum(sizes > 1))]
    assert [found["none"], found["one"], found["several"]] == counts
    assert found["mean"] == pytest.approx(sizes.mean(), abs=1e-4)
    assert found["covered"] == pytest.approx(sets.contains(three.y_test).mean(), abs=1e-6)
    assert content["sets"]["guarantee"] == slts.prediction_sets(model).guarantee


def test_series_with_no_class_or_several_are_listed(content, sets):
    odd = content["sets"]["odd"]
    assert len(odd) == content["sets"]["n_odd"] == np.sum(sets.sizes != 1) > 0
    for one in odd:
        assert (
            one["set"]
            == np.flatnonzero(sets.members[int(one["id"].removeprefix("series "))]).tolist()
        )
    sizes = [len(one["set"]) for one in odd]
    assert sizes == sorted(sizes, key=lambda n: (n > 0, -n))


def test_series_of_the_explorer_have_their_set(content, sets):
    for entry in content["explorer"]["entries"]:
        members = np.flatnonzero(sets.members[entry["index"]]).tolist()
        assert entry["set"] == {"confidence": "95%", "classes": members}


def test_the_page_says_what_the_sets_are(content):
    text = section(content)
    assert "without a proven guarantee" in text
    # An accurate model has empty sets for known classes too: nothing says "unlike anything seen".
    assert "at most 5% of the series of known classes have an empty set" in text
    assert "differ from those" not in text
    assert "True class in the set" in text
    sizes = [one | {"covered": 0.5} for one in content["sets"]["sizes"]]
    shifted = section(content | {"sets": content["sets"] | {"sizes": sizes}})
    assert "Only 50.0% of these sets contain the true class." in shifted
    empty = {"id": "odd one", "set": [], "truth": 0, "predicted": 0}
    changed = content | {"sets": content["sets"] | {"odd": [empty], "n_odd": 300}}
    assert ">no class<" in section(changed)
    assert "1 of 300 series whose set has no class or several" in section(changed)


def test_without_labels_there_is_no_coverage(model, three):
    found = collect(model, three.X_test)
    assert {one["covered"] for one in found["sets"]["sizes"]} == {None}
    assert "True class" not in section(found)


def test_labels_that_the_model_does_not_know_are_in_no_set(model, three, sets):
    unknown = np.full(len(three.y_test), "zebra")
    rows = collect(model, three.X_test, unknown)["sets"]["sizes"]
    assert [one["covered"] for one in rows] == [0.0, 0.0]


def test_without_margins_or_data_there_is_no_section(model, three):
    assert collect(model)["sets"] is None
    bare = slts.SLTSClassifier(16, calibration_cv=None, random_state=0).fit(three.X, three.y)
    found = collect(bare, three.X_test, three.y_test)
    assert found["sets"] is None
    assert section(found) == ""
    assert "set" not in found["explorer"]["entries"][0]
