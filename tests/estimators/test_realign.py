"""Rounds of re-alignment under the learned metrics."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

import slts
from slts.estimators.realignment import PathMetric
from slts.explain import summarize
from slts.guarantees import certify, fit_certified
from slts.learning.landmark import LandmarkData, fit_slts
from slts.report import write_report
from slts.report.collect import collect
from tests.oracles import dtw

every_size = pytest.mark.parametrize("size", ["two", "three"])
every_band = pytest.mark.parametrize("band", [None, 3, slts.Itakura(3.0)], ids=str)


def fit(X, y, **parameters):
    return slts.SLTSClassifier(12, **{"random_state": 0, "realign": 1, **parameters}).fit(X, y)


@pytest.fixture
def data(request, size):
    return request.getfixturevalue(size)


@pytest.fixture
def model(data):
    X, y, _, _ = data
    return fit(X, y)


def rows_of(model, x):
    """Rows as they are aligned, (time, channels)."""
    return model._rows(slts.as_series([x])).values


def path_under(metric, a, b, band=None):
    """The oracle's best path by the sum of a'Pb."""
    return dtw.best_path(a @ metric @ b.T, dtw.band_mask(band, len(a), len(b)))


def oracle_products(model, X, problem):
    """T along the paths of a problem, shape (series, landmarks, d, d)."""
    P = model.path_metrics_[problem]
    out = []
    for a in (rows_of(model, x) for x in X):
        landmarks = [rows_of(model, b) for b in model.landmarks_]
        paths = [path_under(P, a, b, model.band).path for b in landmarks]
        pairs = zip(landmarks, paths, strict=True)
        out.append([dtw.aligned_product(a, b, path) for b, path in pairs])
    return np.array(out)


@every_size
@every_band
def test_decisions_are_those_of_the_best_paths_under_the_metric(data, band):
    X, y, X_test, _ = data
    model = fit(X, y, band=band, homogeneous=True)
    expected = [
        np.einsum("ijde,de,j->i", oracle_products(model, X_test[:8], c), M, coef)
        for c, (M, coef) in enumerate(zip(model.metrics_, model.coef_, strict=True))
    ]
    found = model._decide(model._new_rows(X_test[:8]))
    np.testing.assert_allclose(found, np.transpose(expected), atol=1e-9)


def test_paths_are_not_those_at_the_identity(three):
    X, y, X_test, _ = three
    model = fit(X, y)
    series, landmarks = (model._rows(slts.as_series(part)) for part in (X_test, model.landmarks_))
    plain = PathMetric(np.eye(3), landmarks, model._settings()).products(series)
    np.testing.assert_allclose(
        plain, slts.aligned_products(X_test, model.landmarks_), rtol=0, atol=1e-12
    )
    T = model._paths(0, landmarks).products(series)
    P, (i, j) = model.path_metrics_[0], (0, 1)
    a, b = rows_of(model, X_test[i]), rows_of(model, model.landmarks_[j])
    np.testing.assert_allclose(
        T[i, j], dtw.aligned_product(a, b, path_under(P, a, b).path), atol=1e-12
    )
    changed = np.abs(T - plain).max(axis=(2, 3)) > 1e-9
    assert changed.mean() > 0.5


def test_blocks_do_not_change_products(three, monkeypatch):
    X, y, X_test, _ = three
    model = fit(X, y)
    series, landmarks = (model._rows(slts.as_series(part)) for part in (X_test, model.landmarks_))
    paths = model._paths(1, landmarks)
    whole, sums = paths.products(series), paths.sums(series, model.coef_[1])
    monkeypatch.setattr("slts.estimators.realignment._BLOCK_BYTES", 1)
    np.testing.assert_array_equal(paths.products(series), whole)
    np.testing.assert_array_equal(paths.sums(series, model.coef_[1]), sums)


@every_size
@pytest.mark.parametrize("rounds", [1, 2])
@pytest.mark.parametrize("weighted", [False, True])
def test_a_round_learns_on_the_paths_of_the_metrics_before(data, rounds, weighted):
    X, y, _, _ = data
    weights = np.random.default_rng(0).uniform(0.2, 2.0, len(X)) if weighted else np.ones(len(X))
    before, after = (
        slts.SLTSClassifier(12, realign=k, random_state=0).fit(X, y, sample_weight=weights)
        for k in (rounds - 1, rounds)
    )
    norms = np.linalg.norm(before.metrics_, 2, axis=(1, 2))
    np.testing.assert_allclose(
        after.path_metrics_, before.metrics_ / norms[:, None, None], atol=1e-12
    )
    np.testing.assert_array_equal(before.landmark_indices_, after.landmark_indices_)
    for c, positive in enumerate(after._positives):
        codes = (y == positive).astype(np.int64)
        problem = LandmarkData(
            None, oracle_products(after, X, c), codes, codes[after.landmark_indices_],
            weights / weights.mean(), 2,
        )  # fmt: skip
        expected = fit_slts(problem, after.gamma, after.lam)
        reports = [r for r in after.reports_ if r.positive == positive]
        assert [r.stage for r in reports] == ["metric", "separator"]
        np.testing.assert_allclose(
            [r.objective for r in reports],
            [expected.metric_solutions[0].primal, expected.separators[0].objective],
            rtol=1e-4, atol=1e-9,
        )  # fmt: skip
        np.testing.assert_allclose(after.metrics_[c], expected.metrics[0], rtol=1e-3, atol=1e-5)


@every_size
@pytest.mark.parametrize("options", [{}, {"homogeneous": True}, {"scale": "asinh"},
                                     {"normalize": False}, {"regularizer": "nuclear"}],
                         ids=str)  # fmt: skip
def test_explanations_sum_to_the_decision(data, options):
    X, y, X_test, _ = data
    model = fit(X, y, calibration_cv=None, **options)
    decisions = model.decision_function(X_test)
    for x, decision in zip(X_test[:4], decisions[:4], strict=True):
        found = slts.explain(model, x)
        tolerance = 1e-9 * max(1.0, np.abs(decision).max())
        total = found.offset + found.contributions.sum(axis=(1, 2))
        np.testing.assert_allclose(total, np.atleast_1d(decision), atol=tolerance)
        np.testing.assert_allclose(
            found.by_landmark.sum(axis=1), np.atleast_1d(decision), atol=tolerance
        )
        np.testing.assert_allclose(
            found.by_view.sum(axis=1), np.atleast_1d(decision), atol=tolerance
        )
        through = sum(found.of_landmark(j) for j in range(len(found.landmark_indices)))
        np.testing.assert_allclose(through, found.contributions, atol=tolerance)
        assert found.contributions.shape[1:] == x.T.shape
        assert found.predicted == model.predict([x])[0]


def test_explanations_show_the_paths_of_the_predicted_class(three):
    X, y, X_test, _ = three
    model = fit(X, y)
    landmarks = model.landmarks_[np.flatnonzero(model.coef_.any(axis=0))]
    for x in X_test[:6]:
        found = slts.explain(model, x)
        a = rows_of(model, x)
        for b, alignment in zip(landmarks, found.alignments, strict=True):
            best = path_under(model.path_metrics_[found.predicted], a, rows_of(model, b))
            np.testing.assert_array_equal(alignment.path, best.path)
            assert np.isclose(alignment.similarity, best.total / len(best.path))


@every_size
def test_the_similarity_map_gives_the_decisions(data, model):
    _, _, X_test, _ = data
    found = model.transform(X_test)
    assert found.shape == (len(X_test), len(model.get_feature_names_out()))
    by_class = found.reshape(len(X_test), *model.coef_.shape)
    decisions = np.einsum("icj,cj->ic", by_class, model.coef_)
    np.testing.assert_allclose(
        decisions, np.reshape(model.decision_function(X_test), decisions.shape), atol=1e-9
    )


@every_size
def test_a_series_alone_is_answered_as_in_a_crowd(data, model):
    _, _, X_test, _ = data
    for method in ("decision_function", "predict_proba", "transform"):
        together = getattr(model, method)(X_test)
        alone = np.concatenate([getattr(model, method)([x]) for x in X_test])
        np.testing.assert_array_equal(alone, together)


@every_size
@pytest.mark.parametrize("kind", [slts.SLTSClassifier, slts.SLTSClassifierCV])
def test_no_round_is_the_default(data, kind):
    X, y, X_test, _ = data
    assert kind().realign == 0
    plain, none = (kind(random_state=0, **o).fit(X, y) for o in ({}, {"realign": 0}))
    assert plain.path_metrics_ is None
    np.testing.assert_array_equal(plain.metrics_, none.metrics_)
    np.testing.assert_array_equal(plain.predict_proba(X_test), none.predict_proba(X_test))
    assert len(plain.linear_forms()) == 1


def test_it_finds_events_that_plain_paths_pass_by():
    """The order of two quiet events tells the classes apart; plain paths follow loud noise."""
    rng = np.random.default_rng(0)
    y = np.arange(240) % 2
    X = []
    for c in y:
        n = rng.integers(14, 20)
        loud, quiet = rng.normal(size=(2, n)), 0.2 * rng.normal(size=(2, n))
        early, late = np.sort(rng.choice(np.arange(1, n - 1), 2, replace=False))
        quiet[1 - c, early] += 2.0
        quiet[c, late] += 2.0
        X.append(np.concatenate([loud, quiet]))
    plain, once, twice = (
        slts.SLTSClassifier(
            50, realign=rounds, homogeneous=True, calibration_cv=None, random_state=0
        )
        .fit(X[:120], y[:120])
        .score(X[120:], y[120:])
        for rounds in range(3)
    )
    assert plain < 0.7
    assert min(once, twice) > 0.9


def test_a_metric_of_zeros_leaves_the_paths_as_they_were(three):
    X, y, _, _ = three
    with pytest.warns(UserWarning, match="collapsed"), pytest.warns(match="negative class"):
        model = fit(X, y, regularizer="l1", lam=1e6)
    assert not model.metrics_.any()
    np.testing.assert_array_equal(model.path_metrics_, np.stack([np.eye(3)] * 3))


def test_probabilities_are_calibrated_anew(three):
    X, y, X_test, y_test = three
    plain, model = fit(X, y, realign=0), fit(X, y)
    assert model._scale != plain._scale
    shares = model.predict_proba(X_test)
    np.testing.assert_allclose(shares.sum(axis=1), 1.0)
    np.testing.assert_array_equal(shares.argmax(axis=1), model.predict(X_test))
    assert np.mean(-np.log(shares[np.arange(len(y_test)), y_test])) < np.log(3)
    with pytest.raises(AttributeError):
        fit(X, y, calibration_cv=None).predict_proba(X_test)


@every_size
def test_a_search_realigns_what_it_chose(data):
    X, y, X_test, y_test = data
    options = {"gammas": [1e-3, 1e-2], "lams": [0.1, 1.0], "cv": 3, "random_state": 0}
    plain = slts.SLTSClassifierCV([6, 12], **options).fit(X, y)
    model = slts.SLTSClassifierCV([6, 12], realign=1, **options).fit(X, y)
    assert model.best_params_ == plain.best_params_
    assert model.best_score_ == plain.best_score_
    assert len(model.landmarks_) == model.best_params_["n_landmarks"]
    assert {r.gamma for r in model.reports_} == {model.best_params_["gamma"]}
    norms = np.linalg.norm(plain.metrics_, 2, axis=(1, 2))
    np.testing.assert_allclose(
        model.path_metrics_, plain.metrics_ / norms[:, None, None], atol=1e-12
    )
    assert model.score(X_test, y_test) >= plain.score(X_test, y_test) - 0.1
    assert model._scale != plain._scale


@pytest.mark.parametrize("kind", [slts.SLTSClassifier, slts.SLTSClassifierCV])
@pytest.mark.parametrize("value", [-1, 1.0, True, "once", None])
def test_other_numbers_of_rounds_are_refused_by_name(kind, value, two):
    X, y, _, _ = two
    with pytest.raises(ValueError, match=rf"'realign' parameter of {kind.__name__} .* Got"):
        kind(realign=value).fit(X, y)


def test_costs_are_refused(two):
    X, y, _, _ = two
    with pytest.raises(ValueError, match=r"'realign' parameter .* objective='affinity'"):
        slts.SLTSClassifier(realign=1, objective="cost").fit(X, y)


def test_one_form_is_refused_where_there_are_several(three):
    X, y, _, _ = three
    model = fit(X, y)
    with pytest.raises(ValueError, match="realigned"):
        model.linear_form()
    with pytest.raises(NotFittedError):
        clone(model).linear_forms()
    with pytest.raises(NotFittedError):
        clone(model).transform(X)


@every_size
def test_what_is_loaded_is_what_was_saved(data, model, tmp_path):
    _, _, X_test, _ = data
    slts.save(model, tmp_path / "m.slts")
    loaded = slts.load(tmp_path / "m.slts")
    np.testing.assert_array_equal(loaded.path_metrics_, model.path_metrics_)
    for method in ("decision_function", "predict_proba", "transform"):
        np.testing.assert_array_equal(
            getattr(loaded, method)(X_test), getattr(model, method)(X_test)
        )


@pytest.mark.parametrize(
    ("name", "value", "reason"),
    [
        ("realign", 0, "realign is not the one"),
        ("path_metrics_", None, "realign is not the one"),
        ("path_metrics_", np.ones((2, 3, 3)), r"path_metrics_ must have shape \(3, 3, 3\)"),
        ("path_metrics_", np.ones((3, 3, 3)), "spectral norm"),
        ("path_metrics_", np.full((3, 3, 3), np.nan), "NaN"),
        ("path_metrics_", np.eye(3), "with 3 axes"),
    ],
)
def test_models_that_do_not_fit_together_are_not_saved(name, value, reason, three, tmp_path):
    X, y, _, _ = three
    model = fit(X, y)
    setattr(model, name, value)
    with pytest.raises(slts.ModelFileError, match=reason):
        slts.save(model, tmp_path / "m.slts")


@every_size
def test_only_held_out_series_certify_it(data, model):
    X, y, X_test, y_test = data
    certificate = certify(model, X_test, y_test)
    assert 0.0 < certificate.headline.value <= 1.0
    with pytest.raises(slts.DataError, match="realign"):
        certify(model, X, y, sample="training")
    with pytest.raises(ValueError, match="realign"):
        fit_certified(model, X + X_test, np.concatenate([y, y_test]))


@every_size
def test_its_summary_counts_all_it_stores(data, model):
    _, _, X_test, _ = data
    found = summarize(model, X_test)
    used = np.flatnonzero(model.coef_.any(axis=0))
    kept = model.landmarks_[used].values.size + np.count_nonzero(model.coef_)
    assert found.n_numbers == kept + 2 * model.metrics_.size
    assert found.pair_importance.shape == model.metrics_.shape
    explained = [slts.explain(model, x) for x in X_test]
    np.testing.assert_allclose(
        found.channel_importance, np.mean([np.abs(e.by_channel) for e in explained], axis=0)
    )
    np.testing.assert_allclose(
        found.view_importance, np.mean([np.abs(e.by_view) for e in explained], axis=0), atol=1e-12
    )
    np.testing.assert_array_equal(found.landmark_weights, model.coef_[:, used])


@every_size
def test_its_metrics_and_weights_can_be_drawn(data, model):
    pytest.importorskip("matplotlib").use("agg")
    from matplotlib import pyplot

    from slts.plots import plot_landmark_weights, plot_metric

    label = model.classes_[-1]
    drawn = plot_metric(model, label).images[0].get_array()
    np.testing.assert_array_equal(drawn, model.metrics_[-1])
    bars = plot_landmark_weights(model, label).patches
    assert len(bars) == min(20, np.count_nonzero(model.coef_[-1]))
    pyplot.close("all")


@every_size
def test_its_report_shows_metrics_weights_and_contributions(data, model, tmp_path):
    _, _, X_test, y_test = data
    found = collect(model, X_test, y_test)
    maps = [m["values"] for m in found["looks"]["maps"]]
    np.testing.assert_allclose(maps, model.metrics_, rtol=5e-3)
    assert found["looks"]["views"] is found["looks"]["view"] is None
    assert found["companions"]["weighted"]
    used = [row["used"] for row in found["companions"]["gallery"]]
    assert used == np.count_nonzero(model.coef_, axis=1).tolist()
    for entry in found["explorer"]["entries"]:
        sizes = [len(chosen) for chosen in entry["strongest"]]
        assert sizes == [min(4, n) for n in (used if len(used) > 1 else used * 2)]
    write_report(model, tmp_path / "report.html", X=X_test, y=y_test)
    assert (tmp_path / "report.html").stat().st_size > 10_000
