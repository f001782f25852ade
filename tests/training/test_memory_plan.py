"""Memory that learning needs: within the limit, and reported."""

import logging
import re
from dataclasses import dataclass, replace
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from slts.training.memory_plan import LandmarkWork, MemoryPlan

import slts
from slts.quantities import format_bytes, parse_bytes
from slts.training import landmark_fit, memory_plan
from slts.training.sampling import SampleSize

MB, GB = 10**6, 10**9
USUAL = LandmarkWork(
    n_series=1_000_000, n_steps=50_000_000, n_channels=12, row_width=13, n_classes=10,
    n_landmarks=100, n_sample=20_000, n_extra=0, sample_bytes=96.0 * MB, complete=False, item=8,
    learns_metric=True,
)  # fmt: skip


@dataclass
class Runner:
    """As much of a task runner as a plan looks at."""

    n_workers: int = 2
    is_remote: bool = False


def plan_of(limit=2.0 * GB, n_workers=2, remote=False, **changes):
    return MemoryPlan.make(replace(USUAL, **changes), limit, Runner(n_workers, remote))


@st.composite
def shapes(draw):
    """Data of any shape, with the sample that the first pass draws at a limit."""
    n_series = draw(st.integers(2, 10**8))
    length = draw(st.floats(1.0, 2000.0))
    n_channels = draw(st.integers(1, 30))
    shape = {
        "n_series": n_series,
        "n_steps": max(n_series, int(n_series * length)),
        "n_channels": n_channels,
        "row_width": n_channels + draw(st.integers(0, 1)),
        "n_classes": draw(st.integers(2, 40)),
        "n_landmarks": draw(st.integers(1, min(n_series, 300))),
        "n_extra": 0,
        "item": draw(st.sampled_from([4, 8])),
        "learns_metric": draw(st.booleans()),
    }
    runner = Runner(draw(st.integers(1, 64)), draw(st.booleans()))

    def at(limit):
        one = 8.0 * n_channels * shape["n_steps"] / n_series
        fitting = int(limit * memory_plan.SAMPLE_SHARE / one)
        n_sample = min(n_series, max(shape["n_landmarks"], fitting))
        work = LandmarkWork(
            n_sample=n_sample, sample_bytes=n_sample * one, complete=n_sample == n_series, **shape
        )
        return MemoryPlan.make(work, limit, runner), work

    return at


limits = st.floats(6.0, 12.0).map(lambda power: float(int(10**power)))


@given(shapes(), limits)
def test_what_is_needed_and_kept_is_within_the_limit(at, limit):
    plan, work = at(limit)
    assert (plan is None) == (work.complete and work.in_memory <= limit)
    if plan is None or plan.needed > limit:
        return
    assert plan.needed + plan.resident <= limit * (1 + 1e-12)
    assert plan.spilled == (0.0 if plan.remote else max(0.0, plan.kept - plan.resident))
    assert plan.needed == plan.sample + plan.tuning + max(plan.reading, plan.solving)
    assert 1 <= plan.n_tuning <= memory_plan.MOST_TUNING
    assert 1 <= plan.batch_size <= 4096
    assert plan.at_once >= 1


@settings(max_examples=60)
@given(shapes(), limits)
def test_the_suggested_limit_is_sufficient(at, limit):
    plan, _ = at(limit)
    assume(plan is not None and plan.needed > limit)
    with pytest.raises(ValueError, match="'memory_limit' parameter of it is too small") as caught:
        plan.check("it")
    named = re.search(r"A limit of (\S+ [kMG]B) is sufficient", str(caught.value))
    enough = parse_bytes(named[1])
    assert enough > limit
    better, work = at(float(enough))
    assert better is None or better.needed <= enough
    # It is not much more than that: half of it is too little, or the sample would be smaller.
    assert enough <= 2.5 * max(plan.needed, work.in_memory, better.needed if better else 0, 1e6)


