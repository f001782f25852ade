"""Reservoir: the sample is that of one look at all series, however they are cut and ordered."""

import tracemalloc
from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from slts import SeriesBatch
from slts.series.source import series_keys
from slts.training.sampling import Ceilings, Reservoir, Sample, SampleSize, shuffled

LAST = 2**64 - 1
CLASSES = ("a", "long name", "mid")


@dataclass(frozen=True)
class Problem:
    """Series whose values are a number, in parts that are cut into batches.

    Series of the same number are equal; their labels may differ.
    """

    numbers: np.ndarray
    labels: np.ndarray
    weights: np.ndarray
    lengths: np.ndarray
    parts: tuple[tuple[np.ndarray, ...], ...]
    seed: int = 0

    def series(self, index):
        numbers = self.numbers[index]
        values = np.repeat(numbers.astype(np.float64), self.lengths[numbers])[:, np.newaxis]
        offsets = np.concatenate([[0], np.cumsum(self.lengths[numbers])])
        return SeriesBatch(np.hstack([values, -values]), offsets)

    def keys(self, index):
        return series_keys(self.series(index), self.seed)

    def add(self, reservoir, index, part=0, first=0):
        # Arrays of text are as wide as their longest label.
        labels = np.array(self.labels[index].tolist())
        weights = self.weights[index]
        where = np.full(len(index), part), first + np.arange(len(index))
        reservoir.add(Sample(self.keys(index), labels, weights, *where, self.series(index)))

    def add_part(self, reservoir, number):
        first = 0
        for index in self.parts[number]:
            self.add(reservoir, index, number, first)
            first += len(index)

    def distinct(self):
        """(key, label) -> (number, weight, first place) of every series with weight, sorted."""
        found = {}
        for number, batches in enumerate(self.parts):
            everything = np.concatenate(batches)
            keys = self.keys(everything).tolist() if len(everything) else []
            for position, i in enumerate(everything):
                if self.weights[i] > 0.0:
                    name = (keys[position], str(self.labels[i]))
                    _, weight, place = found.get(name, (0, 0.0, (number, position)))
                    found[name] = (int(self.numbers[i]), weight + self.weights[i], place)
        return dict(sorted(found.items()))


def plain(labels, lengths, *, numbers=None, weights=None, seed=0):
    """Series in one part, all different unless `numbers` are given."""
    n = len(labels)
    numbers = np.arange(n) if numbers is None else np.asarray(numbers)
    weights = np.ones(n) if weights is None else np.asarray(weights)
    return Problem(numbers, np.array(labels), weights, np.array(lengths), ((np.arange(n),),), seed)


def oracle(problem, size):
    """Sort all keys and take the longest prefix that fits, and the first of every class."""
    found = problem.distinct()
    keys = [key for key, _ in found]

    def n_bytes(name):
        return 8 * 2 * int(problem.lengths[found[name][0]])

    uniform, total = len(keys), 0
    for rank, name in enumerate(found):
        total += n_bytes(name)
        needed = name[0] <= keys[min(size.at_least, len(keys)) - 1]
        if not needed and (total > size.n_bytes or rank >= size.n_series):
            # Series of equal keys are taken or left together.
            uniform = keys.index(name[0])
            break
    wanted = set(list(found)[:uniform])
    labels = {label for _, label in found}
    for label in labels:
        total = 0
        members = [name for name in found if name[1] == label]
        for rank, name in enumerate(members[: size.per_class]):
            total += n_bytes(name)
            if rank >= 2 and total > size.n_bytes / max(20, len(labels)):
                break
            wanted.add(name)
    return [name for name in found if name in wanted], uniform


