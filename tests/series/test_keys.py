"""Keys of series and digests of identifiers: what random draws and repeated series depend on."""

from hashlib import blake2b

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import chi2

import slts
from slts import SeriesBatch
from slts.series.keys import identifier_digests, series_digests, series_keys


def steps(values):
    """Series of one step and one channel."""
    return SeriesBatch(np.asarray(values, dtype=float)[:, np.newaxis], np.arange(len(values) + 1))


def keys_of(batch, seed):
    return series_keys(series_digests(batch), seed)


def test_keys_do_not_depend_on_order_or_cuts(rng):
    batch = slts.as_series([rng.normal(size=(2, n)) for n in rng.integers(1, 9, size=30)])
    keys = keys_of(batch, 5)
    order = rng.permutation(30)
    assert (keys.dtype, len(set(keys.tolist()))) == (np.uint64, 30)
    np.testing.assert_array_equal(keys_of(batch[order], 5), keys[order])
    np.testing.assert_array_equal(keys_of(batch[7:], 5), keys[7:])
    assert keys_of(batch[:0], 5).shape == (0,)


def test_keys_depend_on_every_value_on_shape_and_on_the_seed():
    wide = SeriesBatch(np.array([[1.0, 2.0], [3.0, 4.0]]), [0, 2])
    tall = SeriesBatch(np.array([[1.0], [2.0], [3.0], [4.0]]), [0, 4])
    other = SeriesBatch(np.array([[1.0, 2.0], [3.0, np.nextafter(4.0, 5.0)]]), [0, 2])
    keys = [keys_of(batch, seed)[0] for batch in (wide, tall, other) for seed in (0, 1)]
    assert len(set(keys)) == 6
    named = SeriesBatch(wide.values, [0, 2], ["u", "v"])
    np.testing.assert_array_equal(keys_of(named, 1), keys_of(wide, 1))
    np.testing.assert_array_equal(keys_of(steps([0.0]), 1), keys_of(steps([-0.0]), 1))


def test_every_series_is_drawn_as_often_as_any_other():
    """Chi-square over fixed seeds: too large is a bias, too small is not random."""
    n, count, n_seeds = 50, 10, 2000
    batch = steps(np.arange(n))
    included = np.zeros(n)
    for seed in range(n_seeds):
        included[np.argsort(keys_of(batch, seed))[:count]] += 1
    share = count / n
    variance = n_seeds * share * (1 - share) * n / (n - 1)
    statistic = float(((included - n_seeds * share) ** 2).sum() / variance)
    low, high = chi2.ppf([0.001, 0.999], n - 1)
    assert low < statistic < high


def test_keys_are_hashes_of_the_seed_and_the_bytes_of_a_series():
    """They decide what is drawn, so every version must give the same keys."""

    def mixed(number):
        number = (number + 0x9E3779B97F4A7C15) % 2**64
        for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
            number = (number ^ (number >> shift)) * factor % 2**64
        return number ^ (number >> 31)

    batch = SeriesBatch(np.arange(6.0).reshape(3, 2), [0, 1, 3])
    for x, key in zip(batch, keys_of(batch, 7), strict=True):
        digest = blake2b(x.T.tobytes(), digest_size=8, key=(2).to_bytes(4, "little")).digest()
        assert key == mixed(int.from_bytes(digest, "little") ^ mixed(7))


@given(st.lists(st.integers(-(2**63), 2**63 - 1), min_size=1, unique=True))
def test_digests_of_integers_differ(ids):
    found = identifier_digests(ids)
    assert (found.dtype, len(set(found.tolist()))) == (np.uint64, len(ids))
    np.testing.assert_array_equal(found, identifier_digests(np.array(ids)))


def test_digests_of_equal_numbers_are_equal_whatever_their_type():
    known = identifier_digests(np.array([-4, 0, 19, 2**53 + 2]))
    others = [[-4.0, 0.0, 19.0, float(2**53 + 2)], [-4, 0, 19.0, 2**53 + 2]]
    for ids in others:
        np.testing.assert_array_equal(identifier_digests(ids), known)
        np.testing.assert_array_equal(identifier_digests(np.array(ids, dtype=object)), known)
    np.testing.assert_array_equal(identifier_digests(np.array([19.5, 0.0]))[1], known[1])
    for kind in (np.int8, np.uint8, np.uint32, np.uint64):
        assert identifier_digests(np.array([19], kind)) == known[2]
    # Python's hash is the same for -1 and -2.
    other = [19, 19.5, "19", True, None, np.nan, -1, -2, b"left", "left", "left ", "Left", 1, "1"]
    assert len(set(identifier_digests(other).tolist())) == len(other)
    assert identifier_digests([]).shape == identifier_digests(np.array([], "U3")).shape == (0,)


@given(st.lists(st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0")),
                min_size=1, unique=True))  # fmt: skip
def test_digests_of_text_do_not_depend_on_the_container(ids):
    found = identifier_digests(ids)
    assert len(set(found.tolist())) == len(ids)
    np.testing.assert_array_equal(found, identifier_digests(np.array(ids)))
    np.testing.assert_array_equal(found, identifier_digests(np.array(ids, dtype=object)))
    np.testing.assert_array_equal(found, identifier_digests(list(np.array(ids))))
    np.testing.assert_array_equal(found, [identifier_digests([id])[0] for id in ids])
