"""Leave-one-out in closed form is leave-one-out."""

import numpy as np
import pytest

from slts.execution import use_fit_threads
from slts.learning import loo_ridge
from slts.learning.anchor_span import AnchorSpan
from slts.learning.blas import on_host
from slts.learning.local import FeatureGram, choose_phases, fewer_phases
from slts.learning.loo_ridge import LeftOut, NormalEquations, RidgeFit, fit_loo_ridge
from tests.alignment.cuda import conftest as cuda
from tests.alignment.cuda.emulator import fake_cupy

pretend, gpu = cuda.pretend, cuda.gpu

PENALTIES = np.array([0.1, 1.0, 10.0])


def direct(features, targets, weights, penalty):
    """Normal equations with a free intercept: slope and intercept."""
    total = weights.sum()
    mean, target_mean = weights @ features / total, weights @ targets / total
    x, y = features - mean, targets - target_mean
    left = (x.T * weights) @ x + penalty * np.eye(x.shape[1])
    slope = np.linalg.solve(left, (x.T * weights) @ y)
    return slope, target_mean - mean @ slope


@pytest.fixture
def problem(rng):
    features = rng.normal(size=(25, 40)) + 3.0
    targets = np.sign(rng.normal(size=(25, 3)))
    weights = rng.uniform(0.5, 2.0, size=25)
    return features, targets, weights


@pytest.fixture(params=["anchors alone", "span"])
def fit(request):
    """Fit all series as anchors, whose coordinates are their factor, or are solved for."""

    def fit(gram, targets, weights, penalties, known=None):
        anchors = gram if request.param == "anchors alone" else gram.copy()
        return fit_loo_ridge(gram, anchors, targets, weights, penalties, known)

    return fit


def test_the_solution_is_that_of_the_normal_equations(problem, rng, fit):
    features, targets, weights = problem
    gram = features @ features.T
    new = rng.normal(size=(5, 40))
    for penalty in PENALTIES:
        found = fit(gram, targets, weights, np.array([penalty]))
        slope, intercept = direct(features, targets, weights, penalty)
        predicted = (new @ features.T) @ found.weights + found.intercept
        np.testing.assert_allclose(predicted, new @ slope + intercept, atol=1e-8)
        residual = targets - features @ slope - intercept
        objective = (weights[:, None] * residual**2).sum() + penalty * (slope**2).sum()
        assert found.objective == pytest.approx(objective / weights.sum())
        assert 0 <= found.gap <= 1e-12 * found.objective


def test_errors_of_many_targets_are_estimated(rng, fit):
    """300 classes of two series each; the solution itself is exact."""
    features = np.repeat(rng.normal(size=(300, 30)), 2, axis=0) + 0.5 * rng.normal(size=(600, 30))
    targets = np.where(np.repeat(np.eye(300), 2, axis=0) > 0.0, 1.0, -1.0)
    gram, weights = features @ features.T, np.ones(600)
    penalties = np.logspace(-1.0, 4.0, 11)
    found = fit(gram, targets, weights, penalties)
    halves = [fit(gram, part, weights, penalties) for part in (targets[:, :150], targets[:, 150:])]
    exact = np.mean([half.errors for half in halves], axis=0)
    assert 0.0 < np.abs(found.errors / exact - 1.0).max() < 0.05
    assert found.best == exact.argmin()
    slope, intercept = direct(features, targets, weights, penalties[found.best])
    np.testing.assert_allclose(
        gram @ found.weights + found.intercept, features @ slope + intercept, atol=1e-8
    )


def test_left_out_predictions_come_from_fits_without_the_series(problem, monkeypatch, fit):
    features, targets, weights = problem
    monkeypatch.setattr(loo_ridge, "_LEFT_OUT", 7)
    gram = features @ features.T
    found = fit(gram, targets, weights, PENALTIES)
    errors = []
    for penalty in PENALTIES:
        left_out = np.empty_like(targets)
        for i in range(len(targets)):
            others = np.arange(len(targets)) != i
            slope, intercept = direct(features[others], targets[others], weights[others], penalty)
            left_out[i] = features[i] @ slope + intercept
        errors.append((weights[:, None] * (left_out - targets) ** 2).sum() / weights.sum() / 3)
        if penalty == PENALTIES[found.best]:
            np.testing.assert_allclose(found.left_out, left_out, atol=1e-8)
    np.testing.assert_allclose(found.errors, errors)
    assert found.best == np.argmin(errors)


