"""Reservoir: the sample is that of one look at all series, however they are shown."""

from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import chi2

from slts import SeriesBatch
from slts.landmarks.reservoir import Ceilings, Reservoir, SampleSize, sampling_keys
from slts.series.stream import digests_of

LAST = 2**64 - 1
CLASSES = ("a", "long name", "mid")


@dataclass(frozen=True)
class Problem:
    """Series whose values tell who they are, in parts that are cut in batches."""

    keys: np.ndarray
    labels: np.ndarray
    lengths: np.ndarray
    parts: tuple[tuple[np.ndarray, ...], ...]

    def series(self, index):
        lengths = self.lengths[index]
        values = np.repeat(index.astype(np.float64), lengths)[:, np.newaxis]
        offsets = np.concatenate([[0], np.cumsum(lengths)])
        return SeriesBatch(np.hstack([values, -values]), offsets)

    def show(self, reservoir, number):
        """All batches of a part, with labels no wider than they must be."""
        first = 0
        for index in self.parts[number]:
            labels = np.array(self.labels[index].tolist())
            reservoir.add(self.keys[index], labels, number, first, self.series(index))
            first += len(index)

    def places(self):
        """Part and position of every series."""
        found = {}
        for number, batches in enumerate(self.parts):
            for position, i in enumerate(np.concatenate(batches)):
                found[int(i)] = (number, position)
        return found


def problem_of(labels, lengths, parts, seed=0):
    keys = sampling_keys(digests_of(np.arange(len(labels))), seed)
    return Problem(keys, np.array(labels), np.array(lengths), parts)


def in_one_part(labels, lengths, seed=0):
    return problem_of(labels, lengths, ((np.arange(len(labels)),),), seed)


def oracle(problem, size):
    """Sort all keys and take the longest prefix that fits, and the first of every class."""
    order = sorted(range(len(problem.keys)), key=lambda i: int(problem.keys[i]))
    uniform, total = [], 0
    for i in order:
        total += 8 * 2 * int(problem.lengths[i])
        fits = total <= size.n_bytes and len(uniform) < size.n_series
        if not fits and len(uniform) >= size.at_least:
            break
        uniform.append(i)
    wanted = set(uniform)
    for label in set(problem.labels.tolist()):
        members = [i for i in order if problem.labels[i] == label]
        total = 0
        for rank, i in enumerate(members[: size.per_class]):
            total += 8 * 2 * int(problem.lengths[i])
            if rank >= 2 and total > size.n_bytes / max(20, len(set(problem.labels.tolist()))):
                break
            wanted.add(i)
    return [i for i in order if i in wanted], len(uniform)


def check(problem, size, sample):
    expected, n_uniform = oracle(problem, size)
    assert sample.series.values[sample.series.offsets[:-1], 0].tolist() == expected
    assert sample.series.lengths.tolist() == problem.lengths[expected].tolist()
    assert sample.n_uniform == n_uniform
    assert len(sample) == len(expected)
    assert sample.keys.tolist() == problem.keys[expected].tolist()
    assert sample.labels.tolist() == problem.labels[expected].tolist()
    places = problem.places()
    assert list(zip(sample.parts, sample.positions, strict=True)) == [places[i] for i in expected]


def assert_not_risen(before, after):
    assert after.every <= before.every
    for label, key in (before.by_class or {}).items():
        assert after.by_class[label] <= key


@st.composite
def problems(draw):
    n = draw(st.integers(1, 50))
    # One class is common, so that the others are rare.
    labels = draw(st.lists(st.sampled_from(CLASSES[:1] * 5 + CLASSES), min_size=n, max_size=n))
    # A few are so long that what comes behind them would fit.
    lengths = draw(st.lists(st.sampled_from([1, 2, 3, 20]), min_size=n, max_size=n))
    order = np.array(draw(st.permutations(range(n))))
    cuts = sorted(draw(st.lists(st.integers(0, n), max_size=5)))
    parts = []
    for share in np.split(order, cuts):
        inner = sorted(draw(st.lists(st.integers(0, len(share)), max_size=3)))
        parts.append(tuple(np.split(share, inner)))
    return problem_of(labels, lengths, tuple(parts), draw(st.integers(0, 2**31)))


sizes = st.builds(
    SampleSize,
    n_series=st.integers(1, 30),
    n_bytes=st.integers(1, 60_000),
    at_least=st.integers(1, 4),
    per_class=st.integers(0, 6),
)


