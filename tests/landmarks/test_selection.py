"""Landmarks: what each method promises about its choice."""

import numpy as np
import pytest
from slts.landmarks import find_medoids, resolve_count, select_landmarks

import slts
from slts.alignment import Aligner

SELECTION_METHODS = ("random", "kmedoids", "dselect")


@pytest.fixture
def series(rng):
    return [rng.normal(size=(3, rng.integers(4, 12))) for _ in range(30)]


@pytest.fixture
def aligned_pairs(monkeypatch):
    """Number of pairs in each call of `Aligner.similarities` from here on."""
    pairs = []
    compute = Aligner.similarities

    def counted(self, series, **options):
        pairs.append(len(series) * len(self.landmarks))
        return compute(self, series, **options)

    monkeypatch.setattr(Aligner, "similarities", counted)
    return pairs


@pytest.mark.parametrize("method", SELECTION_METHODS)
def test_indices_are_distinct_in_range_and_repeatable(series, method):
    one, two = (select_landmarks(series, 12, method=method, random_state=5) for _ in range(2))
    np.testing.assert_array_equal(one, two)
    assert one.dtype == np.int64
    assert len(set(one.tolist())) == 12
    assert one.min() >= 0
    assert one.max() < 30


@pytest.mark.parametrize("method", SELECTION_METHODS)
def test_all_series_can_be_landmarks(series, method):
    chosen = select_landmarks(series, 30, method=method, random_state=0)
    np.testing.assert_array_equal(np.sort(chosen), np.arange(30))


@pytest.mark.parametrize("method", SELECTION_METHODS)
def test_threads_do_not_change_the_choice(series, method):
    one, two = (
        select_landmarks(series, 9, method=method, random_state=2, n_jobs=n_jobs)
        for n_jobs in (1, 2)
    )
    np.testing.assert_array_equal(one, two)


@pytest.mark.parametrize("method", SELECTION_METHODS)
def test_the_global_generator_is_left_alone(series, method):
    before = np.random.get_state()[1].copy()  # noqa: NPY002
    select_landmarks(series, 4, method=method, random_state=1)
    np.testing.assert_array_equal(before, np.random.get_state()[1])  # noqa: NPY002


@pytest.mark.parametrize("method", ["random", "dselect"])
def test_fewer_landmarks_are_the_first_of_more(series, method):
    many = select_landmarks(series, 20, method=method, random_state=8)
    few = select_landmarks(series, 6, method=method, random_state=8)
    np.testing.assert_array_equal(many[:6], few)


def test_random_aligns_nothing(series, aligned_pairs):
    assert len(select_landmarks(series, 5, random_state=0)) == 5
    assert not aligned_pairs


def test_random_draws_every_series_about_equally_often():
    X = np.arange(20.0).reshape(10, 1, 2)
    counts = np.zeros(10)
    for seed in range(500):
        counts[select_landmarks(X, 3, random_state=seed)] += 1
    # 150 expected, standard deviation 10.2.
    assert np.abs(counts - 150).max() < 45


@pytest.mark.parametrize("objective", ["affinity", "cost"])
def test_dselect_adds_the_series_least_similar_on_average(series, objective):
    chosen = select_landmarks(
        series, 10, method="dselect", objective=objective, random_state=4
    ).tolist()
    similarity = slts.similarity(series, objective=objective)
    for count in range(1, 10):
        means = similarity[chosen[:count]].mean(axis=0)
        means[chosen[:count]] = np.inf
        assert means[chosen[count]] <= means.min() + 1e-12


def test_dselect_aligns_only_the_chosen_with_the_rest(series, aligned_pairs):
    select_landmarks(series, 5, method="dselect", random_state=0)
    assert sum(aligned_pairs) == 4 * 30


@pytest.mark.parametrize("normalize", [True, False])
def test_kmedoids_are_those_of_one_minus_the_symmetric_similarity(series, normalize):
    chosen = select_landmarks(series, 6, method="kmedoids", normalize=normalize, random_state=3)
    similarity = slts.similarity(series, normalize=normalize)
    dissimilarity = max(1.0, similarity.max()) - 0.5 * (similarity + similarity.T)
    np.fill_diagonal(dissimilarity, 0.0)
    expected = find_medoids(dissimilarity, 6, random_state=3)
    assert dissimilarity[chosen].min(axis=0).sum() == pytest.approx(expected.cost, rel=1e-9)


def test_kmedoids_finds_the_groups():
    angles = np.repeat([0.0, 2.0, 4.0], 5) + np.tile(np.linspace(-0.1, 0.1, 5), 3)
    X = [np.outer([np.cos(a), np.sin(a)], np.ones(4 + k % 3)) for k, a in enumerate(angles)]
    chosen = select_landmarks(X, 3, method="kmedoids", random_state=0)
    np.testing.assert_array_equal(chosen, [2, 7, 12])


@pytest.mark.parametrize("method", ["random", "kmedoids", "dselect"])
def test_the_choice_does_not_depend_on_the_order_of_the_series(series, method):
    order = np.random.default_rng(0).permutation(len(series))
    one = select_landmarks(series, 5, method=method, random_state=0)
    two = select_landmarks([series[i] for i in order], 5, method=method, random_state=0)
    assert set(one) == set(order[two])


@pytest.mark.parametrize(
    ("n_landmarks", "n_series", "expected"),
    [
        (1, 1, 1),
        (7, 7, 7),
        (np.int64(3), 7, 3),
        (0.5, 5, 3),
        (0.5, 270, 135),
        (0.145, 100, 15),
        (0.144, 100, 14),
        (1e-9, 10, 1),
        (0.999, 10, 10),
        (1.0, 10, 10),
        (np.float32(0.25), 10, 3),
    ],
)
def test_counts_and_fractions(n_landmarks, n_series, expected):
    count = resolve_count(n_landmarks, n_series)
    assert type(count) is int
    assert count == expected


@pytest.mark.parametrize("value", [0, -1, 8, 0.0, -0.5, 1.5, float("nan"), True, "all", None])
def test_a_count_that_makes_no_sense_is_named(value):
    with pytest.raises(ValueError, match=r"'n_landmarks'.* from 1 to 7.*\(0, 1\].*Got") as error:
        resolve_count(value, 7)
    assert repr(value) in str(error.value)


def test_no_series_is_a_data_error():
    with pytest.raises(slts.DataError, match="0 series"):
        resolve_count(1, 0)


def test_errors_name_the_argument(series):
    with pytest.raises(ValueError, match=r"'method'.*'random', 'kmedoids', 'dselect'.*'best'"):
        select_landmarks(series, 3, method="best")
    with pytest.raises(ValueError, match=r"The 'n' parameter.*Got 31"):
        select_landmarks(series, 31)
    with pytest.raises(ValueError, match="'objective'"):
        select_landmarks(series, 3, objective="speed")
    with pytest.raises(slts.DataError, match="NaN"):
        select_landmarks([np.full((1, 3), np.nan)], 1)
