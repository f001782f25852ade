"""The first pass: counts, classes, the sample, and errors of the data."""

from dataclasses import dataclass
from decimal import Decimal

import numpy as np
import pytest
from slts.training.first_pass import class_weights, count_and_sample, fetch

import slts
from slts import DataError
from slts.execution import ThreadRunner
from slts.training import first_pass
from slts.training.sampling import SampleSize
from slts.training.scans import ArraySource


@dataclass(frozen=True)
class MemoryPart:
    """Some series in memory, as a part of a source."""

    series: slts.SeriesBatch
    labels: np.ndarray | None
    ids: np.ndarray | None = None
    name: str = "part"
    weights = None
    groups = None

    def batches(self, *, labels, batch_size):
        for begin in range(0, len(self.series), 7):
            some = slice(begin, begin + 7)
            yield MemoryPart(
                self.series[some],
                None if self.labels is None else self.labels[some],
                None if self.ids is None else self.ids[some],
            )


@dataclass(frozen=True)
class Source:
    """Parts in memory."""

    pieces: list[MemoryPart]
    requires_unique_ids: bool = False
    name: str = "source"
    columns = None
    n_bytes = None

    def parts(self, *, labels=True):
        return self.pieces


def series_of(values, channels=1, names=None):
    """Series of one step each."""
    values = np.repeat(np.asarray(values, dtype=float)[:, np.newaxis], channels, axis=1)
    return slts.SeriesBatch(values, np.arange(len(values) + 1), names)


def source_of(*labels, **options):
    """One part for every list of labels; series are numbered through."""
    pieces, first = [], 0
    for number, own in enumerate(labels):
        n = len(own)
        pieces.append(
            MemoryPart(
                series_of(np.arange(first, first + n)), np.asarray(own), name=f"part {number}"
            )
        )
        first += n
    return Source(pieces, **options)


def everything(source, n_jobs=1):
    return count_and_sample(source, ThreadRunner(n_jobs), SampleSize(), seed=0)


@pytest.mark.parametrize("n_jobs", [1, 3])
def test_series_and_classes_are_counted(n_jobs):
    # Some parts lack a class, one is empty, and labels have different widths.
    source = source_of(["b"] * 9, [], ["long", "b", "a"], ["a"] * 4)
    found = everything(source, n_jobs)
    assert found.classes.tolist() == ["a", "b", "long"]
    assert found.totals.tolist() == [5.0, 10.0, 1.0]
    assert found.offsets.tolist() == [0, 9, 9, 12, 16]
    assert (found.n_series, found.n_steps, found.complete) == (16, 16, True)
    assert sorted(found.indices) == list(range(16))
    values = found.sample.series.values[:, 0]
    np.testing.assert_array_equal(found.indices, values)
    assert found.classes[found.codes].tolist() == found.sample.labels.tolist()


def test_weights_are_counted_too():
    weights = np.array([0.0, 2.0, 0.5, 1.0])
    source = ArraySource(series_of(range(4)), np.array([0, 0, 1, 1]), weights)
    found = everything(source)
    assert found.totals.tolist() == [2.0, 1.5]
    assert found.n_series == 4
    assert sorted(found.indices) == [1, 2, 3]
    np.testing.assert_allclose(found.multiplicities(np.arange(3)).mean(), 1.0)
    np.testing.assert_allclose(
        found.multiplicities(np.arange(3)), found.sample.weights / found.sample.weights.mean()
    )


def test_classes_that_were_topped_up_are_weighted_down():
    labels = ["a"] * 200 + ["b"] * 300 + ["rare"] * 10
    found = count_and_sample(
        source_of(labels[::2], labels[1::2]), ThreadRunner(1), SampleSize(60, np.inf, per_class=10),
        seed=0,
    )  # fmt: skip
    assert (found.sample.labels == "rare").sum() == 10
    assert not found.complete
    share = found.multiplicities(np.arange(len(found.sample)))
    assert share.mean() == pytest.approx(1.0)
    by_class = np.bincount(found.codes, weights=share) / len(share)
    np.testing.assert_allclose(by_class, np.array([200, 300, 10]) / 510)