@given(problem=problems(), size=sizes)
def test_order_and_batches_do_not_matter(problem, size):
    reservoir = Reservoir(size)
    for number in range(len(problem.parts)):
        before = reservoir.ceilings
        problem.show(reservoir, number)
        assert_not_risen(before, reservoir.ceilings)
    check(problem, size, reservoir.sample())
    check(problem, size, reservoir.sample())


@given(problem=problems(), size=sizes, data=st.data())
def test_parts_may_be_seen_apart_with_ceilings_of_any_time(problem, size, data):
    whole = Reservoir(size)
    known = [whole.ceilings]
    for number in data.draw(st.permutations(range(len(problem.parts)))):
        # As a worker that began before the last results were known.
        part = Reservoir(size, data.draw(st.sampled_from(known)))
        before = part.ceilings
        problem.show(part, number)
        assert_not_risen(before, part.ceilings)
        if data.draw(st.booleans()):
            part.sample()
            assert_not_risen(before, part.ceilings)
        before = whole.ceilings
        whole.merge(part)
        if data.draw(st.booleans()):
            whole.sample()
        assert_not_risen(before, whole.ceilings)
        known.append(whole.ceilings)
    check(problem, size, whole.sample())


@given(problem=problems(), size=sizes)
def test_nothing_in_the_sample_lies_beyond_the_ceilings(problem, size):
    reservoir = Reservoir(size)
    for number in range(len(problem.parts)):
        problem.show(reservoir, number)
    sample = reservoir.sample()
    ceilings = reservoir.ceilings
    assert ceilings.admit(sample.keys, sample.labels).tolist() == list(range(len(sample)))
    assert (sample.keys[: sample.n_uniform] <= ceilings.every).all()


def test_series_beyond_the_ceilings_are_not_admitted():
    keys = np.array([5, 10, 11, 20, 21, LAST], dtype=np.uint64)
    labels = np.array(["a", "a", "a", "b", "b", "c"])
    ceilings = Ceilings(np.uint64(10), {"a": np.uint64(3), "b": np.uint64(20)})
    # A class of which too few are known has no ceiling.
    assert ceilings.admit(keys, labels).tolist() == [0, 1, 3, 5]


