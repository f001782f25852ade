"""Landmarks: what each method promises about its choice; medoids are local optima."""

from itertools import combinations

import numpy as np
import pytest

import slts
from slts.alignment import AlignmentSettings
from slts.training.landmarks import (
    SELECTION_METHODS,
    find_medoids,
    landmark_positions,
    resolve_count,
    select_landmarks,
)
from tests.data import waves
from tests.training.options import landmark_options, training_set

every_method = pytest.mark.parametrize("method", SELECTION_METHODS)


@pytest.fixture
def series(rng):
    return [rng.normal(size=(3, rng.integers(4, 12))) for _ in range(30)]


@every_method
def test_indices_are_distinct_and_depend_on_the_seed_and_the_series_alone(series, method):
    how = {"method": method, "random_state": 5}
    one = select_landmarks(series, 12, **how)
    assert one.dtype == np.int64
    assert len(set(one.tolist())) == 12
    before = np.random.get_state()[1].copy()  # noqa: NPY002
    np.testing.assert_array_equal(select_landmarks(series, 12, **how, n_jobs=2), one)
    np.testing.assert_array_equal(np.random.get_state()[1], before)  # noqa: NPY002
    order = np.random.default_rng(0).permutation(30)
    turned = select_landmarks([series[i] for i in order], 12, **how)
    assert set(order[turned]) == set(one)
    everything = select_landmarks(series, 30, **how)
    np.testing.assert_array_equal(np.sort(everything), np.arange(30))
    if method != "kmedoids":
        np.testing.assert_array_equal(everything[:12], one)


@pytest.mark.parametrize("objective", ["affinity", "cost"])
def test_dselect_adds_the_series_least_similar_on_average(series, objective):
    how = {"objective": objective, "random_state": 4}
    chosen = select_landmarks(series, 10, method="dselect", **how).tolist()
    similarity = slts.similarity(series, objective=objective)
    for count in range(1, 10):
        means = similarity[chosen[:count]].mean(axis=0)
        means[chosen[:count]] = np.inf
        assert means[chosen[count]] <= means.min() + 1e-12


@pytest.mark.parametrize("normalize", [True, False])
def test_kmedoids_are_those_of_one_minus_the_symmetric_similarity(series, normalize):
    chosen = select_landmarks(series, 6, method="kmedoids", normalize=normalize, random_state=3)
    similarity = slts.similarity(series, normalize=normalize)
    dissimilarity = max(1.0, similarity.max()) - 0.5 * (similarity + similarity.T)
    np.fill_diagonal(dissimilarity, 0.0)
    assert_no_swap_improves(dissimilarity, chosen)


@every_method
def test_rounding_of_the_rows_does_not_change_the_choice(method):
    series, codes = waves(40, channels=2)
    data = training_set(series, codes)
    nearly = slts.SeriesBatch(np.nextafter(data.series.values, np.inf), data.series.offsets)
    settings = AlignmentSettings("affinity", None, normalize=False)
    options = landmark_options(landmarks=method, seed=7, settings=settings)
    one, other = (landmark_positions(data, rows, 8, options) for rows in (data.series, nearly))
    np.testing.assert_array_equal(one, other)
    if method == "dselect":
        # The first one is random: the first in the order of the keys.
        assert one[0] == 0


def test_landmarks_may_be_indices_of_series_that_are_learned_from():
    series, codes = waves(10)
    series[7] = series[2]
    data = training_set(series, codes, weights=np.where(np.arange(10) == 4, 0.0, 1.0))

    def positions(landmarks, data=data):
        options = landmark_options(landmarks=landmarks)
        return landmark_positions(data, data.series, 3, options)

    assert data.indices[positions([9, 3, 2])].tolist() == [9, 3, 2]
    with pytest.raises(ValueError, match=r"'landmarks'.* between 0 and 9"):
        positions([3, 10])
    with pytest.raises(ValueError, match=r"'landmarks'.* series 4 has no weight"):
        positions([3, 4])


@pytest.mark.parametrize(
    ("n_landmarks", "n_series", "expected"),
    [
        (1, 1, 1), (7, 7, 7), (np.int64(3), 7, 3), (0.5, 5, 3), (0.5, 270, 135), (0.145, 100, 15),
        (0.144, 100, 14), (1e-9, 10, 1), (0.999, 10, 10), (1.0, 10, 10), (np.float32(0.25), 10, 3),
    ],
)  # fmt: skip
def test_counts_and_fractions(n_landmarks, n_series, expected):
    count = resolve_count(n_landmarks, n_series)
    assert type(count) is int
    assert count == expected


@pytest.mark.parametrize("value", [0, -1, 8, 0.0, -0.5, 1.5, float("nan"), True, "all", None])
def test_a_count_that_makes_no_sense_is_named(value):
    with pytest.raises(ValueError, match=r"'n_landmarks'.* from 1 to 7") as error:
        resolve_count(value, 7)
    assert repr(value) in str(error.value)


@pytest.mark.parametrize(
    ("how", "message"),
    [
        ({"n": 3, "method": "best"}, "'method'.*'best'"),
        ({"n": 31}, "'n' parameter.*31"),
        ({"n": 3, "objective": "speed"}, "'objective'"),
        ({"n": 3, "device": "tpu"}, "'device'"),
        ({"n": 1, "X": [np.full((1, 3), np.nan)]}, "NaN"),
    ],
)
def test_errors_name_the_argument(series, how, message):
    with pytest.raises(ValueError, match=message):
        select_landmarks(**{"X": series} | how)


# ---- k-medoids


def plane_distances(rng, n, decimals=None):
    points = rng.normal(size=(n, 2))
    points = points if decimals is None else points.round(decimals)
    return np.linalg.norm(points[:, None] - points, axis=2)


def cost_of(dissimilarity, medoids):
    return dissimilarity[list(medoids)].min(axis=0).sum()


def assert_no_swap_improves(dissimilarity, medoids):
    cost = cost_of(dissimilarity, medoids)
    for position in range(len(medoids)):
        rest = np.delete(medoids, position)
        for candidate in range(len(dissimilarity)):
            assert cost_of(dissimilarity, [*rest, candidate]) >= cost - 1e-9


def medoids_of(dissimilarity, count, seed=3):
    return find_medoids(dissimilarity, count, np.random.RandomState(seed))


@pytest.mark.parametrize("count", [1, 2, 3, 4])
def test_the_best_of_many_starts_is_the_optimum_on_tiny_inputs(rng, count):
    for _ in range(10):
        distances = plane_distances(rng, 11)
        cost = min(cost_of(distances, medoids_of(distances, count, seed)) for seed in range(30))
        best = min(cost_of(distances, chosen) for chosen in combinations(range(11), count))
        assert cost == pytest.approx(best, rel=1e-12)


@pytest.mark.parametrize(
    "decimals", [None, 0, -9], ids=["distinct", "with ties and duplicates", "all equal"]
)
@pytest.mark.parametrize("count", [2, 5, 9])
def test_medoids_are_a_local_optimum_whatever_the_scale(rng, decimals, count):
    distances = plane_distances(rng, 40, decimals)
    medoids = medoids_of(distances, count)
    assert (np.diff(medoids) > 0).all()
    assert_no_swap_improves(distances, medoids)
    np.testing.assert_array_equal(medoids_of(2.0**-30 * distances, count), medoids)