def test_all_in_memory_may_be_less_than_parts():
    small = {"n_series": 1000, "n_steps": 50_000, "n_sample": 1000, "sample_bytes": 4.8 * MB}
    work = replace(USUAL, **small, n_landmarks=10, complete=True)
    # Similarities of 13**2 // 8 metrics are computed at once, and copied twice to be solved.
    solved = 10 * (21 + 2)
    assert work.in_memory == 2 * 4.8 * MB + 1000 * 8 * (10 * 13**2 + 2 * 10 * 13**2 + solved)
    limit = work.in_memory
    assert MemoryPlan.make(work, limit, Runner()) is None
    assert MemoryPlan.make(work, limit - 1, Runner()) is not None
    with pytest.raises(ValueError, match=r"too small: 5 MB\. A limit of 52 MB is sufficient"):
        MemoryPlan.make(work, 5 * MB, Runner()).check("it")
    # A larger source needs the share of the sample, or twice the series and their alignments.
    larger = replace(work, complete=False)
    assert larger.enough_for_all == pytest.approx(12 * 8 * 12 * 50_000)
    both = 2 * 8 * 12 * 50_000 + 1000 * 8 * ((20 + 2 * 10) * 13**2 + 2 * solved)
    assert replace(larger, n_landmarks=20).enough_for_all == both
    # Three more threads solve a problem each.
    threads = replace(work, n_solvers=4).per_tuning - work.per_tuning
    assert threads == 8 * 10 * (1 + 2) * 3
    # Parameters are chosen on a copy of 10,000 series.
    held = 8 * (10 * 13**2 + 2 * 10 * 13**2)
    many = replace(work, n_series=12_000, n_sample=12_000)
    assert many.in_memory == 2 * 4.8 * MB + 22_000 * held + 10_000 * 8 * solved
    # Then all 10 problems are solved.
    many = replace(many, n_sample=10**6)
    assert many.in_memory == 2 * 4.8 * MB + 10**6 * (held + 8 * 10 * (10 + 2))
    # A sample is never held in memory instead of all series.
    assert MemoryPlan.make(replace(work, complete=False), GB, Runner()) is not None


def test_how_a_limit_is_divided():
    plan = plan_of(2.0 * GB)
    # The sample is copied once. Two threads read batches of 16 MiB, which exist six times, and
    # results of 16 MiB, which exist twice.
    assert plan.sample == 2 * 96.0 * MB
    assert plan.chunk == 16 * 2**20
    assert plan.reading == 2 * (6 + 2) * plan.chunk
    assert plan.batch_size == plan.chunk // 4800
    # Class sums of 10 classes, 13 x 13 each, are the largest results.
    assert plan.kept == 1e6 * 8 * 10 * 13**2
    # A problem holds its rows twice, and the one that is solved four more times.
    assert plan.rows_bytes == pytest.approx(0.4 * 2 * GB / 6)
    assert 1 < plan.at_once < 10
    assert plan.solving <= 0.4 * 2 * GB
    assert plan.resident == pytest.approx(0.85 * 2 * GB - plan.needed)
    # A thread reads at most a quarter of the limit, but at least 1 MiB; a worker reads alone.
    assert plan_of(200.0 * MB).chunk == 200 * MB // 4 // 2 // 8
    assert plan_of(2.0 * MB).chunk == 2**20
    assert plan_of(200.0 * MB, remote=True).chunk == 200 * MB // 4 // 8
    assert plan_of(2.0 * MB).n_tuning == 500


def test_plans_are_the_known_ones():
    """Sample, alignments, reading, solving and results, in bytes, and how work is cut."""
    known = {
        (192000000, 666561600, 268435456, 731161600, 13520000000, 1845, 3495, 6, 110276800): {},
        (192000000, 105491200, 41943040, 162223776, 6760000000, 500, 218, 1, 0): {
            "limit": 60.0 * MB, "n_workers": 5, "n_extra": 30, "item": 4,
        },
        (192000000, 56000000, 134217728, 96000000, 800000000, 10000, 3495, 1, 2167782272): {
            "limit": 3.0 * GB, "remote": True, "n_workers": 7, "learns_metric": False,
            "n_classes": 2, "n_candidates": 50,
        },
        (192000000, 11022400000, 268435456, 672000000, 280000000, 5000, 873, 10, 22113600000): {
            "limit": 40.0 * GB, "n_series": 5000, "n_steps": 10**6, "n_sample": 5000,
            "n_landmarks": 700,
        },
    }  # fmt: skip
    for numbers, changes in known.items():
        plan = plan_of(**changes)
        assert numbers == (
            plan.sample, plan.tuning, plan.reading, pytest.approx(plan.solving), plan.kept,
            plan.n_tuning, plan.batch_size, plan.at_once, pytest.approx(plan.resident),
        )  # fmt: skip
    assert plan_of(limit=60.0 * MB).enough == pytest.approx(717.95e6, rel=1e-3)