@pytest.mark.parametrize("n_known", [0, 10, 25])
def test_series_that_an_earlier_fit_left_out_count_by_its_errors(problem, rng, fit, n_known):
    features, targets, weights = problem
    gram = features @ features.T
    series = rng.permutation(25)[:n_known]
    earlier = LeftOut(series, np.array([3.0, 1.0, 2.0]), rng.normal(size=(n_known, 3)))
    found = fit(gram, targets, weights, PENALTIES, earlier)
    others = np.setdiff1d(np.arange(25), series)
    share = weights[series].sum() / weights.sum()
    for k, penalty in enumerate(PENALTIES):
        left_out = fit(gram, targets, weights, np.array([penalty])).left_out
        own = (weights[:, None] * (left_out - targets) ** 2)[others].sum() / weights.sum() / 3
        assert found.errors[k] == pytest.approx(share * earlier.errors[k] + own)
    assert found.best == np.argmin(found.errors)
    np.testing.assert_array_equal(found.left_out[series], earlier.predictions)
    at_best = fit(gram, targets, weights, PENALTIES[found.best :][:1])
    np.testing.assert_allclose(found.left_out[others], at_best.left_out[others], atol=1e-9)
    np.testing.assert_allclose(found.slope, at_best.slope, atol=1e-12)


def test_a_large_mean_of_all_features_does_not_matter(rng, fit):
    """The smallest penalties have leverages near one, where rounding shows most."""
    features, targets = rng.normal(size=(200, 400)), np.sign(rng.normal(size=(200, 3)))
    weights, penalties = rng.uniform(0.5, 2.0, size=200), 400.0 * np.logspace(-4.0, 3.0, 8)
    expected = fit(features @ features.T, targets, weights, penalties).errors
    for mean in (10.0, 30.0, 100.0, 300.0, 1000.0):
        own = features + mean
        found = fit(own @ own.T, targets, weights, penalties).errors
        np.testing.assert_allclose(found, expected, rtol=2e-11 * mean**2)


def test_penalties_may_be_tiny_if_there_are_fewer_features_than_series(rng, fit):
    features, targets = rng.normal(size=(60, 5)), np.sign(rng.normal(size=(60, 2)))
    weights = rng.uniform(0.5, 2.0, size=60)
    gram = features @ features.T
    for penalty in (1e-4, 1e-8, 1e-12):
        found = fit(gram, targets, weights, np.array([penalty]))
        slope, intercept = direct(features, targets, weights, penalty)
        np.testing.assert_allclose(
            gram @ found.weights + found.intercept, features @ slope + intercept, atol=1e-12
        )
        assert 0 <= found.gap <= 1e-12 * found.objective
        assert np.abs(found.weights).max() < 1.0


@pytest.mark.parametrize("n_threads", [1, 4])
def test_few_coordinates_are_solved_alike_in_threads(rng, monkeypatch, n_threads):
    monkeypatch.setattr(loo_ridge, "_LEFT_OUT", 16)
    features, targets = rng.normal(size=(600, 12)), np.sign(rng.normal(size=(600, 2)))
    products, anchors = features @ features[:20].T, features[:20] @ features[:20].T
    expected = fit_loo_ridge(products, anchors, targets, np.ones(600), PENALTIES)
    with use_fit_threads(n_threads):
        for _ in range(20):
            found = fit_loo_ridge(products, anchors, targets, np.ones(600), PENALTIES)
            np.testing.assert_array_equal(found.errors, expected.errors)
            np.testing.assert_array_equal(found.left_out, expected.left_out)


@pytest.mark.parametrize(("n_bytes", "n_rows"), [(1, 1), (8 * 3 * 3 * 10, 10), (10**9, 256)])
def test_the_bytes_of_decisions_limit_the_rows_and_do_not_change_errors(
    problem, monkeypatch, n_bytes, n_rows
):
    """25 series with three targets and three penalties."""
    features, targets, weights = problem
    gram, seen, map_rows = features @ features.T, [], loo_ridge.map_rows
    expected = fit_loo_ridge(gram, gram, targets, weights, PENALTIES).errors

    def recorded(task, array, n_rows):
        seen.append(n_rows)
        return map_rows(task, array, n_rows)

    monkeypatch.setattr(loo_ridge, "_LEFT_OUT_BYTES", n_bytes)
    monkeypatch.setattr(loo_ridge, "map_rows", recorded)
    found = fit_loo_ridge(gram, gram, targets, weights, PENALTIES).errors
    np.testing.assert_allclose(found, expected, rtol=1e-12)
    assert seen == [n_rows]


