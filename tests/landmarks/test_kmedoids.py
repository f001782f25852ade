"""Medoids: local optima, and the global one where it can be counted out."""

from itertools import combinations

import numpy as np
import pytest
from slts.landmarks import _Assignment, _initial_medoids, find_medoids


def plane_distances(rng, n, decimals=None):
    points = rng.normal(size=(n, 2))
    if decimals is not None:
        points = points.round(decimals)
    return np.linalg.norm(points[:, None] - points, axis=2)


def cost_of(dissimilarity, medoids):
    return dissimilarity[list(medoids)].min(axis=0).sum()


def best_cost(dissimilarity, n_medoids):
    n = len(dissimilarity)
    return min(cost_of(dissimilarity, chosen) for chosen in combinations(range(n), n_medoids))


@pytest.mark.parametrize("n_medoids", [1, 2, 3, 4])
def test_the_best_of_many_starts_is_the_optimum_on_tiny_inputs(rng, n_medoids):
    for _ in range(10):
        dissimilarity = plane_distances(rng, 11)
        found = min(
            find_medoids(dissimilarity, n_medoids, random_state=seed).cost for seed in range(30)
        )
        assert found == pytest.approx(best_cost(dissimilarity, n_medoids), rel=1e-12)


@pytest.mark.parametrize("decimals", [None, 0], ids=["distinct", "with ties and duplicates"])
def test_no_single_swap_improves(rng, decimals):
    for n_medoids in (2, 5, 9):
        dissimilarity = plane_distances(rng, 40, decimals)
        found = find_medoids(dissimilarity, n_medoids, random_state=3)
        for position in range(n_medoids):
            rest = np.delete(found.indices, position)
            for candidate in range(40):
                assert cost_of(dissimilarity, [*rest, candidate]) >= found.cost - 1e-9


def test_changes_are_what_each_swap_does_to_the_cost(rng):
    dissimilarity = plane_distances(rng, 25)
    medoids = np.array([3, 11, 17, 20])
    state = _Assignment(dissimilarity, medoids)
    for candidate in (0, 5, 24):
        expected = [
            cost_of(dissimilarity, [*np.delete(medoids, position), candidate]) - state.cost
            for position in range(4)
        ]
        np.testing.assert_allclose(state.changes(dissimilarity[candidate]), expected, atol=1e-12)


def test_swaps_never_raise_the_cost_of_the_start(rng):
    dissimilarity = plane_distances(rng, 60)
    for seed in range(10):
        found = find_medoids(dissimilarity, 6, random_state=seed)
        start = np.random.RandomState(seed)
        assert (
            found.cost <= cost_of(dissimilarity, _initial_medoids(dissimilarity, 6, start)) + 1e-12
        )


def test_clusters_far_apart_get_one_medoid_each(rng):
    centres = np.repeat(np.arange(5) * 100.0, 8)
    points = centres + rng.normal(size=40)
    found = find_medoids(np.abs(points[:, None] - points), 5, random_state=0)
    np.testing.assert_array_equal(found.indices // 8, np.arange(5))


def test_result_is_ascending_distinct_and_repeatable(rng):
    dissimilarity = plane_distances(rng, 50)
    one, two = (find_medoids(dissimilarity, 7, random_state=9) for _ in range(2))
    assert np.all(np.diff(one.indices) > 0)
    np.testing.assert_array_equal(one.indices, two.indices)
    assert one.cost == two.cost
    assert one.cost == pytest.approx(cost_of(dissimilarity, one.indices))


def test_scaling_the_dissimilarities_keeps_the_medoids(rng):
    dissimilarity = plane_distances(rng, 50)
    one = find_medoids(dissimilarity, 4, random_state=1)
    two = find_medoids(2.0**-30 * dissimilarity, 4, random_state=1)
    np.testing.assert_array_equal(one.indices, two.indices)


def test_all_items_can_be_medoids_and_copies_do_no_harm():
    zeros = np.zeros((6, 6))
    for n_medoids in range(1, 7):
        found = find_medoids(zeros, n_medoids, random_state=0)
        assert len(set(found.indices.tolist())) == n_medoids
        assert found.cost == 0.0


@pytest.mark.parametrize("n_medoids", [0, 4, -1])
def test_a_number_out_of_range_is_named(n_medoids):
    with pytest.raises(ValueError, match=rf"'n_medoids'.* from 1 to 3.*Got {n_medoids}"):
        find_medoids(np.zeros((3, 3)), n_medoids)


def test_a_matrix_that_is_not_square_is_named():
    with pytest.raises(ValueError, match=r"'dissimilarity'.*square.*\(2, 3\)"):
        find_medoids(np.zeros((2, 3)), 1)
