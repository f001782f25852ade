"""The fit of the local classifier: a slow obvious reference, scans, and memory."""

import re
from dataclasses import replace

import numpy as np
import pytest

import slts
from slts.training.local_fit import fit_local
from tests.data import scan_of, waves
from tests.oracles import products, windows
from tests.oracles.ridge import left_out, ridge
from tests.training.options import local_options, training_set


def features_of(feature_map, series, *, alone=False):
    """Features of one map by loops over pairs and steps, (series, *shape)."""
    if hasattr(feature_map, "thresholds"):
        return windows.features([x.T for x in series], feature_map)
    rows, landmarks = (feature_map.rows(some) for some in (series, feature_map.landmarks))
    rows, landmarks = [x.T for x in rows], [x.T for x in landmarks]
    if not alone:
        return products.features(rows, landmarks, feature_map)
    return np.array([products.features([row], landmarks, without(feature_map, x))[0]
                     for row, x in zip(rows, series, strict=True)])  # fmt: skip


def without(feature_map, x):
    """The means over the landmarks other than x."""
    kept = np.array([not np.array_equal(x, other, equal_nan=True)
                     for other in feature_map.landmarks])  # fmt: skip
    weights = feature_map.weights * kept
    return replace(feature_map, weights=weights / weights.sum(axis=1, keepdims=True))


def standardised(values, *, one_by_one):
    """Centre and scale that make the mean squared norm of the rows 1."""
    flat = values.reshape(len(values), -1)
    centre, variances = flat.mean(axis=0), flat.var(axis=0)
    varies = variances > 1e-18 * np.maximum(centre**2, 1.0)
    if not one_by_one:
        return centre, np.full(len(centre), 1.0 / np.sqrt(variances.sum()))
    scale = np.zeros(len(centre))
    scale[varies] = 1.0 / np.sqrt(variances[varies] * varies.sum())
    return centre, scale


def numbers_in_class(codes):
    """Number the series of every class."""
    return np.array([np.sum(codes[:i] == c) for i, c in enumerate(codes)])


