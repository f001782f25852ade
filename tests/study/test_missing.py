"""The study of missing values, on small data."""

import numpy as np
import pytest

from study import missing
from tests.study import synthetic


@pytest.mark.parametrize("how", ["random", "blocks"])
def test_a_share_of_the_values_is_removed(how):
    rng = np.random.default_rng(0)
    values = rng.normal(size=(5, 400))
    found = missing.remove(values, 0.3, how, rng)
    gone = np.isnan(found)
    np.testing.assert_allclose(gone.mean(axis=1), 0.3, atol=0.1)
    np.testing.assert_array_equal(found[~gone], values[~gone])
    # Blocks have one beginning and one end per channel.
    changes = np.count_nonzero(np.diff(gone, axis=1), axis=1)
    assert (changes <= 2).all() == (how == "blocks")


def test_a_series_keeps_a_value():
    found = missing.remove(np.ones((1, 1)), 1.0, "random", np.random.default_rng(0))
    assert found.tolist() == [[1.0]]


@pytest.mark.slow
def test_the_document_has_every_condition_of_every_method():
    text, *rest = missing.document(["robot_lp1"], 1, "the command", synthetic.load)
    assert "the command" in text
    assert rest[::2] == [f"## {name}" for name in missing.CLASSIFIERS]
    for grid in rest[1::2]:
        assert grid.header[1:5] == ("complete", "random 10%", "random 30%", "random 50%")
        assert [row[0] for row in grid.rows] == ["LP1", "mean"]
        assert all(" / " in cell for cell in grid.rows[0][2:])
