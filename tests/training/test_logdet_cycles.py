"""LDMLT: cycles of LogDet steps learn a positive definite metric that helps."""

import numpy as np
import pytest
from slts.training.all_series_fit import learn_logdet_metric

import slts
from slts.alignment import Aligner, AlignmentSettings
from slts.series import as_series, normalize_rows
from slts.series.channels import transform_rows
from slts.solvers.logdet import Ranking, logdet_step
from slts.training import all_series_fit

PLAIN = AlignmentSettings(objective="distance", normalize=False)


def distances(rows, others, settings):
    return Aligner(others, settings).distances(rows)


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


def test_a_small_step_improves_the_triplet_with_paths_found_anew(rng):
    batch, labels = two_informative_channels(rng)
    learner = all_series_fit._Learner(batch, labels, 0.0, "cpu", None, None)
    for i, j, k in learner.rank(None, np.random.RandomState(0)).draw(40, np.random.RandomState(0)):
        learner.factor = np.eye(5)
        learner._learn_from(batch[i], batch[j], batch[k], 1e-3)
        rows = transform_rows(batch, learner.factor @ learner.factor.T)
        before = distances(batch[[i]], batch[[j, k]], PLAIN)[0]
        after = distances(rows[[i]], rows[[j, k]], PLAIN)[0]
        assert after[1] / after[0] > before[1] / before[0]


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

    monkeypatch.setattr(all_series_fit, "logdet_step", watched)
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
        kept = Ranking(distances(rows, rows, PLAIN), labels, np.arange(24)).disorder
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
    one_channel = learn_logdet_metric(as_series([x[:1] for x in series]), np.arange(6) % 2)
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
    root = rng.normal(size=(3, 3)) + 2.0 * np.eye(3)
    metric = root @ root.T
    rows = transform_rows(batch, metric)
    found = distances(rows, rows, PLAIN)
    for p in range(3):
        for q in range(3):
            path = slts.align(rows[p], rows[q], objective="distance", normalize=False).path
            difference = batch[p][:, path[:, 0]] - batch[q][:, path[:, 1]]
            total = np.einsum("it,ij,jt->", difference, metric, difference)
            assert found[p, q] == pytest.approx(total, rel=1e-9, abs=1e-9)


@pytest.mark.slow
def test_japanese_vowels_reach_the_published_accuracy():
    datasets = pytest.importorskip("aeon.datasets")
    parts = []
    for split in ("train", "test"):
        X, y = datasets.load_japanese_vowels(split=split)
        parts += [normalize_rows(as_series(list(X))), np.asarray(y).astype(int)]
    train, labels, test, test_labels = parts
    found = learn_logdet_metric(train, labels, random_state=0)
    # The paper reports 97.3; M = I gives 94.1.
    assert nearest_accuracy(train, labels, test, test_labels, found.metric) >= 0.965
    assert found.disorder[-1] < 0.5 * found.disorder[0]


def test_a_metric_that_does_not_fit_is_named(rng):
    batch = as_series(list(rng.normal(size=(4, 2, 5))))
    with pytest.raises(ValueError, match=r"'metric'.*\(2, 2\).*\(3, 3\)"):
        transform_rows(batch, np.eye(3))
    with pytest.raises(ValueError, match=r"'metric'.*positive definite.*-1"):
        transform_rows(batch, np.diag([1.0, -1.0]))