def check(problem, size, sample):
    expected, n_uniform = oracle(problem, size)
    found = problem.distinct()
    numbers = [found[name][0] for name in expected]
    assert sample.series.values[sample.series.offsets[:-1], 0].tolist() == numbers
    assert sample.series.lengths.tolist() == problem.lengths[numbers].tolist()
    assert list(zip(sample.keys.tolist(), sample.labels.tolist(), strict=True)) == expected
    assert sample.weights.tolist() == [found[name][1] for name in expected]
    places = list(zip(sample.parts, sample.positions, strict=True))
    assert places == [found[name][2] for name in expected]
    assert sample.n_uniform == n_uniform
    assert len(sample) == len(expected)


def assert_not_risen(before, after):
    assert after.uniform <= before.uniform
    for label, key in before.by_class.items():
        assert after.by_class[label] <= key


@st.composite
def problems(draw):
    n = draw(st.integers(1, 50))
    # One class is common, so that the others are rare.
    labels = draw(st.lists(st.sampled_from(CLASSES[:1] * 5 + CLASSES), min_size=n, max_size=n))
    # Some series occur several times, some have no weight; one has.
    numbers = draw(st.lists(st.integers(0, 60), min_size=n, max_size=n))
    weights = draw(st.lists(st.sampled_from([0.0, 0.5, 1.0, 2.0]), min_size=n, max_size=n))
    weights[0] = 1.0
    # A few are so long that shorter ones with larger keys would still fit.
    lengths = np.random.default_rng(n).choice([1, 2, 3, 20], size=61)
    order = np.array(draw(st.permutations(range(n))))
    cuts = sorted(draw(st.lists(st.integers(0, n), max_size=5)))
    parts = []
    for share in np.split(order, cuts):
        inner = sorted(draw(st.lists(st.integers(0, len(share)), max_size=3)))
        parts.append(tuple(np.split(share, inner)))
    seed = draw(st.integers(0, 2**31))
    columns = map(np.array, (numbers, labels, weights, lengths))
    return Problem(*columns, tuple(parts), seed)


sizes = st.builds(
    SampleSize,
    n_series=st.integers(1, 30),
    n_bytes=st.integers(1, 60_000),
    at_least=st.integers(1, 4),
    per_class=st.integers(0, 6),
)


@settings(max_examples=60)
@given(problem=problems(), size=sizes)
def test_order_and_batches_do_not_matter(problem, size):
    reservoir = Reservoir(size)
    for number in range(len(problem.parts)):
        before = reservoir.ceilings
        problem.add_part(reservoir, number)
        assert_not_risen(before, reservoir.ceilings)
    check(problem, size, reservoir.sample())
    sample, ceilings = reservoir.sample(), reservoir.ceilings
    check(problem, size, sample)
    assert ceilings.admit(sample.keys, sample.labels).tolist() == list(range(len(sample)))
    assert (sample.keys[: sample.n_uniform] <= ceilings.uniform).all()
    assert reservoir.complete == (sample.n_uniform == len(problem.distinct()))


@given(problem=problems(), size=sizes, data=st.data())
def test_parts_may_be_read_apart_with_ceilings_of_any_time(problem, size, data):
    whole = Reservoir(size)
    known = [whole.ceilings]
    for number in data.draw(st.permutations(range(len(problem.parts)))):
        # A worker may have started before the last results were known.
        part = Reservoir(size, data.draw(st.sampled_from(known)))
        before = part.ceilings
        problem.add_part(part, number)
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


def test_series_above_the_ceilings_are_not_admitted():
    keys = np.array([5, 10, 11, 20, 21, LAST], dtype=np.uint64)
    labels = np.array(["a", "a", "a", "b", "b", "c"])
    ceilings = Ceilings(np.uint64(10), {"a": np.uint64(3), "b": np.uint64(20)})
    # A class with too few known series has no ceiling.
    assert ceilings.admit(keys, labels).tolist() == [0, 1, 3, 5]