def test_a_channel_without_values_in_a_sample_may_have_some_elsewhere():
    values = [np.column_stack([np.arange(3.0), np.full(3, np.nan)]) + k for k in range(80)]
    X = slts.as_series([own.T for own in values])
    source = ArraySource(X, np.array(["a", "b"] * 40))
    for size, where in (
        (SampleSize(20, np.inf), "a sample of 20 training series"),
        (SampleSize(), "any training series"),
    ):
        with pytest.warns(UserWarning, match=f"channel 1 has no value in {where}"):
            count_and_sample(source, ThreadRunner(1), size, seed=0)


def test_labels_that_differ_only_in_case_or_spaces_give_a_warning():
    labels = ["walk", "run", "walk ", "Walk", "sit"]
    for given in (np.array(labels * 4), np.array(labels * 4, dtype=object)):
        with pytest.warns(UserWarning, match="spaces are different classes: 'Walk' and 'walk' and"):
            slts.OneNNClassifier().fit(np.arange(200.0).reshape(20, 10), given)
    # Letters of both cases may be the classes.
    everything(source_of(["a"] * 9, ["A"] * 9))
    many = [f"{name}{k}" for k in range(8) for name in ("walk", "Walk")]
    with pytest.warns(UserWarning, match="'Walk4' and 'walk4' and 3 more. If they"):
        everything(source_of(many))


def test_series_are_fetched_by_number_in_the_given_order():
    source = source_of(["a"] * 9, ["b"] * 3, [], ["a"] * 20)
    found = everything(source)
    wanted = np.array([30, 2, 9, 11, 10])
    series, labels = fetch(source, ThreadRunner(1), found.offsets, wanted)
    assert series.values[:, 0].tolist() == wanted.tolist()
    assert labels.tolist() == ["a", "a", "b", "b", "b"]


def test_a_series_that_lies_in_two_parts_is_an_error():
    ids = [np.array(["x", "y"]), np.array(["z", "y", "w"])]
    pieces = [
        MemoryPart(
            series_of(range(len(own))), np.array(["a", "b", "b"])[: len(own)], own, f"part {k}"
        )
        for k, own in enumerate(ids)
    ]
    with pytest.raises(DataError, match=r"Series 'y' appears in both part 0 and part 1\. All"):
        everything(Source(pieces, requires_unique_ids=True))
    # Rows that are series may have identifiers that are not unique, such as names of persons.
    assert everything(Source(pieces)).n_series == 5


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        ([["a"], [1.0]], r"part 0 has text labels, such as 'a', but part 1 has numbers, such as 1"),
        ([[1.0, np.nan], [2.0]], "part 0 has a missing label"),
        ([[1.0, 2.0], [1.5]], r"part 1 has the label 1\.5: labels must not have fractions"),
        ([[Decimal(1), Decimal(2)]], "part 0 has labels of type Decimal: store them as text"),
        ([["a", "a"], ["a"]], "source holds one class only, 'a'"),
        ([[], []], "source has no series"),
        ([], "source has no series"),
    ],
)
def test_wrong_labels_are_errors(labels, message):
    with pytest.raises(DataError, match=message):
        everything(source_of(*labels))


def test_labels_that_are_missing_are_an_error():
    pieces = [
        MemoryPart(series_of([1.0]), np.array(["a"])),
        MemoryPart(series_of([2.0]), None, name="p"),
    ]
    with pytest.raises(DataError, match=r"p has no labels. A table has them in a column"):
        everything(Source(pieces))


@pytest.mark.parametrize("kind", [bool, np.int8, float, str, "U9"])
def test_labels_of_other_types_are_classes(kind):
    given = np.array([0, 1, 1, 0]).astype(kind)
    found = everything(source_of(given[:2], given[2:]))
    assert found.classes.tolist() == np.unique(given).tolist()


