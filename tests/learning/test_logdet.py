"""LDMLT: the step is the one written down, M stays positive definite, learning helps."""

import numpy as np
import pytest

import slts
from slts.alignment import AlignmentSettings
from slts.alignment.reductions import distances
from slts.learning import logdet
from slts.learning.logdet import learn_logdet_metric, logdet_step, transform_rows
from slts.series import as_series, normalize_rows

PLAIN = AlignmentSettings(objective="distance", normalize=False)


def two_informative_channels(rng, n_per_class=20, noise=3.0, n_classes=3, n_channels=5):
    """Classes differ by shape in channels 0 and 1; the rest is loud noise."""
    labels = np.repeat(np.arange(n_classes), n_per_class)
    series = []
    for label in labels:
        steps = rng.integers(8, 14)
        time = np.linspace(0, 1, steps)
        x = rng.normal(scale=noise, size=(n_channels, steps))
        x[0] = np.sin(np.pi * (label + 1) * time) + 0.2 * rng.normal(size=steps)
        x[1] = np.cos(np.pi * (label + 1) * time) + 0.2 * rng.normal(size=steps)
        series.append(x)
    return as_series(series), labels


def nearest_accuracy(batch, labels, other, other_labels, metric):
    found = distances(transform_rows(other, metric), transform_rows(batch, metric), PLAIN)
    return np.mean(labels[found.argmin(axis=1)] == other_labels)


def random_factor(rng, d):
    return np.tril(rng.normal(size=(d, d)), -1) + np.diag(rng.uniform(0.2, 2.0, size=d))


def random_step(rng, d=5, rate=0.3):
    """A factor and the differences of a violated triplet, seen plainly and through L."""
    factor = random_factor(rng, d)
    near, far = rng.normal(size=(d, 7)), 0.4 * rng.normal(size=(d, 4))
    return factor, near, far, rate


# The step.


def test_step_is_the_explicit_inverse_formula(rng):
    for d in (1, 2, 5, 12):
        factor, near, far, rate = random_step(rng, d)
        metric = factor @ factor.T
        pull, push = factor.T @ near, factor.T @ far
        step = rate / max(np.sum(pull**2), np.sum(push**2))
        expected = np.linalg.inv(np.linalg.inv(metric) + step * (near @ near.T - far @ far.T))
        updated = logdet_step(factor, pull, push, rate)
        np.testing.assert_allclose(updated @ updated.T, expected, rtol=1e-9, atol=1e-12)


