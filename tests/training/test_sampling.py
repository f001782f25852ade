"""The sample of a scan: that of one look at all series, however they are cut and ordered."""

from decimal import Decimal

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import slts
from slts import DataError
from slts.execution import ThreadRunner
from slts.series.dataset import Dataset
from slts.series.keys import series_digests, series_keys
from slts.training.scans import sample_scan
from slts.training.training_set import PER_CLASS
from tests.data import NAMES, ScanOfRows, scan_of, shuffled, waves, with_copies
from tests.training.options import training_set


def sampled(scan, *, n_bytes=np.inf, n_jobs=1, seed=0, **how):
    return sample_scan(scan, ThreadRunner(n_jobs), n_bytes=n_bytes, seed=seed, **how)


def one_part(values, labels=None, *, channels=1, channel_names=None, **columns):
    """A part whose series have one step each."""
    values = np.repeat(np.asarray(values, dtype=float)[:, np.newaxis], channels, axis=1)
    series = slts.SeriesBatch(values, np.arange(len(values) + 1), channel_names)
    columns = {name: np.asarray(column) for name, column in columns.items()}
    return Dataset(series, None if labels is None else np.asarray(labels), **columns)


def numbered(*labels):
    """A scan with one part for every list of labels; series are numbered through."""
    ends = np.cumsum([0, *map(len, labels)])
    return scan_of(
        *(one_part(np.arange(ends[k], ends[k + 1]), own) for k, own in enumerate(labels))
    )


def oracle(series, labels, n_bytes):
    """Sort all keys, take the longest prefix that fits, and add the first series of every class.

    Returns the weight of each by key and label, whether nothing was dropped, and the bytes.
    """
    batch, sums = slts.as_series(series), {}
    keys = series_keys(series_digests(batch), 0).tolist()
    sizes = dict(zip(keys, (8 * x.size for x in series), strict=True))
    for name in zip(keys, labels.tolist(), strict=True):
        sums[name] = sums.get(name, 0) + 1
    ordered = sorted(sums)
    total = np.cumsum([sizes[key] for key, _ in ordered])
    # Series with equal keys are kept or dropped together.
    limit = min((key for (key, _), size in zip(ordered, total, strict=True) if size > n_bytes),
                default=2**64)  # fmt: skip
    kept = {name for name in ordered if name[0] < limit}
    for label in set(labels.tolist()):
        kept |= set([name for name in ordered if name[1] == label][:PER_CLASS])
    size = sum(sizes[key] for key, _ in kept)
    return {name: sums[name] for name in sorted(kept)}, limit == 2**64, size


@given(
    n=st.integers(4, 200),
    n_parts=st.integers(1, 5),
    share=st.floats(0.0, 1.2),
    n_jobs=st.sampled_from([1, 3]),
    seed=st.integers(0, 2**31),
)
def test_order_and_parts_do_not_matter(n, n_parts, share, n_jobs, seed):
    rng = np.random.default_rng(seed)
    # Some series are equal, with labels that may differ; a few are so long that shorter ones with
    # larger keys would still fit; one class is common.
    lengths = rng.choice([1, 2, 3, 20], size=n)
    series = [np.full((2, lengths[k]), float(k)) for k in rng.integers(0, n, size=n)]
    labels = NAMES[rng.choice(3, size=n, p=[0.8, 0.1, 0.1])]
    series[:3], labels[:3] = [np.full((2, 1), -1.0 - k) for k in range(3)], NAMES
    order, cuts = rng.permutation(n), np.sort(rng.integers(0, n + 1, size=n_parts - 1))
    parts = [
        Dataset(slts.as_series([series[i] for i in part]), labels[part])
        for part in np.split(order, cuts)
        if len(part)
    ]
    n_bytes = share * sum(8 * x.size for x in series)
    expected, complete, size = oracle(series, labels, n_bytes)
    if size > 2 * n_bytes:
        with pytest.raises(DataError, match="memory_limit"):
            sampled(scan_of(*parts), n_bytes=n_bytes, n_jobs=n_jobs)
        return
    data = sampled(scan_of(*parts), n_bytes=n_bytes, n_jobs=n_jobs)
    drawn = list(zip(data.keys.tolist(), data.classes[data.codes].tolist(), strict=True))
    assert drawn == list(expected)
    assert (data.scan is None) == complete
    assert data.series == slts.as_series([series[order[i]] for i in data.indices])
    # Weights are those of all equal series, scaled so that classes keep their totals.
    totals = [(labels == name).sum() for name in data.classes]
    np.testing.assert_allclose(data.totals, totals)
    np.testing.assert_allclose(np.bincount(data.codes, data.weights), totals)
    held = np.array(list(expected.values()))
    for c in range(3):
        ratio = data.weights[data.codes == c] / held[data.codes == c]
        np.testing.assert_allclose(ratio, ratio[0])
    assert (data.n_series, data.n_steps) == (n, sum(x.shape[1] for x in series))