@pytest.mark.parametrize(
    ("channels", "names", "message"),
    [
        (3, None, r"part 1 has 3 channels, but part 0 has 2 channels \(u, v\)"),
        (2, ("v", "u"), r"part 1 has 2 channels \(v, u\), but part 0 has 2 channels \(u, v\)"),
    ],
)
def test_other_channels_are_an_error(channels, names, message):
    pieces = [
        MemoryPart(series_of([1.0], 2, ("u", "v")), np.array(["a"]), name="part 0"),
        MemoryPart(series_of([1.0], channels, names), np.array(["b"]), name="part 1"),
    ]
    with pytest.raises(DataError, match=message):
        everything(Source(pieces))


def test_weights_of_classes():
    classes, totals = np.array(["a", "b"]), np.array([6.0, 2.0])
    assert class_weights(None, classes, totals).tolist() == [1.0, 1.0]
    assert class_weights({"b": 3.0}, classes, totals).tolist() == [1.0, 3.0]
    np.testing.assert_allclose(class_weights("balanced", classes, totals), [8 / 12, 2.0])


@pytest.mark.parametrize(
    "given", ["foo", {"a": float("nan")}, {"nobody": 2.0, "a": 1.0}, {"a": 0.0}, {"a": -1.0}]
)
def test_wrong_weights_of_classes_are_errors(given):
    with pytest.raises(ValueError, match="class"):
        class_weights(given, np.array(["a", "b"]), np.ones(2))


def test_progress_counts_the_parts():
    seen = []
    count_and_sample(
        source_of(["a"], ["b"], ["a"]), ThreadRunner(2), SampleSize(), seed=0,
        progress=lambda done, total: seen.append((done, total)),
    )  # fmt: skip
    assert seen == [(1, 3), (2, 3), (3, 3)]


@pytest.mark.parametrize(
    ("n", "n_steps", "sizes"),
    [
        # 64 kB are one part, 1 MiB three parts, and 16 MiB the most, sixteen.
        (10, 800, [10]),
        (32, 4096, [11, 11, 10]),
        (32, 65536, [2] * 16),
        # A part has at most 32,768 series.
        (40_000, 1, [32768, 7232]),
    ],
)
def test_arrays_are_cut_into_parts_by_their_size(n, n_steps, sizes):
    parts = ArraySource(slts.as_series(np.zeros((n, n_steps))), np.arange(n)).parts()
    assert [len(part) for part in parts] == sizes
    assert np.concatenate([part.labels for part in parts]).tolist() == list(range(n))
    assert np.concatenate([part.ids for part in parts]).tolist() == list(range(n))


def test_digests_of_the_series_with_the_smallest_keys_are_kept(monkeypatch):
    monkeypatch.setattr(first_pass, "MOST_DIGESTS", 3)
    digests_of_shapes = first_pass._DigestSample()
    for keys in ([9, 4, 7], [4, 8], [1, 9, 2]):
        digests_of_shapes.add(np.array([keys, np.multiply(keys, 10)], dtype=np.uint64))
    # Eight are more than twice as many as are kept: the largest were given up.
    assert sum(part.shape[1] for part in digests_of_shapes._held) == 3
    digests_of_shapes.add(np.array([[3], [30]], dtype=np.uint64))
    assert digests_of_shapes.take().tolist() == [[1, 2, 3], [10, 20, 30]]
    assert digests_of_shapes.take().shape == (2, 0)


def test_a_class_without_weight_is_an_error():
    with pytest.raises(DataError, match="class b has no weight"):
        first_pass._sorted_totals({"c": 2.0, "b": 0.0, "a": 1.0})
    labels, weights = first_pass._sorted_totals({"c": 2.0, "a": 1.0})
    assert (labels.tolist(), weights.tolist()) == (["a", "c"], [1.0, 2.0])
