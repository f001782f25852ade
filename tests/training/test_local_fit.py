"""Steps of the local classifier: which series are taken, and how much memory they need."""

from contextlib import nullcontext
from dataclasses import replace
from types import SimpleNamespace
from typing import ClassVar

import numpy as np
import pytest
from slts.models.snippets import MOST_KINDS, N_THRESHOLDS
from slts.solvers.anchor_span import AnchorSpan
from slts.solvers.loo_ridge import NormalEquations
from slts.training.first_pass import count_and_sample
from slts.training.partitioned_ridge import (
    Coordinates,
    PartitionedRidge,
    sum_equations,
    summing_bytes,
)
from slts.training.snippet_features import snippet_bytes

from slts import as_series
from slts.execution import ThreadRunner
from slts.series.dataset import Dataset
from slts.training import local_fit, local_metrics, partitioned_ridge, snippet_features
from slts.training.local_fit import _cap_sample_to_memory, _landmarks_per_class, stratified
from slts.training.sampling import SampleSize
from slts.training.scans import ArraySource


def test_positions_come_evenly_from_the_classes_in_the_given_order():
    codes = np.array([0, 0, 0, 0, 0, 1, 1, 2])
    order = np.array([4, 3, 7, 2, 6, 5, 1, 0])
    assert stratified(codes, 3, order).tolist() == [4, 6, 7]
    assert stratified(codes, 5, order).tolist() == [3, 4, 5, 6, 7]
    assert stratified(codes, 7, order).tolist() == [1, 2, 3, 4, 5, 6, 7]
    assert stratified(codes, 8, order).tolist() == stratified(codes, 9, order).tolist()
    assert stratified(codes, 8, order).tolist() == list(range(8))


# -- memory


def sampled(n_series, n_classes=4):
    """A first pass over random series of 20 steps and 2 channels."""
    series = as_series(np.random.default_rng(0).normal(size=(n_series, 2, 20)))
    source = ArraySource(series, np.arange(n_series) % n_classes)
    return count_and_sample(source, ThreadRunner(1), SampleSize(np.inf, np.inf), seed=0)


OPTIONS = SimpleNamespace(
    metrics="class", n_components=5, metric_rank=2, phases=(1, 3), n_comparisons=2, n_snippets=0,
    n_jobs=1, owner="it", penalties=np.ones(22),
)  # fmt: skip


@pytest.fixture
def simple_needs(monkeypatch):
    """Learning needs 10,000 bytes a series; the sample is at least 10 series."""
    asked = []

    def needs(*sizes, **given):
        asked.append((sizes, given))
        return 10_000.0 * sizes[0]

    monkeypatch.setattr(local_fit, "training_bytes", needs)
    monkeypatch.setattr(local_fit, "_FEWEST", 10)
    monkeypatch.setattr(local_fit, "_ANCHORS", 50)
    monkeypatch.setattr(local_fit, "_TUNING_SERIES", 20)
    return asked


def test_a_sample_is_cut_to_what_fits_in_memory(simple_needs, monkeypatch):
    first_pass = sampled(100)
    # A series has 320 bytes, and 480 with times; it exists twice.
    each = 2 * 480 + 10_000
    whole = _cap_sample_to_memory(first_pass, OPTIONS, 100.0 * each)
    assert whole is first_pass
    sizes, given = simple_needs[0]
    # Ten tuning series of each of four classes.
    assert (sizes, given["is_sample"]) == ((100, 50, 40), False)
    assert (given["n_groups"], given["n_phases"], given["rank"]) == (4, 3, 2)
    for limit, count in ((100 * each - 1, 98), (50 * each, 50), (20 * each, 20)):
        cut = _cap_sample_to_memory(first_pass, OPTIONS, float(limit))
        assert not cut.complete
        assert 0.9 * count <= len(cut.sample) <= count
        assert np.bincount(cut.codes).min() >= 2
    assert simple_needs[-1][1]["is_sample"]
    with pytest.raises(ValueError, match=r"too small: .*a sample of 12 series needs 139 kB"):
        _cap_sample_to_memory(first_pass, OPTIONS, 12.0 * each - 1)
    # Series that are large beside what is computed from them: a sixteenth of the memory is theirs.
    monkeypatch.setattr(local_fit, "training_bytes", lambda *_, **__: 0.0)
    assert len(_cap_sample_to_memory(first_pass, OPTIONS, 50 * 480 * 16.0).sample) in (49, 50)
    # A sample has a limit of its own.
    monkeypatch.setattr(local_fit, "_MOST_SAMPLED", 30)
    assert len(_cap_sample_to_memory(first_pass, OPTIONS, 90 * 480 * 16.0).sample) in (29, 30)
    assert _cap_sample_to_memory(first_pass, OPTIONS, 1e9) is first_pass