def test_a_full_reservoir_forgets():
    """What is held stays small, however much is shown."""
    size = SampleSize(n_series=5, n_bytes=float("inf"), per_class=1)
    n = 2000
    batches = tuple(np.split(np.arange(n), n // 10))
    problem = problem_of(["a", "b"] * (n // 2), [1] * n, (batches,))
    reservoir = Reservoir(size)
    most = 0
    for k, index in enumerate(batches):
        reservoir.add(
            problem.keys[index], problem.labels[index], 0, 10 * k, problem.series(index)
        )  # fmt: skip
        most = max(most, sum(map(len, reservoir._held)))
    assert most <= 2 * size.n_series
    assert reservoir.ceilings.every < LAST // 100
    check(problem, size, reservoir.sample())


def test_nothing_shown_is_no_sample():
    size = SampleSize(3, 100)
    reservoir = Reservoir(size)
    assert reservoir.sample() is None
    reservoir.merge(Reservoir(size))
    empty = in_one_part(["a"], [1]).series(np.arange(0))
    reservoir.add(np.empty(0, np.uint64), np.empty(0, "U1"), 0, 0, empty)
    assert reservoir.sample() is None


def test_a_rare_class_is_completed():
    labels = ["common"] * 500 + ["rare"] * 4 + ["alone"]
    problem = in_one_part(labels, [2] * 505)
    size = SampleSize(n_series=10, n_bytes=float("inf"), per_class=3)
    reservoir = Reservoir(size)
    problem.show(reservoir, 0)
    sample = reservoir.sample()
    check(problem, size, sample)
    counts = dict(zip(*np.unique(sample.labels, return_counts=True), strict=True))
    assert counts["rare"] >= 3
    assert counts["alone"] == 1
    assert sample.n_uniform == 10
    assert (np.diff(sample.keys[:10].astype(object)) > 0).all()
    assert (np.diff(sample.keys[10:].astype(object)) > 0).all()


@pytest.mark.parametrize(("at_least", "expected"), [(1, 2), (2, 2), (7, 7), (100, 30)])
def test_so_many_are_kept_whatever_their_size(at_least, expected):
    """Two series of 160 bytes fit in 400."""
    problem = in_one_part(["a"] * 30, [10] * 30)
    size = SampleSize(n_series=20, n_bytes=400, at_least=at_least)
    reservoir = Reservoir(size)
    problem.show(reservoir, 0)
    sample = reservoir.sample()
    check(problem, size, sample)
    assert (len(sample), sample.n_uniform) == (expected, expected)


def test_a_series_that_does_not_fit_ends_the_sample():
    """A short one behind it would be drawn for being short."""
    lengths = np.ones(20, dtype=np.int64)
    keys = in_one_part(["a"] * 20, lengths).keys
    lengths[np.argsort(keys)[3]] = 1000
    problem = in_one_part(["a"] * 20, lengths)
    reservoir = Reservoir(SampleSize(n_series=20, n_bytes=2000))
    problem.show(reservoir, 0)
    assert len(reservoir.sample()) == 3


@pytest.mark.parametrize("apart", [False, True])
def test_one_of_a_rare_class_does_not_take_the_place_of_a_long_one(apart):
    """It is behind the long series that did not fit, also once that is forgotten."""
    keys = in_one_part(["a"] * 3, [1, 1, 1]).keys
    first, long, rare = np.argsort(keys)
    lengths, labels = np.array([3, 3, 3]), np.array(["common"] * 3)
    lengths[long], labels[rare] = 50, "rare"
    problem = in_one_part(labels, lengths)
    size = SampleSize(n_series=20, n_bytes=200, per_class=1)
    reservoir = Reservoir(size)
    problem.show(reservoir, 0)
    sample = reservoir.sample()
    if apart:
        whole = Reservoir(size)
        whole.merge(reservoir)
        reservoir = whole
    for found in (sample, reservoir.sample()):
        check(problem, size, found)
        assert found.positions.tolist() == [first, rare]
        assert found.n_uniform == 1


def test_what_did_not_fit_does_not_make_room():
    """A short series behind a long one that was let go: whoever lets it go, it stays out."""
    labels, lengths = ["a"] * 4, [2, 2, 100, 2]
    problem = in_one_part(labels, lengths)
    order = np.argsort(problem.keys)
    sized = np.empty(4, dtype=int)
    sized[order] = lengths
    problem = Problem(problem.keys, problem.labels, sized, problem.parts)
    size = SampleSize(1, 3200.0, per_class=4)
    for turn in (1, -1):
        pair = []
        for index in (order[:3], order[3:]):
            reservoir = Reservoir(size)
            reservoir.add(problem.keys[index], problem.labels[index], 0, 0, problem.series(index))
            reservoir.sample()
            pair.append(reservoir)
        one, other = pair[::turn]
        one.merge(other)
        found = one.sample().series
        assert found.values[found.offsets[:-1], 0].tolist() == order[:2].tolist()


def test_many_classes_share_the_bytes():
    names = [f"class {k}" for k in range(300)] * 10
    problem = in_one_part(names, [50] * 3000)
    size = SampleSize(10, 400_000.0, per_class=10)
    reservoir = Reservoir(size)
    problem.show(reservoir, 0)
    sample = reservoir.sample()
    check(problem, size, sample)
    assert sample.series.values.nbytes <= 1.5 * size.n_bytes
    assert len(sample) >= 600


def test_labels_of_any_width_are_merged():
    """Arrays of text have the width of their longest; none is cut."""
    problem = in_one_part(["abc", "abcdefg", "abcdefg", "abcd"], [1, 1, 1, 1])
    size = SampleSize(10, float("inf"), per_class=1)
    for order in ([0, 1, 2, 3], [1, 0, 3, 2]):
        whole = Reservoir(size)
        for i in order:
            index = np.array([i])
            part = Reservoir(size, whole.ceilings)
            labels = np.array([str(problem.labels[i])])
            assert labels.dtype == f"<U{len(problem.labels[i])}"
            part.add(problem.keys[index], labels, 0, i, problem.series(index))
            whole.merge(part)
        check(problem, size, whole.sample())
        assert set(whole.ceilings.by_class) == {"abc", "abcd", "abcdefg"}


# -- keys


def test_another_seed_is_another_order():
    digests = digests_of(np.arange(1000))
    orders = [np.argsort(sampling_keys(digests, seed)) for seed in range(20)]
    assert len({order.tobytes() for order in orders}) == 20
    # Of the first 100 of two orders, 10 are the same by chance; more than 25 are not chance.
    for k, one in enumerate(orders):
        for other in orders[:k]:
            assert len(set(one[:100]) & set(other[:100])) <= 25


def test_the_same_seed_is_the_same_order():
    digests = digests_of(["x", "y", "z"])
    np.testing.assert_array_equal(sampling_keys(digests, 4), sampling_keys(digests, 4))
    assert len(np.unique(sampling_keys(digests, 4))) == 3


@pytest.mark.parametrize("names", ["numbers", "text", "steps"])
def test_every_series_is_drawn_as_often_as_any_other(names):
    """Chi-square over fixed seeds: too large is a bias, too small no chance."""
    n, count, n_seeds = 50, 10, 2000
    ids = {
        "numbers": np.arange(n),
        "text": np.array([f"series {k}" for k in range(n)]),
        "steps": np.arange(n) << 40,
    }[names]
    digests = digests_of(ids)
    included = np.zeros(n)
    for seed in range(n_seeds):
        included[np.argsort(sampling_keys(digests, seed))[:count]] += 1
    share = count / n
    variance = n_seeds * share * (1 - share) * n / (n - 1)
    statistic = float(((included - n_seeds * share) ** 2).sum() / variance)
    low, high = chi2.ppf([0.001, 0.999], n - 1)
    assert low < statistic < high


# -- digests of identifiers


@given(st.lists(st.integers(-(2**63), 2**63 - 1), min_size=1, unique=True))
def test_digests_of_whole_numbers_differ(ids):
    found = digests_of(ids)
    assert found.dtype == np.uint64
    assert len(set(found.tolist())) == len(ids)
    np.testing.assert_array_equal(found, digests_of(np.array(ids)))


def test_digests_of_equal_numbers_are_equal_whatever_their_type():
    known = digests_of(np.array([-4, 0, 19, 2**53 + 2]))
    others = [[-4.0, 0.0, 19.0, float(2**53 + 2)], [-4, 0, 19.0, 2**53 + 2]]
    for ids in others:
        np.testing.assert_array_equal(digests_of(ids), known)
        np.testing.assert_array_equal(digests_of(np.array(ids, dtype=object)), known)
    np.testing.assert_array_equal(digests_of(np.array([19.5, 0.0]))[1], known[1])
    assert len(set(digests_of([19, 19.5, "19", True, None, np.nan]).tolist())) == 6


@given(st.lists(st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0")),
                min_size=1, unique=True))  # fmt: skip
def test_digests_of_text_do_not_depend_on_the_container(ids):
    found = digests_of(ids)
    assert len(set(found.tolist())) == len(ids)
    np.testing.assert_array_equal(found, digests_of(np.array(ids)))
    np.testing.assert_array_equal(found, digests_of(np.array(ids, dtype=object)))
    np.testing.assert_array_equal(found, digests_of(list(np.array(ids))))
    np.testing.assert_array_equal(found, [digests_of([id])[0] for id in ids])


def test_digests_of_numbers_do_not_depend_on_their_size():
    ids = np.array([0, 1, 2, 100])
    for kind in (np.int8, np.uint8, np.int16, np.int32, np.uint32, np.uint64):
        np.testing.assert_array_equal(digests_of(ids.astype(kind)), digests_of(ids))
    np.testing.assert_array_equal(
        digests_of(np.array([-1, -2], np.int8)), digests_of(np.array([-1, -2]))
    )
    # Python's hash is the same for the two.
    assert len(np.unique(digests_of([-1, -2]))) == 2


def test_digests_of_other_identifiers():
    found = [
        digests_of([b"left", b"right"]),
        digests_of(["left", "right"]),
        digests_of([1.5, 2.5]),
        digests_of(["1", 1]),
        digests_of(["left ", "Left"]),
    ]
    assert len(np.unique(np.concatenate(found))) == 10
    np.testing.assert_array_equal(found[0], digests_of(np.array([b"left", b"right"])))
    assert digests_of([]).shape == digests_of(np.array([], "U3")).shape == (0,)


def test_digests_are_those_of_every_run():
    """They decide what is drawn: a change would change models."""
    assert digests_of([0, -1]).tolist() == [16294208416658607535, 16490336266968443936]
    assert digests_of(["a"]).tolist() == [16860193610431497119]
    assert sampling_keys(digests_of([0, 1]), 7).tolist() == [
        5802186646602307193,
        3804069750978119562,
    ]