def test_a_sample_of_everything_is_the_training_set_of_arrays():
    series, codes = with_copies(*waves(60, n_classes=3, gaps=0.1))
    turned, labels = shuffled(series, NAMES[codes])
    scan = scan_of((turned[:13], labels[:13]), (turned[13:], labels[13:]))
    whole = training_set(series, np.unique(NAMES[codes], return_inverse=True)[1])
    data = sampled(scan)
    assert data.scan is None
    assert data.classes.tolist() == sorted(NAMES)
    assert data.series == slts.as_series([turned[i] for i in data.indices])
    for name in ("keys", "codes", "weights", "totals", "digests"):
        np.testing.assert_array_equal(getattr(data, name), getattr(whole, name))
    seen = []
    sampled(scan, n_jobs=2, progress=lambda *done: seen.append(done))
    assert seen == [(1, 2), (2, 2)]


def test_a_rare_class_is_topped_up_and_weighted_down():
    scan = numbered(["a"] * 200 + ["b"] * 100, ["rare"] * 10 + ["b"] * 200)
    data = sampled(scan, n_bytes=60 * 8)
    assert data.scan is scan
    assert (data.classes[data.codes] == "rare").sum() == 10
    np.testing.assert_allclose(np.bincount(data.codes, data.weights), [200, 300, 10])


def test_parts_may_lack_classes_and_labels_may_be_of_any_kind():
    for kind in (bool, np.int8, float, str, "U9"):
        labels = np.array([0, 1, 1, 0]).astype(kind)
        classes = sampled(numbered(labels[:2], labels[2:])).classes
        assert classes.tolist() == np.unique(labels).tolist()
    data = sampled(numbered(["b"] * 9, [], ["long", "b", "a"], ["a"] * 4), n_jobs=3)
    assert data.classes.tolist() == ["a", "b", "long"]
    assert data.totals.tolist() == [5.0, 10.0, 1.0]
    assert sorted(data.indices) == list(range(16))
    np.testing.assert_array_equal(data.indices, data.series.values[:, 0])


def test_equal_series_of_several_groups_are_several_series():
    """One recording of zeros for each person must not make one draw of all people."""
    part = one_part([3.0, 3.0, 3.0, 5.0], ["a", "a", "a", "b"], groups=["p", "q", "p", "r"])
    data = sampled(scan_of(part))
    assert sorted(zip(data.codes, data.groups, data.weights, strict=True)) == [
        (0, "p", 2.0), (0, "q", 1.0), (1, "r", 1.0),
    ]  # fmt: skip
    assert sampled(numbered(["a", "b"])).groups is None


def test_a_series_that_lies_in_two_parts_is_an_error():
    parts = [
        one_part([0.0, 1.0], ["a", "b"], ids=["x", "y"]),
        one_part([2.0, 3.0, 4.0], ["a", "b", "b"], ids=["z", "y", "w"]),
    ]
    with pytest.raises(DataError, match=r"Series 'y' appears in both part 0 and part 1"):
        sampled(scan_of(*parts, kind=ScanOfRows))
    twice = one_part([0.0, 1.0, 2.0], ["a", "b", "a"], ids=["x", "y", "x"])
    with pytest.raises(DataError, match=r"Series 'x' occurs twice in part 0"):
        sampled(scan_of(twice, kind=ScanOfRows))
    # Rows that are series may have identifiers that are not unique, such as names of persons.
    assert sampled(scan_of(*parts)).n_series == 5


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        ([["a"], [1.0]], "text labels, such as 'a', and numbers"),
        ([[1.0, np.nan], [2.0]], "part 0 has a missing label"),
        ([[1.0, 2.0], [1.5]], r"part 1 has the label 1\.5"),
        ([[Decimal(1), Decimal(2)]], "part 0 has labels of type Decimal"),
        ([["a", "a"], ["a"]], "scan holds one class only, 'a'"),
        ([[], []], "scan has no series"),
        ([], "scan has no series"),
    ],
)
def test_wrong_labels_are_errors(labels, message):
    with pytest.raises(DataError, match=message):
        sampled(numbered(*labels))
    with pytest.raises(DataError, match="part 1 has no labels"):
        sampled(scan_of(one_part([1.0], ["a"]), one_part([2.0])))


@pytest.mark.parametrize(("channels", "names"), [(3, None), (2, ("v", "u"))])
def test_other_channels_are_an_error(channels, names):
    first = one_part([1.0], ["a"], channels=2, channel_names=("u", "v"))
    other = one_part([1.0], ["b"], channels=channels, channel_names=names)
    with pytest.raises(DataError, match=rf"part 1 has {channels} channels.* part 0 has 2.*u, v"):
        sampled(scan_of(first, other))


def test_series_that_are_too_long_for_the_memory_are_an_error():
    series = [np.full((1, 1000), float(k)) for k in range(30)]
    scan = scan_of((series, ["a", "b"] * 15))
    assert len(sampled(scan, n_bytes=30 * 4000)) == 30
    with pytest.raises(DataError, match=r"memory_limit.*240 kB.*at most 238 kB"):
        sampled(scan, n_bytes=119_000)