def test_groups_of_landmarks_are_counted_by_the_kind_of_metrics(simple_needs):
    for metrics, n_groups in (("shared", 1), ("class", 32), ("landmark", 40 * 5)):
        _cap_sample_to_memory(sampled(80, 40), replace_in(OPTIONS, metrics=metrics), 1e9)
        assert simple_needs[-1][1]["n_groups"] == n_groups


def replace_in(options, **changes):
    return SimpleNamespace(**vars(options) | changes)


def test_fewer_landmarks_of_a_class_with_more_classes():
    assert [_landmarks_per_class(n) for n in (2, 20, 25, 50, 60)] == [10, 10, 8, 4, 4]


def test_estimates_of_memory_add_up_what_exists_at_the_same_time(monkeypatch):
    monkeypatch.setattr(local_metrics, "CHUNK_BYTES", 1000)
    monkeypatch.setattr(local_metrics, "_KEPT_BYTES", 500)
    given = {
        "n_channels": 3, "rank": 2, "n_groups": 4, "n_phases": 2, "n_comparisons": 6,
        "n_snippets": 0, "bytes_of_fits": 0.0,
    }  # fmt: skip
    products, chunk, anchors = 6 * 8 * 100 * 20, 8 * 100 * 2 * 3 * 2, 8 * 20 * 4 * 2 * 3 * 2
    found = local_metrics.training_bytes(100, 20, 15, is_sample=False, **given)
    assert found == products + 2 * chunk + 500 + anchors
    # Features of all groups are one chunk if they are small; those of all comparisons are kept.
    monkeypatch.setattr(local_metrics, "CHUNK_BYTES", 1 << 20)
    monkeypatch.setattr(local_metrics, "_KEPT_BYTES", 1 << 20)
    found = local_metrics.training_bytes(100, 20, 15, is_sample=False, **given)
    assert found == products + 2 * 4 * chunk + 6 * anchors
    # Fits to the tuning series come before.
    more = local_metrics.training_bytes(
        100, 20, 15, is_sample=False, **given | {"bytes_of_fits": 1e6}
    )
    assert more - found == 1e6 - products
    # Sums over all series come afterwards: they need more if there are many features.
    more = local_metrics.training_bytes(100, 20, 15, is_sample=True, **given)
    assert more == found
    many = given | {"n_snippets": 10**4}
    n_features = 6 * 4 * 2 * 3 * 2 + 10**4 * N_THRESHOLDS * MOST_KINDS
    summing = 8 * 1000 * (4 * 2000 + 2 * n_features + 6 * 1000) / 0.9
    assert summing_bytes(2000, 1000, n_features) == pytest.approx(summing)
    sampled = local_metrics.training_bytes(2000, 1000, 1000, is_sample=True, **many)
    assert sampled == pytest.approx(summing)
    assert local_metrics.training_bytes(2000, 1000, 1000, is_sample=False, **many) < summing


def test_estimates_of_fits_count_inner_products_solutions_and_targets():
    assert local_metrics.fit_bytes(50, 3, 22) == 8 * 50 * (6 * 50 + 22 * (2 * 3 + 34) + 10 * 3)
    many = local_metrics.fit_bytes(50, 999, 22)
    assert many == 8 * 50 * (6 * 50 + 22 * (2 * 256 + 34) + 10 * 999)
    assert local_metrics.bytes_for_fits(8e6) == 1e6
    assert local_metrics.bytes_for_fits(1e12) == 512 * 2**20


def test_features_of_some_snippets_exist_twice_and_counts_are_kept(monkeypatch):
    monkeypatch.setattr(snippet_features, "CHUNK_BYTES", 10**6)
    one = 8 * 50 * N_THRESHOLDS * MOST_KINDS
    counts = 4 * 7 * N_THRESHOLDS
    assert snippet_bytes(50, 7, 3) == 2 * 3 * one + 3 * counts
    assert snippet_bytes(50, 7, 10**6) == 2 * 10**6 + 10**6 * counts
    monkeypatch.setattr(snippet_features, "CHUNK_BYTES", 1)
    assert snippet_bytes(50, 7, 3) == 2 * one + 3 * counts