def test_the_error_lists_what_needs_memory():
    with pytest.raises(ValueError, match="too small") as caught:
        plan_of(limit=50.0 * MB).check("SLTSClassifier")
    assert "The 'memory_limit' parameter of SLTSClassifier is too small: 50 MB. A limit" in str(
        caught.value
    )
    for part in (
        "sample: 192 MB",
        "its alignments: ",
        "reading: ",
        "then solving: ",
        "n_landmarks",
    ):
        assert part in str(caught.value)


def test_fewer_series_are_tuned_on_if_memory_is_short():
    plans = [plan_of(limit=limit * GB, sample_bytes=20.0 * MB) for limit in (1.1, 2.0, 4.0, 400.0)]
    counts = [plan.n_tuning for plan in plans]
    assert counts == sorted(counts)
    assert counts[0] < counts[1] < counts[2] < counts[3] == memory_plan.MOST_TUNING
    assert counts[0] >= memory_plan.FEWEST_TUNING
    for plan in plans[:3]:
        assert plan.tuning <= plan.limit / 3


def test_results_of_a_small_problem_stay_in_memory():
    plan = plan_of(n_series=1000, n_steps=50_000, n_sample=1000, sample_bytes=4.8 * MB)
    # Sums of the products of every class, for each series.
    assert plan.kept == 1000 * 8 * 10 * 13 * 13
    assert plan.spilled == 0.0
    plan.check("it")
    assert "temporary files" not in str(plan)


def test_similarities_are_kept_if_no_metric_is_learned():
    plan = plan_of(learns_metric=False)
    assert plan.kept == USUAL.n_series * 8 * 100
    assert plan_of(learns_metric=False, item=4).kept == plan.kept / 2


def test_threads_share_the_memory_for_reading():
    one, two, many = (plan_of(n_workers=n) for n in (1, 2, 64))
    assert two.reading == 2 * one.reading
    assert many.reading <= one.limit / 3
    assert many.chunk < one.chunk
    assert plan_of(n_workers=6, remote=True).reading == one.reading


def test_too_many_problems_are_solved_some_at_a_time():
    assert plan_of(limit=3.0 * GB).at_once == 10
    crowd = plan_of(n_classes=200, row_width=40)
    assert 1 <= crowd.at_once < 200
    fewer = plan_of(n_classes=200, row_width=40, limit=crowd.limit / 2)
    assert fewer.rows_bytes < crowd.rows_bytes
    for plan in (crowd, plan_of(limit=3.0 * GB)):
        assert plan.solving <= 0.4 * plan.limit or plan.at_once == 1


def test_series_that_top_up_rare_classes_are_counted():
    plan, topped = plan_of(), plan_of(n_extra=100)
    assert topped.n_tuning + 100 == plan.n_tuning
    few = plan_of(limit=plan_of(limit=50.0 * MB).enough)
    assert plan_of(limit=few.limit, n_extra=300).tuning > few.tuning


