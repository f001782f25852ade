"""Aligned products and linear models: decisions, parts of landmarks, contributions."""

import copy
import pickle
from dataclasses import replace

import numpy as np
import pytest

import slts
from slts.alignment import AlignmentSettings
from slts.features.aligned_products import AlignedProducts
from slts.features.feature_map import Resources
from slts.features.models import LinearModel
from slts.features.row_map import RowMap
from slts.features.snippets import Snippets
from tests.data import waves
from tests.oracles import products

CPU = Resources("cpu", 1)
CODES = np.array([0, 1, 0, 2, 1, 0])
SERIES = slts.as_series(waves(14, channels=3, gaps=0.1)[0])
LANDMARKS, NEW = SERIES[:6], SERIES[6:]


def in_banks(objective="affinity", band=None, rank=2, n_phases=3):
    row_map = RowMap.fit_pooled(SERIES, max_length=None, n_components=9)
    settings = AlignmentSettings(objective, band, normalize=False)
    return AlignedProducts.in_banks(
        "landmarks", LANDMARKS, row_map, settings, CODES, rank=rank, n_phases=n_phases
    )


def per_output():
    """As SLTS: output c uses bank c alone; the weights of one landmark are zero."""
    row_map = RowMap.fit(SERIES, scale=None, homogeneous=True, normalize=True)
    weights = np.random.default_rng(1).normal(size=(2, 6))
    weights[:, 4] = 0.0
    return AlignedProducts(
        "similarity", LANDMARKS, row_map, AlignmentSettings("affinity"), weights,
        bank_per_output=True,
    )  # fmt: skip


MAPS = {
    "banks": in_banks,
    "cost and band": lambda: in_banks("cost", 4),
    "all directions": lambda: in_banks(rank=99, n_phases=1),
    "bank per output": per_output,
}


@pytest.fixture(params=MAPS)
def feature_map(request):
    return MAPS[request.param]()


def coefficients(feature_map, outputs=2):
    return np.random.default_rng(2).normal(size=(outputs, *feature_map.shape))


def rows_of(feature_map, series):
    return [x.T for x in feature_map.rows(series)]


def oracle(name, feature_map, series, *coef):
    rows, landmarks = rows_of(feature_map, series), rows_of(feature_map, feature_map.landmarks)
    return getattr(products, name)(rows, landmarks, feature_map, *coef)


def test_features_and_parts_are_those_of_the_oracle(feature_map):
    features = oracle("features", feature_map, NEW)
    np.testing.assert_allclose(feature_map(NEW, CPU), features, rtol=0, atol=1e-12)
    if not feature_map.bank_per_output:
        assert features.shape == (len(NEW), *feature_map.shape)
    coef = coefficients(feature_map)
    parts = oracle("by_landmark", feature_map, NEW, coef)
    np.testing.assert_allclose(feature_map.by_landmark(NEW, coef, CPU), parts, rtol=0, atol=1e-12)
    values = feature_map.decide(NEW, coef, Resources("cpu", 3))
    np.testing.assert_allclose(values, parts.sum(axis=2), rtol=0, atol=1e-12)


def test_landmarks_are_left_out_of_their_own_features():
    """Also equal ones; one that is alone in its bank stays. The others are means without it."""
    twice = LANDMARKS[[0, 1, 2, 3, 4, 2]]
    feature_map = replace(in_banks(), landmarks=twice)
    series = SERIES[[7, 0, 2, 1, 3, 2]]
    features = feature_map(series, CPU)
    expected = features.copy()
    for row, own in enumerate([[], [0], [2, 5], [1], [3], [2, 5]]):
        for bank in range(3):
            rest = (feature_map.banks == bank) & ~np.isin(np.arange(6), own)
            if rest.any():
                alone = replace(feature_map, weights=rest[np.newaxis] / rest.sum())
                expected[row, bank] = alone(series[row : row + 1], CPU)[0, 0]
    feature_map.leave_out_selves(features, series, CPU)
    np.testing.assert_allclose(features, expected, rtol=0, atol=1e-12)
    np.testing.assert_array_equal(features[0], feature_map(series[:1], CPU)[0])
    assert np.abs(features - feature_map(series, CPU))[[1, 2, 3, 5]].max(axis=(1, 2, 3, 4)).all()


def test_contributions_are_those_of_the_oracle(feature_map):
    coef = coefficients(feature_map)
    landmarks = rows_of(feature_map, LANDMARKS)
    for p in range(3):
        series = NEW[p : p + 1]
        values = feature_map.row_map.trace(series).rows.values
        terms = products.attribution(values, landmarks, feature_map, coef)
        contributions, rest = feature_map.attribute(series, coef)
        # The last channel is the constant. Steps at which nothing is observed have no row.
        observed = ~np.isnan(series.values).all(axis=1)
        np.testing.assert_allclose(contributions[:, observed], terms[:, :, :-1], atol=1e-12)
        np.testing.assert_allclose(rest, terms[:, :, -1].sum(axis=1), atol=1e-12)
        parts = [feature_map.attribute(series, coef, j) for j in range(len(LANDMARKS))]
        totals = [part.contributions.sum(axis=(1, 2)) + part.rest for part in parts]
        by_landmark = feature_map.by_landmark(series, coef, CPU)[0]
        np.testing.assert_allclose(np.transpose(totals), by_landmark, atol=1e-12)
        whole = sum(part.contributions for part in parts)
        np.testing.assert_allclose(whole, contributions, atol=1e-12)