def test_step_is_two_woodbury_updates(rng):
    factor, near, far, rate = random_step(rng)
    metric = factor @ factor.T
    pull, push = factor.T @ near, factor.T @ far
    step = rate / max(np.sum(pull**2), np.sum(push**2))
    for differences, sign in ((near, 1.0), (far, -1.0)):
        product = metric @ differences
        inner = sign * np.eye(differences.shape[1]) / step + differences.T @ product
        metric = metric - product @ np.linalg.solve(inner, product.T)
    updated = logdet_step(factor, pull, push, rate)
    np.testing.assert_allclose(updated @ updated.T, metric, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("rate", [1e-3, 0.5, 0.999])
def test_step_keeps_the_metric_positive_definite(rng, rate):
    for _ in range(50):
        factor = random_factor(rng, 4)
        pull = rng.normal(size=(4, rng.integers(1, 9))) * rng.choice([0.0, 0.1, 10.0])
        push = rng.normal(size=(4, 1)) * rng.choice([0.1, 1.0, 1e6])
        updated = logdet_step(factor, pull, push, rate)
        # Seen through L: between (1 + rate)^-1 and (1 - rate)^-1.
        inner = np.linalg.solve(factor, updated)
        values = np.linalg.eigvalsh(inner @ inner.T)
        assert values[0] >= 1 / (1 + rate) * (1 - 1e-6)
        assert values[-1] <= 1 / (1 - rate) * (1 + 1e-6)


def test_margin_along_the_paths_grows_with_every_step(rng):
    for _ in range(50):
        factor, near, far, rate = random_step(rng)
        updated = logdet_step(factor, factor.T @ near, factor.T @ far, rate)

        def margin(root, near=near, far=far):
            return np.sum((root.T @ far) ** 2) - np.sum((root.T @ near) ** 2)

        assert margin(updated) > margin(factor)


def test_a_small_step_improves_the_triplet_with_paths_found_anew(rng):
    batch, labels = two_informative_channels(rng)
    learner = logdet._Learner(batch, labels, 0.0, "cpu", None, None)
    for i, j, k in learner.rank(None, np.random.RandomState(0)).draw(40, np.random.RandomState(0)):
        learner.factor = np.eye(5)
        learner._learn_from(batch[i], batch[j], batch[k], 1e-3)
        rows = transform_rows(batch, learner.factor @ learner.factor.T)
        before = distances(batch[[i]], batch[[j, k]], PLAIN)[0]
        after = distances(rows[[i]], rows[[j, k]], PLAIN)[0]
        assert after[1] / after[0] > before[1] / before[0]


def test_two_equal_series_teach_nothing():
    factor = np.eye(3)
    assert logdet_step(factor, np.zeros((3, 4)), np.zeros((3, 4)), 0.5) is factor


# The ranking.


def disorder_by_counting(found, labels):
    wrong = possible = 0
    for i, label in enumerate(labels):
        others = np.delete(np.arange(len(labels)), i)
        for j in others[labels[others] == label]:
            for k in others[labels[others] != label]:
                possible += 1
                wrong += found[i, k] < found[i, j] or (found[i, k] == found[i, j] and k < j)
    return wrong / possible


def test_disorder_counts_pairs_in_the_wrong_order(rng):
    labels = rng.integers(0, 3, size=15)
    for found in (rng.random((15, 15)), rng.integers(0, 4, size=(15, 15)).astype(float)):
        ranking = logdet._Ranking(found, labels, np.arange(15))
        assert ranking.disorder == pytest.approx(disorder_by_counting(found, labels))


def test_triplets_are_inversions_drawn_uniformly(rng):
    labels = np.array([0, 0, 0, 1, 1, 1])
    found = rng.random((6, 6))
    draws = logdet._Ranking(found, labels, np.arange(6)).draw(20_000, np.random.RandomState(0))
    i, j, k = draws.T
    assert np.all(labels[i] == labels[j])
    assert np.all(labels[i] != labels[k])
    assert np.all(i != j)
    assert np.all(found[i, k] < found[i, j])
    kinds, counts = np.unique(draws, axis=0, return_counts=True)
    inversions = round(disorder_by_counting(found, labels) * 6 * 2 * 3)
    assert len(kinds) == inversions
    expected = 20_000 / inversions
    assert np.abs(counts - expected).max() < 5 * np.sqrt(expected)


def test_ranked_series_are_a_proportional_subset_drawn_afresh():
    classes = np.repeat([0, 1, 2], [100, 200, 300])
    rng = np.random.RandomState(0)
    one, two = logdet._members(classes, 60, rng), logdet._members(classes, 60, rng)
    for chosen in (one, two):
        assert len(set(chosen.tolist())) == 60
        np.testing.assert_allclose(np.bincount(classes[chosen]), [10, 20, 30], atol=1)
    assert set(one.tolist()) != set(two.tolist())
    np.testing.assert_array_equal(logdet._members(classes, 600, rng), np.arange(600))


# Learning.


def test_learning_finds_the_informative_channels(rng):
    batch, labels = two_informative_channels(rng)
    test, test_labels = two_informative_channels(rng)
    found = learn_logdet_metric(batch, labels, random_state=0)
    plain = nearest_accuracy(batch, labels, test, test_labels, np.eye(5))
    learned = nearest_accuracy(batch, labels, test, test_labels, found.metric)
    assert plain < 0.7
    assert learned > 0.9
    assert np.diag(found.metric)[:2].min() > 3 * np.diag(found.metric)[2:].max()


def test_metric_is_symmetric_positive_definite_with_the_trace_of_the_identity(rng):
    batch, labels = two_informative_channels(rng)
    for margin in (0.0, 5.0):
        metric = learn_logdet_metric(
            batch, labels, margin=margin, n_cycles=2, random_state=0
        ).metric
        np.testing.assert_array_equal(metric, metric.T)
        assert np.trace(metric) == pytest.approx(5.0)
        assert np.linalg.eigvalsh(metric)[0] > 0


def test_every_metric_on_the_way_is_positive_definite(rng, monkeypatch):
    batch, labels = two_informative_channels(rng, n_per_class=6)
    smallest = []

    def watched(*args):
        factor = logdet_step(*args)
        smallest.append(np.linalg.eigvalsh(factor @ factor.T)[0])
        return factor

    monkeypatch.setattr(logdet, "logdet_step", watched)
    # Few triplets and a large alpha: every step at the largest rate.
    found = learn_logdet_metric(
        batch, labels, triplets_per_series=2, alpha=1e9, n_cycles=3, random_state=0
    )
    assert len(smallest) == found.n_updates > 0
    assert min(smallest) > 0


def test_solution_is_never_more_disordered_than_the_identity(rng):
    labels = np.repeat([0, 1], 12)
    for scale in (1.0, 100.0):
        batch = as_series(list(scale * rng.normal(size=(24, 3, 6))))
        found = learn_logdet_metric(batch, labels, alpha=50.0, n_cycles=4, random_state=1)
        rows = transform_rows(batch, found.metric)
        kept = logdet._Ranking(distances(rows, rows, PLAIN), labels, np.arange(24)).disorder
        assert kept == pytest.approx(min(found.disorder), abs=1e-3)
        assert min(found.disorder) <= found.disorder[0]


def test_same_seed_same_metric_and_threads_do_not_matter(rng):
    batch, labels = two_informative_channels(rng, n_per_class=8)
    one = learn_logdet_metric(batch, labels, n_cycles=2, random_state=3)
    two = learn_logdet_metric(batch, labels, n_cycles=2, random_state=3, n_jobs=2)
    other = learn_logdet_metric(batch, labels, n_cycles=2, random_state=4)
    np.testing.assert_array_equal(one.metric, two.metric)
    assert one.disorder == two.disorder
    assert not np.array_equal(one.metric, other.metric)


def test_names_of_the_classes_and_scale_of_the_data_do_not_matter(rng):
    batch, labels = two_informative_channels(rng, n_per_class=8)
    one = learn_logdet_metric(batch, labels, n_cycles=2, random_state=3)
    renamed = learn_logdet_metric(batch, 7 - 3 * labels, n_cycles=2, random_state=3)
    np.testing.assert_array_equal(one.metric, renamed.metric)
    larger = as_series([4.0 * x for x in batch])
    scaled = learn_logdet_metric(larger, labels, n_cycles=2, random_state=3)
    np.testing.assert_allclose(one.metric, scaled.metric, rtol=1e-9)


def test_order_of_the_channels_is_the_order_of_the_metric(rng):
    batch, labels = two_informative_channels(rng, n_per_class=8)
    order = [3, 0, 4, 1, 2]
    one = learn_logdet_metric(batch, labels, n_cycles=2, random_state=3)
    two = learn_logdet_metric(
        as_series([x[order] for x in batch]), labels, n_cycles=2, random_state=3
    )
    np.testing.assert_allclose(one.metric[np.ix_(order, order)], two.metric, rtol=1e-6, atol=1e-9)


def test_a_ranking_of_some_learns_like_a_ranking_of_all(rng):
    batch, labels = two_informative_channels(rng)
    found = learn_logdet_metric(batch, labels, ranking_limit=30, n_cycles=4, random_state=0)
    assert found.disorder[-1] < 0.3 * found.disorder[0]
    assert np.diag(found.metric)[:2].min() > 3 * np.diag(found.metric)[2:].max()


def test_nothing_to_learn_leaves_the_identity(rng):
    series = list(rng.normal(size=(6, 2, 5)))
    one_class = learn_logdet_metric(as_series(series), np.zeros(6, dtype=int))
    np.testing.assert_array_equal(one_class.metric, np.eye(2))
    assert one_class.converged
    assert one_class.disorder == (0.0,)
    every_one_alone = learn_logdet_metric(as_series(series), np.arange(6))
    np.testing.assert_array_equal(every_one_alone.metric, np.eye(2))
    one_channel = learn_logdet_metric(as_series([x[:1] for x in series]), [0, 1] * 3)
    np.testing.assert_array_equal(one_channel.metric, [[1.0]])
    assert one_channel.n_updates == 0


def test_ordered_data_stop_at_once():
    far_apart = as_series([np.full((2, 4), 100.0 * (k // 3) + k % 3) for k in range(9)])
    found = learn_logdet_metric(far_apart, np.arange(9) // 3)
    assert (found.converged, found.n_cycles, found.n_updates) == (True, 0, 0)


def test_progress_rises_to_the_number_of_cycles(rng):
    batch, labels = two_informative_channels(rng, n_per_class=8)
    seen = []
    learn_logdet_metric(
        batch, labels, n_cycles=3, random_state=0, progress=lambda *now: seen.append(now)
    )
    done = [now[0] for now in seen]
    assert done == sorted(done)
    assert seen[-1] == (3, 3)


def test_transformed_rows_give_the_distance_under_the_metric(rng):
    batch = as_series([rng.normal(size=(3, n)) for n in (4, 6, 5)])
    root = random_factor(rng, 3)
    metric = root @ root.T
    rows = transform_rows(batch, metric)
    found = distances(rows, rows, PLAIN)
    for p in range(3):
        for q in range(3):
            path = slts.align(rows[p], rows[q], objective="distance", normalize=False).path
            difference = batch[p][:, path[:, 0]] - batch[q][:, path[:, 1]]
            total = np.einsum("it,ij,jt->", difference, metric, difference)
            assert found[p, q] == pytest.approx(total, rel=1e-9, abs=1e-9)


def test_japanese_vowels_reach_the_published_accuracy():
    datasets = pytest.importorskip("aeon.datasets")
    parts = []
    for split in ("train", "test"):
        X, y = datasets.load_japanese_vowels(split=split)
        parts += [normalize_rows(as_series(list(X))), np.asarray(y).astype(int)]
    train, labels, test, test_labels = parts
    found = learn_logdet_metric(train, labels, random_state=0)
    # 97.3 in the paper; 94.1 at M = I.
    assert nearest_accuracy(train, labels, test, test_labels, found.metric) >= 0.965
    assert found.disorder[-1] < 0.5 * found.disorder[0]


# Errors.


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("n_cycles", 0),
        ("n_cycles", 2.5),
        ("n_cycles", True),
        ("triplets_per_series", 0),
        ("triplets_per_series", "many"),
        ("margin", -1.0),
        ("margin", float("nan")),
        ("alpha", 0.0),
        ("alpha", float("inf")),
        ("ranking_limit", 1),
    ],
)
def test_a_parameter_that_makes_no_sense_is_named(rng, name, value):
    batch = as_series(list(rng.normal(size=(4, 2, 5))))
    with pytest.raises(ValueError, match=rf"'{name}' parameter.*must be.*Got {value!r}"):
        learn_logdet_metric(batch, [0, 0, 1, 1], **{name: value})


@pytest.mark.parametrize("labels", [[0, 1, 0], [[0, 1, 0, 1]], [0.0, 1.0, 0.0, 1.0]])
def test_labels_that_do_not_fit_are_named(rng, labels):
    batch = as_series(list(rng.normal(size=(4, 2, 5))))
    with pytest.raises(slts.DataError, match="'labels' must be 4 integers"):
        learn_logdet_metric(batch, labels)


def test_an_empty_batch_is_a_data_error(rng):
    batch = as_series(list(rng.normal(size=(4, 2, 5))))[:0]
    with pytest.raises(slts.DataError, match="no series"):
        learn_logdet_metric(batch, np.empty(0, dtype=int))


def test_a_metric_that_does_not_fit_is_named(rng):
    batch = as_series(list(rng.normal(size=(4, 2, 5))))
    with pytest.raises(ValueError, match=r"'metric'.*\(2, 2\).*\(3, 3\)"):
        transform_rows(batch, np.eye(3))
    with pytest.raises(ValueError, match=r"'metric'.*positive definite.*-1"):
        transform_rows(batch, np.diag([1.0, -1.0]))