def test_a_full_reservoir_drops_series():
    """What is held stays small, however many series are added."""
    size = SampleSize(n_series=5, n_bytes=float("inf"), per_class=1)
    n = 2000
    problem = plain(["a", "b"] * (n // 2), [1] * n)
    reservoir = Reservoir(size)
    most = 0
    for first in range(0, n, 10):
        problem.add(reservoir, np.arange(first, first + 10), 0, first)
        most = max(most, sum(map(len, reservoir._held)))
    assert most <= 2 * size.n_series
    assert reservoir.ceilings.uniform < LAST // 100
    assert not reservoir.complete
    check(problem, size, reservoir.sample())


def test_an_empty_reservoir_has_no_sample():
    size = SampleSize(3, 100)
    reservoir = Reservoir(size)
    assert reservoir.sample() is None
    reservoir.merge(Reservoir(size))
    plain(["a"], [1]).add(reservoir, np.arange(0))
    plain(["a"], [1], weights=[0.0]).add(reservoir, np.arange(1))
    assert reservoir.sample() is None


def test_equal_series_are_one_of_all_their_weight():
    problem = plain(
        ["a", "a", "b", "a"], [3, 3], numbers=[0, 0, 0, 1], weights=[1.0, 2.5, 1.0, 1.0]
    )
    reservoir = Reservoir(SampleSize(10, np.inf))
    problem.add_part(reservoir, 0)
    sample = reservoir.sample()
    check(problem, SampleSize(10, np.inf), sample)
    assert len(sample) == 3
    assert sorted(sample.weights) == [1.0, 1.0, 3.5]


def test_equal_series_with_different_labels_are_taken_together():
    problem = plain(["a", "b", "c"], [3], numbers=[0, 0, 0])
    for at_least in (1, 2):
        size = SampleSize(1, 1.0, at_least=at_least)
        reservoir = Reservoir(size)
        problem.add_part(reservoir, 0)
        assert (len(reservoir.sample()), reservoir.sample().n_uniform) == (3, 3)


def test_a_rare_class_is_topped_up():
    problem = plain(["common"] * 500 + ["rare"] * 4 + ["alone"], [2] * 505)
    size = SampleSize(n_series=10, n_bytes=float("inf"), per_class=3)
    reservoir = Reservoir(size)
    problem.add_part(reservoir, 0)
    sample = reservoir.sample()
    check(problem, size, sample)
    counts = dict(zip(*np.unique(sample.labels, return_counts=True), strict=True))
    assert counts["rare"] >= 3
    assert counts["alone"] == 1
    assert sample.n_uniform == 10


@pytest.mark.parametrize(("at_least", "expected"), [(1, 2), (2, 2), (7, 7), (100, 30)])
def test_the_fewest_series_are_kept_whatever_their_size(at_least, expected):
    """Two series of 160 bytes fit in 400."""
    problem = plain(["a"] * 30, [10] * 30)
    size = SampleSize(n_series=20, n_bytes=400, at_least=at_least)
    reservoir = Reservoir(size)
    problem.add_part(reservoir, 0)
    sample = reservoir.sample()
    check(problem, size, sample)
    assert (len(sample), sample.n_uniform) == (expected, expected)


def by_keys(lengths, seed=0):
    """Series of these lengths in the order of their keys, and that order."""
    # Keys depend on the values, so lengths are dealt out until the order is the wanted one.
    for shift in range(200):
        numbers = np.arange(len(lengths)) + len(lengths) * shift
        table = np.zeros(numbers[-1] + 1, dtype=np.int64)
        table[numbers] = lengths
        problem = plain(["a"] * len(lengths), table, numbers=numbers, seed=seed)
        if (np.diff(problem.keys(np.arange(len(lengths))).astype(object)) > 0).all():
            return problem
    raise AssertionError


@pytest.mark.parametrize("apart", [False, True])
def test_a_series_that_does_not_fit_ends_the_sample(apart):
    """Otherwise a series with a larger key would be drawn because it is short."""
    problem = by_keys([1, 100, 1])
    size = SampleSize(20, 1000.0)
    reservoir, other = Reservoir(size), Reservoir(size)
    problem.add(reservoir, np.array([0, 1]))
    if apart:
        reservoir.sample()
        problem.add(other, np.array([2]), 1)
        reservoir.merge(other)
    else:
        problem.add(reservoir, np.array([2]), 1)
    assert reservoir.sample().series.lengths.tolist() == [1]


def test_a_topped_up_class_ends_at_the_series_that_does_not_fit():
    """A short series after a long one that was dropped stays out, whoever dropped it."""
    problem = by_keys([2, 2, 100, 2])
    size = SampleSize(1, 3200.0, per_class=4)
    for turn in (1, -1):
        pair = []
        for index in (np.arange(3), np.array([3])):
            reservoir = Reservoir(size)
            problem.add(reservoir, index)
            reservoir.sample()
            pair.append(reservoir)
        one, other = pair[::turn]
        one.merge(other)
        assert one.sample().keys.tolist() == problem.keys(np.arange(2)).tolist()


def test_many_classes_share_the_bytes():
    problem = plain([f"class {k}" for k in range(300)] * 10, [50] * 3000)
    size = SampleSize(10, 400_000.0, per_class=10)
    reservoir = Reservoir(size)
    problem.add_part(reservoir, 0)
    sample = reservoir.sample()
    check(problem, size, sample)
    assert sample.series.values.nbytes <= 1.5 * size.n_bytes
    assert len(sample) >= 600


def test_labels_of_any_width_are_merged():
    problem = plain(["abc", "abcdefg", "abcdefg", "abcd"], [1, 1, 1, 1])
    size = SampleSize(10, float("inf"), per_class=1)
    for order in ([0, 1, 2, 3], [1, 0, 3, 2]):
        whole = Reservoir(size)
        for i in order:
            part = Reservoir(size, whole.ceilings)
            problem.add(part, np.array([i]), 0, i)
            whole.merge(part)
        check(problem, size, whole.sample())
        assert set(whole.ceilings.by_class) == {"abc", "abcd", "abcdefg"}


def test_the_first_of_a_sample_are_topped_up_too():
    problem = plain(["a"] * 40 + ["b"] * 3, [1] * 43)
    reservoir = Reservoir(SampleSize(100, np.inf))
    problem.add_part(reservoir, 0)
    sample = reservoir.sample()
    few = sample.first(10, per_class=2)
    assert few.n_uniform == 10
    assert few.keys[:10].tolist() == sample.keys[:10].tolist()
    assert (few.labels == "b").sum() >= 2
    assert sample.first(43, per_class=1) is sample


def test_only_series_that_are_kept_are_copied():
    limit = 4e6
    reservoir = Reservoir(SampleSize(np.inf, limit))
    tracemalloc.start()
    # Twice the limit is held before the sample is reduced to the limit.
    for part in range(8):
        values = np.random.default_rng(part).normal(size=(15_000, 8))
        batch = SeriesBatch(values, np.arange(0, 15_001, 100))
        keys = series_keys(batch, seed=0)
        where = np.full(150, part), np.arange(150)
        reservoir.add(Sample(keys, np.zeros(150, int), np.ones(150), *where, batch))
        del values, batch
    held, _ = tracemalloc.get_traced_memory()
    tracemalloc.reset_peak()
    sample = reservoir.sample()
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert held > 1.9 * limit
    assert 0.9 * limit < sample.series.values.nbytes <= limit
    assert peak - held < 1.5 * limit


def test_every_purpose_has_its_own_order():
    keys = series_keys(SeriesBatch(np.arange(500.0)[:, np.newaxis], np.arange(501)), seed=3)
    orders = [shuffled(keys, purpose) for purpose in range(4)]
    turned = shuffled(keys[::-1], 1)
    assert keys[::-1][turned].tolist() == keys[orders[1]].tolist()
    firsts = [set(np.argsort(keys)[:100].tolist()), *(set(o[:100].tolist()) for o in orders)]
    # 20 of 100 are the same by chance.
    for k, one in enumerate(firsts):
        assert all(len(one & other) < 40 for other in firsts[:k])