def test_the_sample_has_a_share_of_the_limit_and_some_series_of_every_class(monkeypatch):
    def size(**changes):
        given = {"regularizer": "frobenius", "landmarks": "random", "n_landmarks": None} | changes
        return landmark_fit._sample_size(SimpleNamespace(**given), 12.0 * GB)

    usual = SampleSize(np.inf, 1.0 * GB, 100, 20)
    assert size() == size(n_landmarks=100) == size(n_landmarks=[5, 100]) == usual
    assert size(n_landmarks=0.5) == size(landmarks=[3, 4]) == replace(usual, at_least=1)
    # Only the Frobenius problem can be solved in parts.
    assert size(regularizer="nuclear") == SampleSize(np.inf, 12.0 * GB)
    monkeypatch.setattr(landmark_fit, "MOST_TUNING", 3)
    codes = np.repeat([0, 1, 0], [30, 5, 30])
    assert landmark_fit._tuning_positions(codes).tolist() == [*range(20), *range(30, 35)]


def test_decisions_of_a_search_are_counted(monkeypatch):
    assert replace(USUAL, n_candidates=7).per_tuning == USUAL.per_tuning + 8 * 10 * 7
    many = plan_of(n_candidates=1000)
    assert many.tuning <= many.limit / 3
    assert many.n_tuning < plan_of().n_tuning
    seen = []
    monkeypatch.setattr(MemoryPlan, "make", lambda work, *_: seen.append(work))
    X, y = np.random.default_rng(0).normal(size=(12, 1, 6)), np.arange(12) % 2
    slts.BBSClassifierCV(n_landmarks=[5, 8], gammas=[0.1, 1.0, 10.0], cv=2, random_state=0).fit(
        X, y
    )
    slts.SLTSClassifier(n_landmarks=8, calibration_cv=None, random_state=0).fit(X, y)
    assert [work.n_candidates for work in seen] == [6, 0]
    shape = {"n_series": 12, "n_steps": 72, "n_channels": 1, "row_width": 2, "n_classes": 2}
    sample = {"n_sample": 12, "n_extra": 0, "sample_bytes": 576.0, "complete": True}
    rest = {"n_landmarks": 8, "item": 8, "learns_metric": True, "n_candidates": 0}
    assert seen[1] == LandmarkWork(**shape, **sample, **rest)
    assert seen[1].in_memory == 2 * 576 + 12 * 8 * (8 * (4 + 3 + 2) + 2 * 2 * 4)


def test_a_disk_that_is_too_small_is_an_error(monkeypatch):
    plan = plan_of()
    assert plan.spilled > GB
    monkeypatch.setattr(memory_plan, "free_disk", lambda: plan.spilled)
    plan.check("it")
    monkeypatch.setattr(memory_plan, "free_disk", lambda: plan.spilled - 1)
    with pytest.raises(OSError, match=r"Temporary files need .* but the disk has") as caught:
        plan.check("it")
    assert str(caught.value).startswith(f"Temporary files need {format_bytes(plan.spilled)}")
    assert "TMPDIR" in str(caught.value)
    # Workers of a cluster keep results on their own disks.
    plan_of(remote=True).check("it")


def test_a_plan_is_logged_in_one_line(caplog):
    plan = MemoryPlan(
        limit=2.0 * GB, sample=100.0 * MB, tuning=200.0 * MB, reading=300.0 * MB,
        solving=400.0 * MB, kept=7.0 * GB, n_tuning=1000, batch_size=64, chunk=1 << 20,
        at_once=5, rows_bytes=20.0 * MB, remote=False, enough=1.0 * GB,
    )  # fmt: skip
    room = plan.resident
    assert 500.0 * MB < room <= 1.0 * GB
    parts = "sample: 100 MB, its alignments: 200 MB, reading: 300 MB, then solving: 400 MB"
    expected = {
        plan: f"{format_bytes(0.7 * GB + room)} of 2 GB ({parts}, "
        f"results: {format_bytes(room)}, and {format_bytes(7.0 * GB - room)} in temporary files)",
        replace(plan, kept=300.0 * MB): f"1 GB of 2 GB ({parts}, results: 300 MB)",
        replace(plan, remote=True): f"700 MB of 2 GB ({parts}, results: 7 GB on the workers)",
    }
    for one, words in expected.items():
        assert str(one) == f"memory: about {words}"
    with caplog.at_level(logging.INFO, logger="slts"):
        plan.check("it")
    assert [record.getMessage() for record in caplog.records] == [str(plan)]