class Reference:
    """Features, choice of phases and weights by leave-one-out, and the last solve."""

    def __init__(self, data, maps, weights, options):
        self.maps, n_classes = maps, len(data.classes)
        Y = np.where(data.codes[:, None] == np.arange(n_classes), 1.0, -1.0)
        Y = Y[:, 1:] if n_classes == 2 else Y
        units = np.arange(len(Y)) if data.groups is None else data.groups
        losses, fits = {}, {}
        usual, other = (options.phases[0], 8.0), (options.phases[-1], 0.25)
        for n_phases, share in (usual, other):
            _, X = self.scaled(data.series, n_phases, share)
            predictions = [left_out(X, Y, weights, penalty, units)
                           for penalty in options.penalties * (1.0 + share)]  # fmt: skip
            errors = [weights @ ((Y - one) ** 2).mean(axis=1) for one in predictions]
            best = int(np.argmin(errors))
            fits[n_phases, share] = options.penalties[best], X
            losses[n_phases, share] = ((Y - predictions[best]) ** 2).mean(axis=1)
        gains, p = losses[usual] - losses[other], weights / weights.sum()
        deviations = np.bincount(np.unique(units, return_inverse=True)[1],
                                 p * (gains - p @ gains))  # fmt: skip
        is_better = p @ gains > 2.0 * np.sqrt(np.sum(deviations**2))
        chosen = other if is_better else usual
        self.n_phases, share = chosen
        relative, X = fits[chosen]
        penalty = relative * (1.0 + share)
        # Classes have as many series, and groups have several classes.
        parts = numbers_in_class(data.codes) if data.groups is None else units
        self.held_out = left_out(X, Y, weights, penalty, parts)
        self.blocks, X = self.scaled(data.series, *chosen)
        slope, _ = ridge(X, Y, weights, penalty)
        # Weigh snippets by the norms of their coefficients, and solve again.
        snippets, n_features = maps[-1], int(np.prod(maps[-1].shape))
        norms = np.linalg.norm(slope[-n_features:].reshape(len(snippets), -1), axis=1)
        factors = np.repeat(norms, n_features // len(snippets))
        centre, scale = self.blocks[-1]
        factors /= np.sqrt(np.mean(factors[scale > 0] ** 2))
        self.blocks[-1] = centre, scale * factors
        X[:, -n_features:] *= factors
        self.slope, self.intercept = ridge(X, Y, weights, penalty)

    def scaled(self, series, n_phases, share):
        """Scales and scaled features of all maps; snippets have the weight `share`."""
        maps = [replace(m, n_phases=n_phases) for m in self.maps[:-1]] + [self.maps[-1]]
        values = [features_of(m, series, alone=True) for m in maps]
        blocks = [standardised(v, one_by_one=m is maps[-1])
                  for m, v in zip(maps, values, strict=True)]  # fmt: skip
        centre, scale = blocks[-1]
        blocks[-1] = centre, scale * np.sqrt(share)
        return blocks, self.apply(blocks, values)

    def apply(self, blocks, values):
        flat = [v.reshape(len(v), -1) for v in values]
        return np.hstack([(v - c) * s for v, (c, s) in zip(flat, blocks, strict=True)])

    def decide(self, series):
        maps = [replace(m, n_phases=self.n_phases) for m in self.maps[:-1]] + [self.maps[-1]]
        values = [features_of(m, series) for m in maps]
        return self.apply(self.blocks, values) @ self.slope + self.intercept


@pytest.mark.parametrize(
    ("n_classes", "groups", "how"),
    [
        (2, None, {}),
        (3, None, {"class_weight": "balanced", "phases": (1,)}),
        (2, np.arange(18) // 4, {}),
        (2, None, {"class_weight": {1: 3.0}, "phases": (3,)}),
    ],
)
def test_the_model_is_that_of_a_slow_reference(n_classes, groups, how):
    series, codes = waves(18, n_classes=n_classes, channels=2, lengths=(5, 9), gaps=0.1)
    given = np.random.default_rng(0).uniform(0.5, 2.0, size=18)
    data = training_set(series, codes, weights=given, groups=groups)
    options = local_options(n_snippets=6, penalties=np.array([0.01, 0.1, 1.0]), **how)
    fit = fit_local(data, options)
    weights = data.weights * data.class_weights(options.class_weight)[data.codes]
    reference = Reference(data, fit.model.maps, weights / weights.mean(), options)
    assert fit.model.maps[0].n_phases == reference.n_phases
    np.testing.assert_allclose(fit.held_out[0], reference.held_out, rtol=0, atol=1e-7)
    np.testing.assert_array_equal(fit.held_out[1], data.codes)
    new = slts.as_series(waves(8, channels=2, lengths=(3, 12), gaps=0.2, seed=1)[0])
    for some in (data.series, new):
        decisions = fit.model.decide(some, options.resources)
        np.testing.assert_allclose(decisions, reference.decide(some), rtol=0, atol=1e-8)
    counts = features_of(fit.model.snippets, data.series)
    np.testing.assert_allclose(fit.model.snippets.shares, counts[..., 0].mean(axis=0), atol=1e-12)


def test_more_phases_are_taken_only_if_they_are_clearly_better(rng):
    """The order of two waves within a series is the class: only phases of a landmark tell it."""
    time = np.arange(20)
    fast, slow = np.sin(2.5 * time), np.sin(0.5 * time)
    codes = np.arange(30) % 2
    X = [np.where((time < 10) == c, fast, slow) + 0.1 * rng.normal(size=20) for c in codes]
    phased = fit_local(training_set(X, codes), local_options(n_snippets=0)).model
    assert phased.maps[0].n_phases == 3
    noise = [rng.normal(size=(1, 20)) + c for c in codes]
    plain = fit_local(training_set(noise, codes), local_options(n_snippets=0)).model
    assert plain.maps[0].n_phases == 1


# ---- sums over all series


@pytest.fixture(scope="module")
def many():
    """Series whose features exceed a small limit, in memory and as a scan of parts."""
    series, codes = waves(300, n_classes=3, channels=2, noise=1.0)
    data = training_set(series, codes)
    cuts = [(0, 90), (90, 91), (91, 300)]
    parts = [scan_of((series[a:b], codes[a:b])).parts()[0] for a, b in cuts]
    return data, scan_of(*parts), slts.as_series(waves(50, n_classes=3, channels=2, seed=1)[0])


def test_sums_over_a_scan_have_the_solution_of_memory(many):
    """All series are anchors, so the solution may be any function of the features.

    Landmarks that are alone in their bank are not left out of their own features.
    """
    data, scan, new = many
    for weight in (None, "balanced"):
        options = local_options(class_weight=weight, n_landmarks=3)
        whole = fit_local(data, options)
        summed = fit_local(replace(data, scan=scan), replace(options, n_jobs=2))
        assert summed.report.objective == pytest.approx(whole.report.objective, rel=1e-9)
        one, other = (fit.model.decide(new, options.resources) for fit in (whole, summed))
        np.testing.assert_allclose(one, other, rtol=0, atol=1e-8)


def limited(n_anchors, **how):
    """Options whose memory is enough for the features of some series."""
    n_features = 3 * 3 * 3 + 40 * 4 * 2
    how = {"phases": (1,), "n_snippets": 40, "n_landmarks": 3} | how
    n_bytes = 2 * 8 * n_anchors * (n_features + 10 * n_anchors)
    return local_options(memory_limit=n_bytes + 1000, **how)


def test_all_series_are_learned_from_if_some_of_them_span_the_solution(many):
    data, scan, new = many
    options = limited(120)
    memory, parts = fit_local(data, options), fit_local(replace(data, scan=scan), options)
    assert memory.validation.n_series == 120
    one, other = (fit.model.decide(new, options.resources) for fit in (memory, parts))
    np.testing.assert_allclose(one, other, rtol=0, atol=1e-8)
    whole = fit_local(data, limited(300))
    exact = whole.model.decide(new, options.resources)
    assert np.mean(one.argmax(axis=1) == exact.argmax(axis=1)) >= 0.9
    # They fit all series better than what is learned from the anchors alone.
    alone = fit_local(data.take(data.evenly(120)), limited(300))
    targets = np.where(data.codes[:, None] == np.arange(3), 1.0, -1.0)
    losses = [
        np.average((fit.model.decide(data.series, options.resources) - targets) ** 2, axis=0,
                   weights=data.weights).mean()
        for fit in (memory, alone)
    ]  # fmt: skip
    assert losses[0] < losses[1]


@pytest.mark.parametrize("device", ["cpu", "auto"])
def test_copies_are_series_of_weight_two_in_sums_too(many, device):
    data, _, new = many
    series, codes = list(data.series), data.codes
    twice = training_set(series + series[:100], np.append(codes, codes[:100]))
    weighted = training_set(series, codes, weights=np.where(np.arange(300) < 100, 2.0, 1.0))
    options = limited(120, device=device)
    one, other = (fit_local(d, options).model.decide(new, options.resources)
                  for d in (twice, weighted))  # fmt: skip
    np.testing.assert_array_equal(one, other)


def test_too_little_memory_is_an_error_that_names_enough(many):
    data, _, _ = many
    with pytest.raises(ValueError, match="'memory_limit'") as error:
        fit_local(data, limited(99))
    enough = re.search(r"needs (\S+ [kMG]B)", str(error.value))[1]
    fit_local(data, replace(limited(99), memory_limit=enough))
