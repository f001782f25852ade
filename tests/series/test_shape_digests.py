"""Digests by which copies of series are recognised."""

import numpy as np
import pytest

import slts
from slts.series.shape_digests import shape_digests


@pytest.fixture(scope="module")
def series():
    rng = np.random.default_rng(0)
    walks = [rng.normal(size=(3, n)).cumsum(axis=1) for n in rng.integers(11, 60, 300)]
    # Channels of very different size.
    return [walk * np.array([[1.0], [50.0], [1e-9]]) for walk in walks]


def digests(series, **options):
    return shape_digests(slts.as_series(series), **options)


def test_independent_series_differ(series):
    assert len(np.unique(digests(series))) == len(series)


@pytest.mark.parametrize(
    ("change", "share"),
    [
        (lambda x: -3e7 * x + [[1.0], [-2.0], [5.0]], 0.0),
        (lambda x: 3e7 * x + [[1e7], [-2e7], [5.0]], 0.99),
        (lambda x: x.astype(np.float32), 0.99),
        (lambda x: x + 1e-5 * np.random.default_rng(1).normal(size=x.shape), 0.9),
        (lambda x: x + np.random.default_rng(1).normal(size=x.shape), 0.0),
    ],
    ids=["negative", "factor and offsets", "float32", "small noise", "large noise"],
)
def test_copies_are_recognised(series, change, share):
    same = (digests([change(x) for x in series]) == digests(series)).mean()
    assert same == 0.0 if share == 0.0 else same >= share


def test_copies_without_their_last_steps_are_recognised(series):
    for keep in (lambda n: n - 1, lambda n: -(-3 * n // 4)):
        cut = [x[:, : max(2, keep(x.shape[1]))] for x in series]
        found = (digests(cut) == digests(series)) | (digests(cut, longer=True) == digests(series))
        assert found.all()


def test_series_without_shape_are_compared_value_by_value():
    flat = [np.zeros((1, 8)), np.ones((1, 8)), np.ones((1, 9)), np.ones((1, 1)), np.zeros((1, 8))]
    assert len(np.unique(digests(flat))) == 4
    short = [np.sort(np.random.default_rng(k).normal(size=(2, 4))) for k in range(300)]
    assert len(np.unique(digests(short))) == 300
    assert np.array_equal(digests(short), digests([x.astype(np.float32) for x in short]))


@pytest.mark.parametrize("power", [-900, 900])
def test_very_small_and_very_large_series_are_told_apart(series, power):
    """Their squares are zero or infinite, and so are their values as float32."""
    scaled = [np.ldexp(x, power) for x in series]
    assert np.array_equal(digests(scaled), digests(series))
    constant = [np.full((1, 8), np.ldexp(1.0 + k, power)) for k in range(5)]
    assert len(np.unique(digests(constant))) == 5


def test_missing_values_and_the_other_series_of_a_batch_do_not_matter(series):
    gaps = [x.copy() for x in series]
    for x in gaps:
        x[1, ::3] = np.nan
    together = digests(gaps)
    assert len(np.unique(together)) == len(gaps)
    assert np.array_equal(together[:5], [digests([x])[0] for x in gaps[:5]])


def test_digests_are_those_in_model_files():
    """Other digests would not recognise the training series of stored models."""
    steps = np.arange(100.0)
    waves = np.stack([np.sin(steps / 7), 3 * np.cos(steps / 11) + 100, 0.002 * np.sin(steps)])
    gaps = waves.copy()
    gaps[:, 20:45] = gaps[1] = np.nan
    one = gaps[:, :20].copy()
    one[2, 1:] = np.nan
    given = [waves, waves[:, :11], waves[:, 30:53], gaps, one, waves[:, :3], 1e3 * waves]
    known = [
        "23f08fef5858f775", "7ef226446884c118", "232daf4b20bf0580", "5866b31fe3f4048a",
        "6fb0412eb8e6dbab", "c76af59b169cec2a", "23f08fef5858f775",
    ]  # fmt: skip
    assert [f"{digest:x}" for digest in digests(given)] == known
    # Twice as many steps are at hand in one series only.
    known[4] = "a3859e7755b41b15"
    assert [f"{digest:x}" for digest in digests(given, longer=True)] == known