def test_sums_do_not_refer_to_what_was_added(problem):
    features, targets, _ = problem
    gram = features @ features.T
    span = AnchorSpan.of(gram, gram)
    expected = fit_loo_ridge(gram, gram, targets, np.ones(25), PENALTIES)
    sums, given = NormalEquations(span.coordinates.shape[1], 3), span.coordinates.copy()
    sums.add(given, targets, np.ones(25))
    given[:] = 0.0
    found = sums.solve(span, targets, np.ones(25), PENALTIES)
    np.testing.assert_allclose(found.left_out, expected.left_out, atol=1e-9)


def test_a_series_without_weight_plays_no_part(problem, fit):
    features, targets, weights = problem
    weights = weights.copy()
    weights[3] = 0.0
    gram = features @ features.T
    found = fit(gram, targets, weights, PENALTIES[:1])
    others = np.arange(25) != 3
    slope, intercept = direct(features[others], targets[others], weights[others], PENALTIES[0])
    np.testing.assert_allclose(found.left_out[3], features[3] @ slope + intercept, atol=1e-8)


def test_anchors_that_span_the_features_lose_nothing(rng):
    features = rng.normal(size=(60, 8))
    targets = np.sign(rng.normal(size=(60, 2)))
    gram, anchors = features @ features.T, np.arange(0, 60, 4)
    every = fit_loo_ridge(gram, gram, targets, np.ones(60), PENALTIES)
    some = fit_loo_ridge(
        gram[:, anchors], gram[np.ix_(anchors, anchors)], targets, np.ones(60), PENALTIES
    )
    np.testing.assert_allclose(some.left_out, every.left_out, atol=1e-8)
    np.testing.assert_allclose(some.errors, every.errors)


@pytest.mark.parametrize("block", [7, 1024])
def test_sums_of_parts_and_features_are_enough(block, rng, monkeypatch):
    """The normal equations of parts, in the features, and some series that are left out."""
    monkeypatch.setattr(loo_ridge, "_SUMMED", block)
    features = rng.normal(size=(60, 8)) + 5.0
    targets = np.sign(rng.normal(size=(60, 2)))
    weights = rng.uniform(0.5, 2.0, size=60)
    gram = features @ features.T
    whole = fit_loo_ridge(gram, gram, targets, weights, PENALTIES)
    some = rng.permutation(60)[:25]
    # Coordinates are the features themselves.
    centre = features[some].mean(axis=0)
    sums = NormalEquations(8, 2)
    for part in np.split(np.arange(60), [0, 3, 6, 40]):
        own = NormalEquations(8, 2)
        own.add(features[part] - centre, targets[part], weights[part])
        sums += own
    span = AnchorSpan(np.copy, centre, features[some] - centre)
    at_best = PENALTIES[whole.best :][:1]
    found = sums.solve(span, targets[some], weights[some], at_best)
    np.testing.assert_allclose(found.left_out, whole.left_out[some], atol=1e-9)
    assert found.objective == pytest.approx(whole.objective, rel=1e-9)
    assert 0 <= found.gap <= 1e-12 * found.objective
    np.testing.assert_allclose(
        features @ found.slope + found.intercept, gram @ whole.weights + whole.intercept, atol=1e-8
    )
    # Errors at some series count by their importance.
    importance = rng.uniform(0.5, 2.0, size=25)
    errors = ((whole.left_out[some] - targets[some]) ** 2).mean(axis=1)
    found = sums.solve(span, targets[some], weights[some], at_best, importance)
    assert found.errors == pytest.approx([np.average(errors, weights=importance)])


def test_features_that_never_change_leave_the_mean(rng, fit):
    targets = np.sign(rng.normal(size=(10, 1)))
    found = fit(np.ones((10, 10)), targets, np.ones(10), PENALTIES)
    predicted = np.ones((1, 10)) @ found.weights + found.intercept
    np.testing.assert_allclose(predicted, targets.mean(axis=0)[None], atol=1e-8)
    # All penalties have the same error: the largest one is the simplest.
    assert found.best == len(PENALTIES) - 1