def test_identities_are_similarities_without_a_path():
    feature_map = per_output()
    d = feature_map.shape[-1]
    coef = np.tile(np.eye(d), (2, 1, 1, 1, 1))
    nearly = coef * (1.0 + 1e-15)
    assert not (nearly == coef).all()
    np.testing.assert_allclose(
        feature_map.decide(NEW, coef, CPU), feature_map.decide(NEW, nearly, CPU), atol=1e-12
    )
    K = feature_map.similarities(NEW, None, CPU)
    np.testing.assert_allclose(feature_map.decide(NEW, coef, CPU), K @ feature_map.weights.T)
    K = feature_map.similarities(NEW, coef[:, 0, 0], CPU)
    np.testing.assert_allclose(K[:, :, 0], feature_map.similarities(NEW, None, CPU), atol=1e-12)


@pytest.mark.parametrize(
    ("field", "value", "name"),
    [
        ("weights", np.ones((2, 5)), "weights"),
        ("weights", np.ones(6), "weights"),
        ("n_phases", 0, "n_phases"),
        ("basis", np.ones(3), "basis"),
        ("bank_per_output", True, "basis"),
    ],
)
def test_fields_must_fit(field, value, name):
    with pytest.raises(ValueError, match=name):
        replace(in_banks(), **{field: value})


# ---- linear models


def snippets():
    drawn = Snippets.draw(LANDMARKS, CODES, 12, seed=0)
    return replace(drawn, shares=np.full(drawn.shares.shape, 0.25))


@pytest.fixture(params=["local", "per output"])
def model(request):
    maps = (in_banks(), in_banks("cost"), snippets())
    if request.param == "per output":
        maps = (per_output(),)
    coefs = tuple(coefficients(feature_map) for feature_map in maps)
    return LinearModel(maps, coefs, np.array([0.5, -2.0]))


def test_decisions_are_sums_of_parts_and_of_contributions(model):
    decisions = model.decide(NEW, CPU)
    parts = model.by_landmark(NEW, CPU)
    np.testing.assert_allclose(model.intercept + parts.sum(axis=2), decisions, atol=1e-12)
    for p in range(len(NEW)):
        terms = model.attribute(NEW[p : p + 1])
        total = sum(term.contributions.sum(axis=(1, 2)) + term.rest for term in terms)
        np.testing.assert_allclose(model.intercept + total, decisions[p], atol=1e-10)


def test_other_functions_of_the_same_features_are_linear():
    maps = (in_banks(), snippets())
    model = LinearModel(maps, tuple(map(coefficients, maps)), np.array([0.5, -2.0]))
    weights, intercept = np.random.default_rng(3).normal(size=(2, 5)), np.arange(5.0)
    combined = model.combined(weights, intercept)
    expected = model.decide(NEW, CPU) @ weights + intercept
    np.testing.assert_allclose(combined.decide(NEW, CPU), expected, rtol=0, atol=1e-11)
    assert combined.maps == model.maps


def test_copies_threads_and_place_in_the_batch_change_no_bit(model):
    decisions = model.decide(NEW, CPU)
    for other in (pickle.loads(pickle.dumps(model)), copy.deepcopy(model)):
        np.testing.assert_array_equal(other.decide(NEW, Resources("cpu", 3)), decisions)
    np.testing.assert_array_equal(model.decide(NEW[::-1], CPU), decisions[::-1])
    assert model.decide(NEW[:0], CPU).shape == (0, 2)


def test_nearly_tied_paths_are_the_same_alone_and_in_a_batch(rng):
    """Paths of periodic series nearly tie, so that a rounding changes a path and its features."""
    X = [
        np.sin(np.arange(rng.integers(300, 900)) * np.pi / 20 + 9 * rng.random()) for _ in range(8)
    ]
    series = slts.as_series([(x + 1e-4 * rng.normal(size=len(x)))[np.newaxis] for x in X])
    row_map = RowMap.fit_pooled(series, max_length=96, n_components=9)
    how = AlignmentSettings("affinity", normalize=False)
    aligned = AlignedProducts.in_banks(
        "landmarks", series[:4], row_map, how, np.arange(4) % 2, rank=2, n_phases=3
    )
    for feature_map in (aligned, Snippets.draw(series, np.arange(8) % 2, 20, seed=0)):
        together = feature_map(series, CPU)
        for p in range(8):
            alone = feature_map(series[p : p + 1], Resources("cpu", 2))
            np.testing.assert_array_equal(alone[0], together[p])


def test_coefficients_must_fit_the_maps(model):
    with pytest.raises(ValueError, match="coefs"):
        replace(model, coefs=model.coefs[:-1])
    with pytest.raises(ValueError, match="coefs"):
        replace(model, coefs=(model.coefs[0][:, :1, :, :1], *model.coefs[1:]))
    with pytest.raises(ValueError, match="weights"):
        LinearModel((per_output(),), (coefficients(per_output(), 3),), np.zeros(3))
