"""The choice of parameters by held-out accuracy."""

import numpy as np
import pytest
from slts.training.all_series_fit import left_out_decisions

from slts.solvers.calibration import Validation
from slts.training.held_out import search

CODES = np.array([0, 1, 0, 1, 1])
SPLITS = [(np.array([2, 3, 4]), np.array([0, 1])), (np.array([0, 1]), np.array([2, 3, 4]))]
# Decisions for class 1: right for all but series 4; for all but series 0; and as the second.
DECISIONS = [
    [np.array([-1.0, 2.0]), np.array([1.0, 2.0]), np.array([3.0, 4.0])],
    [np.array([-1.0, 1.0, -0.5]), np.array([-2.0, 1.0, 2.0]), np.array([-3.0, 1.0, 2.0])],
]
CANDIDATES = [{"lam": 0.1, "gamma": 1.0}, {"lam": 0.2, "gamma": 1.0}, {"lam": 0.3, "gamma": 2.0}]


def test_the_candidate_with_the_best_weighted_accuracy_is_chosen():
    weights, counts = np.array([1.0, 1.0, 1.0, 1.0, 6.0]), np.array([1.0, 1.0, 1.0, 1.0, 3.0])
    done = []
    found = search(
        DECISIONS, CANDIDATES, SPLITS, CODES, weights, counts, groups=np.array(list("aabbb")),
        progress=lambda *at: done.append(at),
    )  # fmt: skip
    np.testing.assert_allclose(found.scores, [[1.0, 0.25], [0.5, 1.0], [0.5, 1.0]])
    assert done == [(k, 6) for k in range(1, 7)]
    # The first of two equally good ones.
    assert found.best == 1
    assert found.best_params == CANDIDATES[1]
    decisions, codes, multiplicities = found.held_out
    np.testing.assert_array_equal(decisions[:, 1], [1.0, 2.0, -2.0, 1.0, 2.0])
    np.testing.assert_array_equal(codes, CODES)
    np.testing.assert_array_equal(multiplicities, counts)
    # Class weights count in the choice, not in the accuracy that is reported.
    assert found.validation == Validation("held-out", 5, 6 / 7, 2, 0.75)


def test_scores_have_the_form_of_scikit_learn():
    weights = np.ones(5)
    found = search(DECISIONS, CANDIDATES, SPLITS, CODES, weights, weights).cv_results
    assert found["params"] == CANDIDATES
    np.testing.assert_array_equal(found["param_lam"], [0.1, 0.2, 0.3])
    np.testing.assert_allclose(found["split1_test_score"], [2 / 3, 1.0, 1.0])
    np.testing.assert_allclose(found["mean_test_score"], [5 / 6, 0.75, 0.75])
    assert found["std_test_score"][1] == pytest.approx(0.25)
    assert found["rank_test_score"].tolist() == [1, 2, 2]


def test_nearest_neighbours_decide_on_series_that_are_left_out():
    nearness = np.array(
        [[9, 1, 2, 3, 4], [1, 9, 5, 6, 7], [2, 5, 9, 8, 0], [3, 6, 8, 9, -1], [4, 7, 0, -1, 9]]
    ).astype(float)
    codes = np.array([0, 0, 1, 1, 2])
    (decisions, found, weights), validation = left_out_decisions(nearness.__getitem__, codes, 3, 9)
    # The only series of a class is not left out.
    assert decisions.tolist() == [[1, 3, 4], [1, 6, 7], [5, 8, 0], [6, 8, -1]]
    assert (found.tolist(), weights.tolist()) == ([0, 0, 1, 1], [1.0] * 4)
    assert validation == Validation("leave-one-out", 4, 0.5)
    two = left_out_decisions(nearness.__getitem__, np.array([0, 0, 1, 1, 1]), 2, 2)[0]
    assert two[0].tolist() == [[3.0], [6.0]]
    assert left_out_decisions(nearness.__getitem__, np.arange(5), 5, 9) == (None, None)