def test_comparisons_have_equal_weight_at_any_scale(rng):
    anchors = np.arange(12)
    comparisons = [rng.normal(size=(12, 2, 1, 3, 3)) + 1.0, rng.normal(size=(12, 1, 1, 4, 4))]

    def total(scales):
        gram = FeatureGram(anchors, 12)
        for scale, features in zip(scales, comparisons, strict=True):
            gram.add(scale * features)
            gram.end_comparison()
        return gram.solve(np.sign(comparisons[1][:, 0, 0, :1, 0]), np.ones(12), PENALTIES)

    one, other = total([1.0, 1.0]), total([1e-3, 50.0])
    np.testing.assert_allclose(one.left_out, other.left_out, atol=1e-9)


def test_penalties_are_relative_to_the_weights_of_all_comparisons(rng):
    one, other = FeatureGram(np.arange(6), 6), FeatureGram(np.arange(6), 6)
    one.add(rng.normal(size=(6, 3)))
    one.end_comparison()
    other.add(rng.normal(size=(6, 2)))
    other.end_comparison()
    # Features that never change add nothing.
    other.add(np.ones((6, 2)))
    other.end_comparison()
    np.testing.assert_allclose(one.plus(other, 4.0).absolute(np.array([0.1, 2.0])), [0.5, 10.0])


@pytest.mark.parametrize("anchors", [np.arange(8), np.array([1, 4, 6])])
def test_a_sum_has_the_products_and_weights_of_both(rng, anchors):
    first, second = rng.normal(size=(8, 3)), rng.normal(size=(8, 2, 2))
    grams = []
    for parts in ([first], [second[:, 0], second[:, 1]]):
        gram = FeatureGram(anchors, 8)
        for part in parts:
            gram.add(part)
        gram.end_comparison()
        grams.append(gram)
    both = grams[0].plus(grams[1], 3.0)
    flat = second.reshape(8, 4)
    weights = [1.0, 3.0] / np.array([f[anchors].var(axis=0).sum() for f in (first, flat)])
    np.testing.assert_allclose(both.comparison_weights, weights)
    features = np.hstack([np.sqrt(weights[0]) * first, np.sqrt(weights[1]) * flat])
    targets, ones = np.sign(rng.normal(size=(8, 1))), np.ones(8)
    found = both.solve(targets, ones, PENALTIES)
    products = features @ features[anchors].T
    expected = fit_loo_ridge(products, products[anchors], targets, ones, 4.0 * PENALTIES)
    np.testing.assert_allclose(found.left_out, expected.left_out, atol=1e-9)


def test_the_order_of_the_anchors_does_not_matter(rng):
    features, targets = rng.normal(size=(12, 1, 1, 4, 4)), np.sign(rng.normal(size=(12, 1)))

    def left_out(anchors):
        gram = FeatureGram(anchors, 12)
        gram.add(features)
        gram.end_comparison()
        return gram.solve(targets, np.ones(12), PENALTIES).left_out

    one, other = left_out(np.arange(12)), left_out(rng.permutation(12))
    np.testing.assert_allclose(one, other, atol=1e-9)


def test_joining_phases_adds_neighbours(rng):
    products = rng.normal(size=(3, 2, 6, 4, 5))
    joined = fewer_phases(products, 2)
    np.testing.assert_allclose(joined[:, :, 1], products[:, :, 3:].sum(axis=2))
    assert fewer_phases(products, 6) is products


def fit_with(left_out):
    return RidgeFit(
        weights=np.zeros((1, 1)), slope=np.zeros((1, 1)), intercept=np.zeros(1),
        penalties=PENALTIES, errors=np.zeros(3), best=1, left_out=left_out, objective=1.0, gap=0.0,
    )  # fmt: skip


def test_more_phases_have_to_be_clearly_better(rng):
    codes = np.arange(40) % 2
    targets = np.where(codes == 1, 1.0, -1.0)[:, None]
    plain = targets + rng.normal(size=targets.shape)
    close, better = plain * 1.0, targets + 0.2 * (plain - targets)
    close[0] = targets[0]
    weights = np.ones(40)
    chosen, choices = choose_phases(
        {1: fit_with(plain), 3: fit_with(close)}, targets, codes, weights, PENALTIES
    )
    assert chosen == 1
    assert [c.chosen for c in choices] == [True, False]
    assert "not clearly better" in choices[1].reason
    chosen, choices = choose_phases(
        {1: fit_with(plain), 3: fit_with(better)}, targets, codes, weights, PENALTIES
    )
    assert chosen == 3
    assert "replaced by 3 phases" in choices[0].reason
    assert choices[1].error < choices[0].error
    # Two classes have one decision; its sign is the class.
    accuracy = np.mean((plain[:, 0] > 0) == (codes == 1))
    assert [c.accuracy for c in choices] == pytest.approx([accuracy, 1.0])
    assert accuracy < 0.95
    assert choices[1].penalty == PENALTIES[1]


