"""The local classifier: what it learns, what it reports, and unusual data."""

import copy
import logging
import pickle
import re
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import numpy as np
import pytest
from sklearn.metrics import accuracy_score
from slts.models import comparisons, representations
from threadpoolctl import threadpool_info, threadpool_limits

import slts
from slts.execution import fit_threads
from slts.solvers import blas, local, loo_ridge
from slts.training import local_fit, local_metrics, snippet_features
from tests.estimators.conftest import make_ragged
from tests.oracles import windows


@pytest.fixture(scope="module")
def fitted():
    X, y = make_ragged(3, 22, seed=3, noise=1.2)
    return slts.LocalSLTSClassifier(random_state=0).fit(X[:45], y[:45]), X, y


@pytest.mark.parametrize("n_snippets", [0, 30])
def test_decisions_are_the_ridge_regression_on_products_and_snippets(n_snippets, two, monkeypatch):
    """Compare with features computed one by one, and the normal equations."""
    X, y, X_test, _ = two
    share = 2.0
    monkeypatch.setattr(local_metrics, "_SNIPPET_SHARES", (share,))
    model = slts.LocalSLTSClassifier(
        6, n_snippets=n_snippets, representations="values", objective="cost", n_phases=2,
        metric_rank=9, penalties=[0.3], random_state=0,
    ).fit(X, y)  # fmt: skip
    representation = model.comparisons_[0].representation
    weights = 1.0 / np.bincount(model.groups_)

    def products(series):
        rows, landmarks = representation(slts.as_series(series)), representation(model.landmarks_)
        out = np.zeros((len(rows), 2, 2, 4, 4))
        for p, a in enumerate(rows):
            for q, b in enumerate(landmarks):
                found = slts.align(a, b, objective="cost", normalize=False)
                for i, j in found.path:
                    g = model.groups_[q]
                    product = np.outer(a[:, i], b[:, j]) / found.length
                    out[p, g, 2 * j // b.shape[1]] += weights[g] * product
        return out.reshape(len(rows), -1)

    blocks = [(products(X), products(X_test), 1.0)]
    if n_snippets:
        F, G = (
            windows.features([x.T for x in series], model.snippets_).reshape(len(series), -1)
            for series in (X, X_test)
        )
        varies = F.std(axis=0) > 1e-9
        F, G = F[:, varies], G[:, varies]
        centre, spread = F.mean(axis=0), F.std(axis=0)
        blocks.append(((F - centre) / spread, (G - centre) / spread, share))
    # Every block has a mean squared norm, which the penalty is relative to.
    scaled = []
    for F, G, share in blocks:
        centre = F.mean(axis=0)
        factor = np.sqrt(share / np.mean(np.sum((F - centre) ** 2, axis=1)))
        scaled.append((factor * (F - centre), factor * (G - centre)))
    F, G = (np.hstack(parts) for parts in zip(*scaled, strict=True))
    penalty = 0.3 * sum(share for *_, share in blocks)
    target = np.where(np.asarray(y) == 1, 1.0, -1.0)
    slope = np.linalg.solve(F.T @ F + penalty * np.eye(F.shape[1]), F.T @ (target - target.mean()))
    np.testing.assert_allclose(
        model.decision_function(X_test), target.mean() + G @ slope, atol=1e-9
    )


def test_phases_have_metrics_of_their_own(three):
    X, y, X_test, y_test = three
    model = slts.LocalSLTSClassifier(n_phases=4, random_state=0).fit(X, y)
    assert all(m.shape[2] == 4 for m in model.local_metrics_)
    assert [choice.n_phases for choice in model.selection_] == [4]
    assert model.score(X_test, y_test) > 0.6


def test_selection_and_reports_describe_the_fit(three):
    X, y, _, _ = three
    model = slts.LocalSLTSClassifier(n_phases="auto", random_state=0).fit(X, y)
    assert [choice.n_phases for choice in model.selection_] == [1, 3]
    assert [choice.chosen for choice in model.selection_].count(True) == 1
    assert all(choice.reason and choice.error > 0 for choice in model.selection_)
    assert model.reports_[0].converged
    assert model.reports_[0].gap < 1e-9


def test_landmarks_come_evenly_from_all_classes(fitted):
    model, _, y = fitted
    counts = np.bincount(y[model.landmark_indices_])
    np.testing.assert_array_equal(counts, [10, 10, 10])
    assert model.group_names_ == ("0", "1", "2")


def test_shares_of_landmarks_and_snippets_sum_to_the_decisions(fitted, monkeypatch):
    model, X, _ = fitted
    shares = model.transform(X[45:]).reshape(len(X) - 45, 3, -1)
    assert shares.shape[2] == len(model.landmarks_) + len(model.snippets_)
    np.testing.assert_allclose(
        shares.sum(axis=2) + model.intercept_, model.decision_function(X[45:]), atol=1e-12
    )
    by_landmark = slts.explain(model, X[50]).by_landmark
    np.testing.assert_allclose(shares[5, :, : by_landmark.shape[1]], by_landmark, atol=1e-12)
    monkeypatch.setattr(type(model), "_series_at_once", 7)
    blocks = copy.copy(model).set_params(device="auto").transform(X[45:])
    np.testing.assert_allclose(blocks, shares.reshape(blocks.shape), atol=1e-12)


def test_columns_are_named_by_class_and_landmark_or_snippet(fitted):
    model, _, _ = fitted
    names = model.get_feature_names_out().tolist()
    per_class = len(model.landmarks_) + len(model.snippets_)
    assert len(names) == len(set(names)) == 3 * per_class
    assert names[per_class] == f"class1_landmark{model.landmark_indices_[0]}"
    assert names[per_class + len(model.landmarks_) + 17] == "class1_snippet17"


def test_snippets_know_how_often_they_occur_in_training_series(fitted):
    model, X, _ = fitted
    batch = slts.as_series(X[:45])
    shares = model.snippets_.counts(batch) / batch.lengths[:, np.newaxis, np.newaxis]
    np.testing.assert_allclose(model.snippets_.shares, shares.mean(axis=0), atol=1e-12)


def test_landmarks_are_mapped_once(fitted, monkeypatch):
    model, X, _ = fitted
    model, mapped = copy.deepcopy(model), []
    own = representations.Representation.__call__

    def counted(self, batch, n_jobs=None):
        mapped.append(batch is model.landmarks_)
        return own(self, batch)

    monkeypatch.setattr(representations.Representation, "__call__", counted)
    expected = model.decision_function(X)
    for x in X[:5]:
        model.predict([x])
        slts.explain(model, x)
    assert sum(mapped) == len(model.comparisons_)
    again = pickle.loads(pickle.dumps(model))
    assert "_prepared" not in again.__dict__
    np.testing.assert_array_equal(again.decision_function(X), expected)


def test_replaced_attributes_are_used_at_once(fitted):
    model, X, _ = fitted
    model = copy.deepcopy(model)
    decisions, explained = model.decision_function(X), slts.explain(model, X[0]).decision
    model.snippet_coef_ = 2 * model.snippet_coef_
    model.local_metrics_ = tuple(2 * metrics for metrics in model.local_metrics_)
    np.testing.assert_allclose(
        model.decision_function(X) - model.intercept_, 2 * (decisions - model.intercept_)
    )
    np.testing.assert_allclose(
        slts.explain(model, X[0]).decision - model.intercept_, 2 * (explained - model.intercept_)
    )


def test_threads_that_start_together_share_a_model(fitted):
    model, X, _ = fitted
    expected, fresh, start = model.decision_function(X), copy.deepcopy(model), Barrier(4)

    def decide(_):
        start.wait()
        return fresh.decision_function(X)

    with ThreadPoolExecutor(4) as pool:
        for found in pool.map(decide, range(4)):
            np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("n_jobs", [1, 3, None])
def test_a_fit_has_one_thread_of_blas_and_shares_its_own(three, n_jobs, monkeypatch):
    solve, seen = local.FeatureGram.solve, []

    def recorded(self, *args):
        own = {pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"}
        seen.append((own, fit_threads()))
        return solve(self, *args)

    monkeypatch.setattr(local.FeatureGram, "solve", recorded)
    X, y = three[:2]
    with threadpool_limits(2, user_api="blas"):
        slts.LocalSLTSClassifier(random_state=0, n_jobs=n_jobs).fit(X, y)
    assert all(own == {1} for own, _ in seen)
    *candidates, last = [threads for _, threads in seen]
    assert set(candidates) == {{1: 1, 3: 1, None: 2}[n_jobs]}
    assert last == {1: 1, 3: 3, None: 2}[n_jobs]


@pytest.mark.parametrize("n_jobs", [2, 8])
def test_threads_do_not_change_the_sample(n_jobs, monkeypatch, caplog):
    monkeypatch.setattr(local_fit, "_FEWEST", 10)
    monkeypatch.setattr(local_fit, "_PER_CLASS_DRAWN", 5)
    caplog.set_level(logging.INFO, logger="slts")
    X, y = make_ragged(3, 60, seed=0)

    def fit(n):
        return slts.LocalSLTSClassifier(
            n_snippets=20, memory_limit="5MB", random_state=0, n_jobs=n
        ).fit(X, y)

    one, several = fit(1).decision_function(X), fit(n_jobs).decision_function(X)
    assert "from a sample of" in caplog.text
    np.testing.assert_allclose(several, one, atol=1e-9)


@pytest.mark.parametrize("n_anchors", [2000, 40])
@pytest.mark.parametrize("n_jobs", [3, None])
def test_threads_change_no_bit_of_a_fit(three, n_jobs, n_anchors, monkeypatch):
    """Blocks and tiles are small, so that there are many of them."""
    monkeypatch.setattr(local_fit, "_ANCHORS", n_anchors)
    monkeypatch.setattr(blas, "_FEW", 0.0)
    monkeypatch.setattr(loo_ridge, "_LEFT_OUT", 16)
    X, y, X_test, _ = three
    one, other = (slts.LocalSLTSClassifier(random_state=0, n_jobs=n).fit(X, y) for n in (1, n_jobs))
    np.testing.assert_array_equal(one.snippet_coef_, other.snippet_coef_)
    np.testing.assert_array_equal(one.snippets_.thresholds, other.snippets_.thresholds)
    np.testing.assert_array_equal(one.decision_function(X_test), other.decision_function(X_test))


def test_with_more_snippets_fewer_series_fit_in_memory(monkeypatch, caplog):
    monkeypatch.setattr(local_fit, "_FEWEST", 10)
    monkeypatch.setattr(local_fit, "_PER_CLASS_DRAWN", 5)
    X, y = make_ragged(3, 60, seed=0)
    with caplog.at_level(logging.INFO, "slts"):
        for n in (1, 200):
            slts.LocalSLTSClassifier(
                9, n_snippets=n, representations="values", memory_limit="6MB", random_state=0
            ).fit(X, y)
    few, many = (int(n) for n in re.findall(r"a sample of (\d+) of", caplog.text))
    assert 10 <= many < few / 2


def test_each_number_of_phases_has_the_weight_of_snippets_with_the_smallest_error(monkeypatch):
    """Classes differ in a slow wave, which three phases see, and in a tempo, which snippets see."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(30, 8, 40)), np.arange(30)[:, np.newaxis] % 2
    turns = 2.0 * np.pi * np.arange(40)
    X[:, 0] += np.where(y, 0.8, -0.8) * np.sin(turns / 40)
    X[:, 1] += 1.5 * np.sin(turns / np.where(y, 5, 8) + rng.uniform(0.0, 6.0, (30, 1)))
    errors = []
    for shares in ((16.0,), (0.25,), (16.0, 0.25), (0.25, 16.0)):
        monkeypatch.setattr(local_metrics, "_SNIPPET_SHARES", shares)
        model = slts.LocalSLTSClassifier(n_snippets=50, random_state=0).fit(X, y[:, 0])
        errors.append([choice.error for choice in model.selection_])
    assert [int(np.argmin(found)) for found in zip(*errors[:2], strict=True)] == [0, 1]
    assert errors[2] == errors[3] == [min(found) for found in zip(*errors[:2], strict=True)]


def test_the_snippets_with_the_largest_coefficients_are_kept(three, monkeypatch):
    X, y, _, _ = three
    few = slts.LocalSLTSClassifier(n_snippets=20, n_phases=1, random_state=0).fit(X, y)
    count = 20 * local_fit.CANDIDATES
    monkeypatch.setattr(local_fit, "CANDIDATES", 1)
    every = slts.LocalSLTSClassifier(n_snippets=count, n_phases=1, random_state=0).fit(X, y)
    batch = slts.as_series(X)
    features = every.snippets_.features(every.snippets_.counts(batch), batch.lengths)
    effects = np.square(every.snippet_coef_ * features.std(axis=0)).sum(axis=(0, 2, 3))
    best = np.sort(np.argsort(-effects)[:20])
    for name in ("series", "starts", "dilations", "thresholds", "values"):
        np.testing.assert_array_equal(
            getattr(few.snippets_, name), getattr(every.snippets_.subset(best), name)
        )


@pytest.mark.parametrize(
    ("fewest", "per_class", "tuning"), [(40, 10, 40), (10, 25, 50), (1000, 1, 80)]
)
def test_held_out_decisions_do_not_know_the_choice_of_snippets(
    fewest, per_class, tuning, monkeypatch
):
    """Labels are random. The series that is left out has helped to choose the snippets."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(80, 2, 30)), np.arange(80) % 2
    monkeypatch.setattr(local_fit, "_TUNING_SERIES", fewest)
    monkeypatch.setattr(local_fit, "_TUNING_SERIES_PER_CLASS", per_class)
    seen = []

    def learn(*args):
        seen.append((args[0], local_metrics.learn_local_metrics(*args)))
        return seen[0][1]

    monkeypatch.setattr(local_fit, "learn_local_metrics", learn)
    slts.LocalSLTSClassifier(n_snippets=30, n_phases=1, random_state=0).fit(X, y)
    training, solution = seen[0]
    assert len(training.tuning) == tuning
    losses = np.square(solution.ridge.left_out - training.targets)
    assert losses[training.tuning].mean() > 0.95
    # The penalty does not know the choice, either: with random labels a small one would be wrong.
    assert solution.ridge.errors.min() > 0.95


def test_classes_of_one_series_do_not_raise_the_number_that_chooses_snippets(monkeypatch):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(40, 2, 9)), np.r_[np.arange(30) % 2, 2:12]
    monkeypatch.setattr(local_fit, "_TUNING_SERIES", 10)
    monkeypatch.setattr(local_fit, "_TUNING_SERIES_PER_CLASS", 7)
    seen = []

    def learn(training, *options):
        seen.append(len(training.tuning))
        return local_metrics.learn_local_metrics(training, *options)

    monkeypatch.setattr(local_fit, "learn_local_metrics", learn)
    slts.LocalSLTSClassifier(n_snippets=10, n_phases=1, random_state=0).fit(X, y)
    # Seven of each of two classes.
    assert seen == [14]


def test_a_model_without_snippets_has_landmarks_only(three):
    X, y, X_test, _ = three
    model = slts.LocalSLTSClassifier(n_snippets=0, random_state=0).fit(X, y)
    assert model.snippets_ is None
    assert model.snippet_coef_ is None
    shares = model.transform(X_test).reshape(len(X_test), 3, len(model.landmarks_))
    np.testing.assert_allclose(
        shares.sum(axis=2) + model.intercept_, model.decision_function(X_test), atol=1e-12
    )
    found = slts.explain(model, X_test[0])
    assert found.by_snippet.shape == (3, 0)
    for use in (found.of_snippet, found.occurrences):
        with pytest.raises(ValueError, match="has no snippets"):
            use(0)


def test_explanations_sum_to_the_decision_by_comparison_landmark_and_snippet(fitted):
    model, X, _ = fitted
    found = slts.explain(model, X[50])
    decision = model.decision_function([X[50]])[0]
    np.testing.assert_allclose(
        found.intercept + found.by_comparison.sum(axis=1), decision, atol=1e-12
    )
    np.testing.assert_allclose(
        found.intercept + found.by_landmark.sum(axis=1) + found.by_snippet.sum(axis=1),
        decision,
        atol=1e-12,
    )
    assert found.comparison_names == (*(c.name for c in model.comparisons_), "snippets")
    parts = [found.of_landmark(j) for j in range(len(found.landmark_indices))]
    parts += [found.of_snippet(k) for k in range(len(model.snippets_))]
    np.testing.assert_allclose(sum(parts), found.contributions, atol=1e-12)


def test_the_channel_that_separates_the_classes_is_most_important(rng):
    y = np.arange(60) % 2
    X = [rng.normal(size=(3, 12)) + np.array([[0.0], [3.0 * c], [0.0]]) for c in y]
    model = slts.LocalSLTSClassifier(random_state=0).fit(X, y)
    importance = slts.summarize(model).channel_importance[0]
    assert importance.argmax() == 1
    assert importance[1] > 2 * np.delete(importance, 1).max()


def test_the_certificate_rests_on_held_out_series(fitted):
    model, X, y = fitted
    certificate = slts.certify(model, X[45:], y[45:])
    error = 1 - model.score(X[45:], y[45:])
    assert error < certificate.headline.value < 1
    with pytest.raises(slts.DataError, match="copy of a training series"):
        slts.certify(model, X[:45], y[:45])
    with pytest.raises(slts.DataError, match="no bounds from its training sample"):
        slts.certify(model, X[:45], y[:45], sample="training")


@pytest.mark.parametrize("metrics", ["class", "landmark", "shared"])
def test_landmarks_of_a_group_share_metrics(metrics, three):
    X, y, X_test, y_test = three
    model = slts.LocalSLTSClassifier(12, metrics=metrics, random_state=0).fit(X, y)
    n_groups = {"class": 3, "landmark": 12, "shared": 1}[metrics]
    assert all(m.shape[1] == n_groups for m in model.local_metrics_)
    assert len(model.group_names_) == n_groups
    assert model.score(X_test, y_test) > 0.6


def test_many_classes_share_groups(monkeypatch):
    monkeypatch.setattr(local_fit, "_MOST_GROUPS", 4)
    X, y = make_ragged(11, 12, seed=0, noise=0.1)
    model = slts.LocalSLTSClassifier(random_state=0).fit(X, y)
    assert model.local_metrics_[0].shape[:2] == (11, 4)
    sizes = [len(name.split()) for name in model.group_names_]
    assert sorted(sizes) == [2, 3, 3, 3]
    assert model.score(X, y) > 0.9
    found = slts.explain(model, X[0])
    np.testing.assert_allclose(found.decision, model.decision_function([X[0]])[0], atol=1e-12)


def test_many_classes_have_few_landmarks_each_and_at_most_32_groups():
    assert [local_fit._landmarks_per_class(n) for n in (2, 20, 25, 49, 51, 200)] == [
        10,
        10,
        8,
        4,
        4,
        4,
    ]
    X, y = make_ragged(34, 3, seed=0, noise=0.1)
    model = slts.LocalSLTSClassifier(
        n_snippets=0, representations="values", objective="cost", n_phases=1, random_state=0
    ).fit(X, y)
    assert len(model.group_names_) == 32


def test_a_memory_limit_that_is_too_small_names_one_that_is_sufficient(monkeypatch):
    monkeypatch.setattr(local_fit, "_FEWEST", 40)
    monkeypatch.setattr(local_fit, "_PER_CLASS_DRAWN", 5)
    X, y = make_ragged(2, 60, seed=0)
    model = slts.LocalSLTSClassifier(8, n_snippets=1, representations="values", random_state=0)
    with pytest.raises(ValueError, match="from a sample of 40 series needs") as error:
        model.set_params(memory_limit="100kB").fit(X, y)
    sufficient = re.search(r"needs ([\d.]+ [kM]B)", str(error.value))[1]
    # Half of the sample choose the snippet.
    assert model.set_params(memory_limit=sufficient).fit(X, y).validation_.n_series >= 20


def test_few_anchors_approximate_all(monkeypatch, three):
    X, y, X_test, _ = three
    every = slts.LocalSLTSClassifier(random_state=0, penalties=[10.0]).fit(X, y)
    monkeypatch.setattr(local_fit, "_ANCHORS", 30)
    some = slts.LocalSLTSClassifier(random_state=0, penalties=[10.0]).fit(X, y)
    one, other = every.decision_function(X_test), some.decision_function(X_test)
    assert np.corrcoef(one.ravel(), other.ravel())[0, 1] > 0.95


def test_features_computed_again_give_the_same_model(monkeypatch, three):
    X, y, X_test, _ = three
    kept = slts.LocalSLTSClassifier(random_state=0).fit(X, y)
    monkeypatch.setattr(local_metrics, "_KEPT_BYTES", 0)
    again = slts.LocalSLTSClassifier(random_state=0).fit(X, y)
    np.testing.assert_allclose(
        again.decision_function(X_test), kept.decision_function(X_test), atol=1e-12
    )


@pytest.mark.parametrize("part", [comparisons, snippet_features])
def test_chunks_of_groups_and_snippets_give_the_same_model(part, monkeypatch, three):
    X, y, X_test, _ = three
    whole = slts.LocalSLTSClassifier(n_snippets=200, random_state=0).fit(X, y)
    monkeypatch.setattr(part, "CHUNK_BYTES", 1)
    parts = slts.LocalSLTSClassifier(n_snippets=200, random_state=0).fit(X, y)
    np.testing.assert_allclose(
        parts.decision_function(X_test), whole.decision_function(X_test), atol=1e-9
    )


def test_series_without_weight_change_nothing(rng, three):
    X, y, X_test, _ = three
    junk = [1e3 * rng.normal(size=(3, 9)) for _ in X]
    weights = np.repeat([1.0, 0.0], len(X))
    for landmarks in ("random", "kmedoids"):
        model = slts.LocalSLTSClassifier(12, landmarks=landmarks, random_state=0)
        plain = model.fit(X, y).predict_proba(X_test)
        with_junk = model.fit([*X, *junk], [*y, *y[::-1]], sample_weight=weights)
        np.testing.assert_allclose(with_junk.predict_proba(X_test), plain, atol=1e-9)


def test_no_series_have_no_predictions(fitted):
    model, X, _ = fitted
    none = slts.as_series(X)[:0]
    assert model.predict(none).shape == (0,)
    assert model.predict_proba(none).shape == (0, 3)
    assert model.transform(none).shape == (0, len(model.get_feature_names_out()))


def test_prediction_in_blocks_changes_nothing(fitted, monkeypatch):
    model, X, _ = fitted
    whole = model.decision_function(X)
    monkeypatch.setattr(type(model), "_series_at_once", 7)
    monkeypatch.setattr(representations, "_BLOCK_STEPS", 20)
    blocks = copy.copy(model).set_params(device="auto").decision_function(X)
    np.testing.assert_allclose(blocks, whole, atol=1e-12)


def test_a_class_without_landmark_is_a_warning(three):
    X, y, _, _ = three
    with pytest.warns(UserWarning, match="There is no landmark of class"):
        slts.LocalSLTSClassifier(2, random_state=0).fit(X, y)


@pytest.mark.parametrize(
    "options",
    [
        {"representations": "values", "objective": "cost"},
        {"representations": "values", "objective": "cost", "metrics": "shared", "n_phases": 1},
    ],
)
def test_a_single_comparison_is_summarized(options, three):
    X, y, X_test, _ = three
    model = slts.LocalSLTSClassifier(random_state=0, **options).fit(X, y)
    found = slts.summarize(model, X_test)
    assert found.channel_importance.shape == (3, 3)
    assert (found.channel_importance > 0).all()
    assert found.n_numbers == model.n_numbers_


def test_values_far_out_of_range_are_explained_exactly(fitted):
    model, X, _ = fitted
    for size in (1e100, 1e200, 1e300):
        x = size * X[50]
        found = slts.explain(model, x)
        assert np.isfinite(found.decision).all()
        np.testing.assert_allclose(found.decision, model.decision_function([x])[0], atol=1e-9)


# -- unusual data


def check(model, X, y, *, at_least):
    """Learn from the first two thirds, or from all if they are few; predict the rest."""
    count = 2 * len(X) // 3 if len(X) >= 30 else len(X)
    model.fit(X[:count], y[:count])
    rest = slice(count, None) if count < len(X) else slice(None)
    proba = model.predict_proba(X)
    assert np.isfinite(proba).all()
    np.testing.assert_allclose(proba.sum(axis=1), 1.0)
    assert accuracy_score(y[rest], model.predict(X[rest])) >= at_least
    found = slts.explain(model, X[0])
    np.testing.assert_allclose(
        found.decision, np.atleast_1d(model.decision_function(X[:1])[0]), atol=1e-9
    )
    assert found.contributions.shape[1:] == np.shape(X[0])[::-1]
    return model


def test_one_step_is_a_series(rng):
    y = np.arange(30) % 3
    X = [rng.normal(size=(2, 1)) + 3 * np.array([[c], [-c]]) for c in y]
    check(slts.LocalSLTSClassifier(random_state=0), X, y, at_least=0.9)


def test_one_channel_is_enough(rng):
    y = np.arange(40) % 2
    X = [np.sin(np.arange(30) * (1 + c))[None] + 0.3 * rng.normal(size=(1, 30)) for c in y]
    check(slts.LocalSLTSClassifier(random_state=0), X, y, at_least=0.95)


def test_constant_channels_and_constant_series_are_harmless(rng):
    y = np.arange(30) % 2
    X = [np.vstack([np.ones(9), rng.normal(size=9) + 2 * c, np.zeros(9)]) for c in y]
    X[0] = np.ones((3, 9))
    check(slts.LocalSLTSClassifier(random_state=0), X, y, at_least=0.9)


def test_series_that_are_all_the_same_give_the_majority():
    X, y = [np.ones((2, 5))] * 10, [0] * 7 + [1] * 3
    model = slts.LocalSLTSClassifier(random_state=0).fit(X, y)
    assert (model.predict(X) == 0).all()


def test_two_series_per_class_are_enough(rng):
    y = np.repeat(np.arange(4), 2)
    X = [rng.normal(size=(3, 8)) + 4 * np.eye(4, 3)[c][:, None] for c in y]
    check(slts.LocalSLTSClassifier(random_state=0), X, y, at_least=1.0)


def test_a_class_of_one_series_is_learned_too(rng):
    y = np.array([0] * 10 + [1])
    X = [rng.normal(size=(2, 8)) + 6 * c for c in y]
    check(slts.LocalSLTSClassifier(random_state=0), X, y, at_least=1.0)


def test_lengths_from_one_to_thousands(rng):
    y = np.arange(24) % 2
    lengths = [1, 2, 3, 3000, 700, 40] * 4
    X = [
        rng.normal(size=(2, n)) + 2 * np.array([[c], [1 - c]])
        for n, c in zip(lengths, y, strict=True)
    ]
    model = check(slts.LocalSLTSClassifier(random_state=0), X, y, at_least=0.9)
    lengths = model.comparisons_[0].representation(slts.as_series(X)).lengths.tolist()
    # Averages of 32 and of 8 steps.
    assert lengths[:6] == [1, 2, 3, 94, 88, 40]


def test_three_series_per_class_are_enough(rng):
    y = np.repeat(np.arange(2), 3)
    X = [np.sin(np.arange(40) / (1 + c) + rng.uniform(0, 6))[None] for c in y]
    check(slts.LocalSLTSClassifier(random_state=0), X, y, at_least=1.0)


def test_fifty_classes(rng):
    y = np.tile(np.arange(50), 3)
    centres = 3 * rng.normal(size=(50, 4, 1))
    X = [centres[c] + 0.3 * rng.normal(size=(4, rng.integers(8, 20))) for c in y]
    model = check(slts.LocalSLTSClassifier(random_state=0), X, y, at_least=0.9)
    assert model.snippet_coef_.shape[0] == 50


def test_series_shorter_than_a_snippet(rng):
    y = np.arange(60) % 2
    X = [rng.normal(size=(2, n)) + 3 * c for n, c in zip(rng.integers(1, 11, 60), y, strict=True)]
    model = check(slts.LocalSLTSClassifier(random_state=0), X, y, at_least=0.9)
    assert (model.snippets_.dilations == 1).all()


@pytest.mark.parametrize("lengths", ["equal", "ragged"])
def test_counts_are_relative_to_the_longest_only_if_lengths_differ(lengths, rng):
    y = np.arange(20) % 2
    n = np.full(20, 30) if lengths == "equal" else rng.integers(20, 31, 20)
    X = [rng.normal(size=(2, k)) + c for k, c in zip(n, y, strict=True)]
    model = check(slts.LocalSLTSClassifier(random_state=0), X, y, at_least=0.9)
    assert model.snippets_.longest == (None if lengths == "equal" else n.max())
    assert model.snippet_coef_.shape[3] == (1 if lengths == "equal" else 2)
    # Series of any length are predicted.
    assert np.isfinite(model.decision_function([X[0][:, :3], np.tile(X[1], 5)])).all()


def test_long_series_are_averaged_for_alignments_only(rng):
    y = np.arange(10) % 2
    X = [rng.normal(size=(1, 20)) + 3 * c for c in y]
    X[0] = rng.normal(size=(1, 2000))
    model = check(slts.LocalSLTSClassifier(random_state=0), X, y, at_least=0.9)
    assert model.comparisons_[0].representation(slts.as_series(X)).lengths.max() <= 128
    assert model.snippets_.longest == 2000
    assert model.snippets_.dilations[-1] > 100


def test_the_order_of_the_channels_changes_nothing_but_draws(three):
    X, y, X_test, _ = three
    # Landmarks and snippets are drawn by hashes of the values, which depend on the order.
    options = {"landmarks": range(18), "n_snippets": 0, "objective": ("affinity", "cost")}
    order = [2, 0, 1]
    model = slts.LocalSLTSClassifier(random_state=0, **options).fit(X, y)
    other = slts.LocalSLTSClassifier(random_state=0, **options).fit([x[order] for x in X], y)
    np.testing.assert_allclose(
        other.decision_function([x[order] for x in X_test]), model.decision_function(X_test),
        rtol=0, atol=1e-9,
    )  # fmt: skip


def test_class_weights_find_more_of_a_rare_class(rng):
    y = np.array([0] * 190 + [1] * 10)
    X = [rng.normal(size=(2, 10)) + 0.7 * c for c in y]
    plain = slts.LocalSLTSClassifier(random_state=0).fit(X, y)
    weighted = slts.LocalSLTSClassifier(random_state=0, class_weight="balanced").fit(X, y)
    assert (weighted.predict(X)[190:] == 1).mean() >= (plain.predict(X)[190:] == 1).mean()
    assert (weighted.predict(X)[190:] == 1).mean() > 0.8


def test_many_channels_are_reduced(rng):
    y = np.arange(30) % 2
    # Of different lengths, so that steps are not taken for channels.
    lengths = 10 + np.arange(30) % 3
    waves = 2.0 * np.sin(np.arange(120))[:, None]
    X = [rng.normal(size=(120, n)) + c * waves for c, n in zip(y, lengths, strict=True)]
    model = check(slts.LocalSLTSClassifier(random_state=0), X, y, at_least=0.95)
    assert all(m.shape[3] == 25 for m in model.local_metrics_)


def test_heavy_tails_do_not_drown_the_rest(rng):
    y = np.arange(80) % 2
    X = [rng.standard_cauchy(size=(2, 15)) * (1.0 + 9.0 * c) for c in y]
    test = [rng.standard_cauchy(size=(2, 15)) * (1.0 + 9.0 * c) for c in y]
    model = check(slts.LocalSLTSClassifier(random_state=0), X, y, at_least=0.9)
    assert model.score(test, y) > 0.85


def test_landmarks_are_counted_per_class_or_in_total():
    rng = np.random.default_rng(0)
    y = np.repeat(["a", "b", "c"], [20, 9, 3])
    X = [rng.normal(size=(2, 8)) + (c == "a") for c in y]
    few = {"n_snippets": 0, "representations": "values", "random_state": 0}
    for number, counts in ((1, [1, 1, 1]), (5, [5, 5, 3]), (12, [12, 9, 3])):
        model = slts.LocalSLTSClassifier(n_landmarks_per_class=number, **few).fit(X, y)
        found = np.unique(y[model.landmark_indices_], return_counts=True)[1]
        np.testing.assert_array_equal(found, counts)
    assert len(slts.LocalSLTSClassifier(6, **few).fit(X, y).landmarks_) == 6
    medoids = slts.LocalSLTSClassifier(n_landmarks_per_class=5, landmarks="kmedoids", **few)
    assert len(medoids.fit(X, y).landmarks_) == 13
    with pytest.raises(ValueError, match="Only one of the parameters 'n_landmarks' and"):
        slts.LocalSLTSClassifier(6, n_landmarks_per_class=2, **few).fit(X, y)