class Runs(ThreadRunner):
    """Notes how many threads run, and with which numbers."""

    seen: ClassVar[list[tuple[int, ...]]] = []

    def map(self, task, parts, shared=None, own=None, *, progress=None):
        coordinates, _, _, n_problems, batch_size = shared
        self.seen.append((self.n_workers, coordinates.jobs, n_problems, batch_size))
        return iter(())


class GivenCoordinates:
    aligners = (SimpleNamespace(device="cpu"),)
    shift, n_features, n_bytes = np.zeros(10), 100, 8 * 10 * 100

    def with_jobs(self, n_jobs):
        self.jobs = n_jobs
        return self


@pytest.mark.parametrize(
    ("memory", "expected"),
    [
        # A batch may take a tenth of the memory: 6 x 100 bytes and 16 x 120 of a series.
        (2520 * 10 * 50, (4, 1, 3, 50)),
        (1e12, (4, 1, 3, 1024)),
        (1.0, (1, 4, 3, 1)),
        # Beside the coefficients and one matrix, each task has its batch and five matrices.
        (8000 + 800 + 2 * (4 * 2520 + 4000) + 90_000, (4, 1, 3, 5)),
        (8000 + 800 + 2 * (1 * 2520 + 4000), (2, 2, 3, 1)),
        (8000 + 800 + 2 * (1 * 2520 + 4000) - 1, (1, 4, 3, 1)),
    ],
)
def test_batches_and_threads_of_the_sums_fit_in_memory(memory, expected, monkeypatch):
    monkeypatch.setattr(Runs, "seen", [])
    monkeypatch.setattr(partitioned_ridge, "ThreadRunner", Runs)
    monkeypatch.setattr(partitioned_ridge, "READER_BYTES", 0)
    source = SimpleNamespace(parts=lambda: range(9))
    ridge = PartitionedRidge(
        source, SimpleNamespace(is_remote=False, n_workers=4), np.arange(3), np.ones(3),
        np.ones(5), 100.0, memory, lambda _: nullcontext(),
    )  # fmt: skip
    ridge.sum(GivenCoordinates())
    assert Runs.seen == [expected]
    # A GPU takes one task after the other.
    on_gpu = GivenCoordinates()
    on_gpu.aligners = (SimpleNamespace(device="cuda"),)
    ridge.sum(on_gpu)
    assert Runs.seen.pop() == (1, 4, 3, expected[3])
    # Workers have their own memory, and one thread for each task.
    monkeypatch.setattr(Runs, "is_remote", True)
    replace(ridge, runner=Runs(7)).sum(GivenCoordinates())
    assert Runs.seen[1] == (7, 1, 3, expected[3])


def test_sums_of_a_part_count_series_by_class_and_by_weight(rng):
    codes, weights = np.arange(8) % 2, rng.uniform(0.5, 2.0, size=8)
    series = as_series(rng.normal(size=(8, 1, 3)))
    part = Dataset(series, np.array(["a", "b"])[codes], weights=weights)

    class FirstStep:
        shift = np.zeros(1)

        def __call__(self, batch):
            return batch.values[::3]

    shared = FirstStep(), np.array(["a", "b"]), np.array([1.0, 3.0]), 1, 5
    x, y = series.values[::3], 2.0 * codes[:, np.newaxis] - 1.0
    span = AnchorSpan(np.copy, np.zeros(1), x)
    for given in (weights, None):
        own = np.array([1.0, 3.0])[codes] * (1.0 if given is None else given)
        expected = NormalEquations(1, 1)
        expected.add(x, y, own)
        found = sum_equations(replace(part, weights=given), shared, None)
        one, other = (sums.solve(span, y, own, np.ones(1)) for sums in (found, expected))
        np.testing.assert_allclose(one.slope, other.slope, rtol=1e-12)
        assert one.objective == pytest.approx(other.objective, rel=1e-12)


def test_coefficients_of_coordinates_are_counted():
    directions = (np.zeros((10, 3, 2, 4, 4)), np.zeros((10, 3, 1, 4, 4)))
    plain = Coordinates((), (), np.zeros(0), directions, None, np.zeros(10))
    assert (plain.n_features, plain.n_bytes) == (144, 8 * 10 * 144)
    counted = SimpleNamespace(coef=np.zeros((10, 7, 5)))
    assert Coordinates((), (), np.zeros(0), directions, counted, np.zeros(10)).n_features == 179