@pytest.fixture(params=["emulated", "real"])
def cupy(request, pretend, tmp_path):
    """CuPy, emulated and, where there is a GPU, real."""
    if request.param == "real":
        return request.getfixturevalue("gpu")
    return pretend(fake_cupy(tmp_path))


@pytest.mark.parametrize("n_anchors", [5, 12])
def test_a_gpu_sums_and_solves_as_the_cpu(cupy, rng, n_anchors):
    features = [rng.normal(size=(12, 2, 3)), rng.normal(size=(12, 4)).astype(np.float32)]
    targets, weights = np.sign(rng.normal(size=(12, 2))), rng.uniform(0.5, 2.0, size=12)
    grams = []
    for arrays in (np, cupy):
        gram, other = (FeatureGram(np.arange(n_anchors), 12, arrays) for _ in range(2))
        # What is added may be on either side.
        gram.add(arrays.asarray(features[0]))
        gram.add(features[1])
        other.add(features[1])
        for own in (gram, other):
            own.end_comparison()
        grams.append(gram.plus(other, 0.5))
    host, device = (gram.solve(targets, weights, PENALTIES) for gram in grams)
    for name in ("intercept", "errors", "left_out", "objective"):
        found = getattr(device, name)
        assert type(found) in (np.ndarray, float)
        np.testing.assert_allclose(found, getattr(host, name), rtol=1e-9, atol=1e-9)
    # Weights of dependent anchors are not unique, decisions are.
    flat = [own.reshape(12, -1).astype(float) for own in features]
    first, second = (own @ own[:n_anchors].T for own in flat)
    scales = grams[1].comparison_weights
    products = scales[0] * (first + second) + scales[1] * second
    np.testing.assert_allclose(products @ device.weights, products @ host.weights, atol=1e-9)
    # All series of a larger set are summed on the CPU, and solved in the coordinates of a sample.
    for span in (gram.span() for gram in grams):
        sums = NormalEquations(span.coordinates.shape[1], 2)
        sums.add(on_host(span.coordinates), targets, weights)
        found = sums.solve(span, targets, weights, grams[0].absolute(PENALTIES))
        np.testing.assert_allclose(found.left_out, host.left_out, atol=1e-9)
    known = LeftOut(np.array([7, 2]), np.array([2.0, 1.0, 3.0]), np.zeros((2, 2)))
    host, device = (gram.solve(targets, weights, PENALTIES, known) for gram in grams)
    np.testing.assert_allclose(device.errors, host.errors, rtol=1e-9)
    np.testing.assert_allclose(device.left_out, host.left_out, atol=1e-9)


@pytest.mark.parametrize(("gain", "chosen"), [(0.19, 1), (0.21, 3)])
def test_a_gain_must_exceed_two_standard_errors(gain, chosen):
    """Losses of 2 fall by the gain plus or minus 1: of 100 series the standard error is 0.1."""
    targets, codes = np.ones((100, 1)), np.ones(100, dtype=np.int64)
    plain, side = targets + np.sqrt(2.0), np.where(np.arange(100) % 2, 1.0, -1.0)[:, None]
    other = targets + np.sqrt(2.0 - gain - side)
    fits = {1: fit_with(plain), 3: fit_with(other)}
    found, choices = choose_phases(fits, targets, codes, np.full(100, 7.0), PENALTIES)
    assert found == chosen
    assert f"lower by {gain:.4f} than with 1, standard error 0.1000" in choices[1].reason
    assert [choice.error for choice in choices] == pytest.approx([2.0, 2.0 - gain])
    # Series that fall by 1 and more count nine times as much.
    weights = np.where(side[:, 0] > 0.0, 9.0, 1.0)
    _, choices = choose_phases(fits, targets, codes, weights, PENALTIES)
    assert choices[1].error == pytest.approx(1.2 - gain)
    doubt = np.sqrt((9**2 * 0.2**2 + 1.8**2) * 50) / 500
    assert f"by {gain + 0.8:.4f} than with 1, standard error {doubt:.4f}" in choices[1].reason
