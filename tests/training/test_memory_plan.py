"""What learning from a stream will take: within the limit, and said in words."""

import logging
import re
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from slts.estimators import memory_plan
from slts.estimators.memory_plan import MemoryPlan, amount
from slts.estimators.streams import DEFAULT_LIMIT, memory_bytes

MB, GB = 10**6, 10**9
USUAL = {
    "limit": 2 * GB, "n_series": 1_000_000, "n_steps": 50_000_000, "n_channels": 12, "n_rows": 13,
    "n_classes": 10, "n_landmarks": 100, "n_sample": 20_000, "sample": 96.0 * MB, "item": 8,
    "learns_metric": True, "n_workers": 2, "remote": False,
}  # fmt: skip


def plan_of(**changes):
    return MemoryPlan.make(**(USUAL | changes))


# -- memory_limit


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (None, DEFAULT_LIMIT),
        (1, 1),
        (2.5e9, 2_500_000_000),
        (np.int64(77), 77),
        (np.float32(1024), 1024),
        ("77", 77),
        ("77B", 77),
        ("5k", 5_000),
        ("5kB", 5_000),
        ("5KiB", 5 * 1024),
        ("512 MiB", 512 * 2**20),
        ("512M", 512 * MB),
        ("1.5GB", 1_500_000_000),
        ("1.gb", GB),
        ("0.25 GiB", 2**28),
        (" 2GI ", 2 * 2**30),
        ("3TB", 3 * 10**12),
        ("3tib", 3 * 2**40),
    ],
)
def test_sizes_are_understood(given, expected):
    found = memory_bytes(given, "fit")
    assert (type(found), found) == (int, expected)


@pytest.mark.parametrize(
    "given",
    ["", "GB", "much", "-1", "-1GB", "0", "0GB", "1e9", "2 GB or so", "2PB", "2IB", "1,5GB", "2GGB",
     ".", "nan", "inf", 0, -5, 0.0, float("nan"), float("inf"), True, False, [1], b"2GB", 1j],
)  # fmt: skip
def test_other_sizes_are_refused(given):
    with pytest.raises(ValueError, match="'memory_limit' parameter of SLTSClassifier") as caught:
        memory_bytes(given, "SLTSClassifier")
    assert "'2GB' or '512 MiB'" in str(caught.value)
    assert f"Got {given!r} instead" in str(caught.value)


# -- plans


@st.composite
def shapes(draw):
    """Data of any shape, with the sample that `survey` would draw at a limit."""
    n_series = draw(st.integers(2, 10**8))
    length = draw(st.floats(1.0, 2000.0))
    n_channels = draw(st.integers(1, 30))
    shape = {
        "n_series": n_series,
        "n_steps": max(n_series, int(n_series * length)),
        "n_channels": n_channels,
        "n_rows": n_channels + draw(st.integers(0, 1)),
        "n_classes": draw(st.integers(2, 40)),
        "n_landmarks": draw(st.integers(1, min(n_series, 300))),
        "item": draw(st.sampled_from([4, 8])),
        "learns_metric": draw(st.booleans()),
        "n_workers": draw(st.integers(1, 64)),
        "remote": draw(st.booleans()),
    }

    def at(limit):
        one = 8.0 * n_channels * shape["n_steps"] / n_series
        fitting = int(limit * memory_plan.SAMPLE_SHARE / one)
        n_sample = min(n_series, max(shape["n_landmarks"], min(memory_plan.MOST_TUNING, fitting)))
        return MemoryPlan.make(limit=limit, n_sample=n_sample, sample=n_sample * one, **shape)

    return at


limits = st.floats(6.0, 12.0).map(lambda power: float(int(10**power)))


@given(shapes(), limits)
def test_what_is_needed_and_held_is_within_the_limit(at, limit):
    plan = at(limit)
    assume(plan.needed <= limit)
    assert plan.needed + plan.resident <= limit * (1 + 1e-12)
    if plan.remote:
        assert plan.spilled == 0.0
    else:
        assert plan.spilled == max(0.0, plan.held - plan.resident)
    assert plan.needed == plan.sample + plan.tuning + max(plan.reading, plan.solving)
    assert 1 <= plan.n_tuning <= memory_plan.MOST_TUNING
    assert 1 <= plan.batch_size <= 4096
    assert plan.at_once >= 1


@given(shapes(), limits)
def test_the_limit_that_is_named_will_do(at, limit):
    plan = at(limit)
    assume(plan.needed > limit)
    with pytest.raises(ValueError, match="'memory_limit' parameter of it is too small") as caught:
        plan.check("it")
    named = re.search(r"and (\S+ [kMG]B) would do", str(caught.value))
    enough = memory_bytes(named[1], "it")
    assert enough > limit
    better = at(float(enough))
    assert better.needed <= enough
    # Nor is it much more than that: half of it would not do, or the sample would be smaller.
    assert enough <= 2.5 * max(better.needed, plan.needed, 1e6)


def test_all_in_memory_may_be_less_than_parts():
    plan = plan_of(limit=50.0 * MB)
    with pytest.raises(ValueError, match="50 MB, and 78 MB would do"):
        plan.check("it", whole=77.5 * MB)


def test_the_error_says_what_the_memory_is_for():
    with pytest.raises(ValueError, match="too small") as caught:
        plan_of(limit=50.0 * MB).check("SLTSClassifier")
    assert "The 'memory_limit' parameter of SLTSClassifier is too small: 50 MB, and " in str(
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


def test_fewer_series_are_aligned_where_memory_is_short():
    plans = [plan_of(limit=limit * GB, sample=20.0 * MB) for limit in (1.1, 2.0, 4.0, 400.0)]
    counts = [plan.n_tuning for plan in plans]
    assert counts == sorted(counts)
    assert counts[0] < counts[1] < counts[2] < counts[3] == memory_plan.MOST_TUNING
    assert counts[0] >= memory_plan.FEWEST_TUNING
    for plan in plans[:3]:
        assert plan.tuning <= plan.limit / 3


def test_results_of_a_small_problem_stay_in_memory():
    plan = plan_of(n_series=1000, n_steps=50_000, n_sample=1000, sample=4.8 * MB)
    # Sums of the products of every class, for each series.
    assert plan.held == 1000 * 8 * 10 * 13 * 13
    assert plan.spilled == 0.0
    plan.check("it")
    assert "temporary files" not in str(plan)


def test_similarities_are_held_where_no_metric_is_learned():
    plan = plan_of(learns_metric=False)
    assert plan.held == USUAL["n_series"] * 8 * 100
    assert plan_of(learns_metric=False, item=4).held == plan.held / 2


def test_every_thread_reads_but_not_more_than_a_share():
    one, two, many = (plan_of(n_workers=n) for n in (1, 2, 64))
    assert two.reading == 2 * one.reading
    assert many.reading <= one.limit / 3
    assert many.chunk < one.chunk
    assert plan_of(n_workers=6, remote=True).reading == one.reading


def test_problems_that_are_too_many_are_solved_some_at_a_time():
    assert plan_of(limit=3.0 * GB).at_once == 10
    crowd = plan_of(n_classes=200, n_rows=40)
    assert 1 <= crowd.at_once < 200
    fewer = plan_of(n_classes=200, n_rows=40, limit=crowd.limit / 2)
    assert fewer.rows_bytes < crowd.rows_bytes
    for plan in (crowd, plan_of(limit=3.0 * GB)):
        assert plan.solving <= 0.4 * plan.limit or plan.at_once == 1


def test_series_of_rare_classes_are_counted():
    assert plan_of(n_extra=100).needed <= plan_of().limit
    few = plan_of(limit=plan_of().enough)
    assert plan_of(limit=few.limit, n_extra=100).tuning > few.tuning


def test_a_disk_that_is_too_small_is_refused(monkeypatch):
    plan = plan_of()
    assert plan.spilled > GB
    monkeypatch.setattr(memory_plan, "free_disk", lambda: plan.spilled)
    plan.check("it")
    monkeypatch.setattr(memory_plan, "free_disk", lambda: plan.spilled - 1)
    with pytest.raises(OSError, match="temporary files are needed and the disk has") as caught:
        plan.check("it")
    assert str(caught.value).startswith(f"{amount(plan.spilled)} of temporary files")
    assert "TMPDIR" in str(caught.value)
    # The disk of this machine does not matter to a cluster.
    plan_of(remote=True).check("it")


# -- in words


def test_a_plan_in_one_line(caplog):
    plan = MemoryPlan(
        limit=2.0 * GB, sample=100.0 * MB, tuning=200.0 * MB, reading=300.0 * MB,
        solving=400.0 * MB, held=7.0 * GB, n_tuning=1000, batch_size=64, chunk=1 << 20,
        at_once=5, rows_bytes=20.0 * MB, remote=False, enough=1.0 * GB,
    )  # fmt: skip
    room = plan.resident
    assert 500.0 * MB < room <= 1.0 * GB
    parts = "sample: 100 MB, its alignments: 200 MB, reading: 300 MB, then solving: 400 MB"
    expected = {
        plan: f"{amount(0.7 * GB + room)} of 2.0 GB ({parts}, results: {amount(room)}, and "
        f"{amount(7.0 * GB - room)} in temporary files)",
        replace(plan, held=300.0 * MB): f"1.0 GB of 2.0 GB ({parts}, results: 300 MB)",
        replace(plan, remote=True): f"700 MB of 2.0 GB ({parts}, results: 7.0 GB on the workers)",
    }
    for one, words in expected.items():
        assert str(one) == f"memory: about {words}"
    with caplog.at_level(logging.INFO, logger="slts"):
        plan.tell()
    assert [record.getMessage() for record in caplog.records] == [str(plan)]


@pytest.mark.parametrize(
    ("size", "words"),
    [
        (0, "0 bytes"),
        (700, "700 bytes"),
        (7_400, "7 kB"),
        (1.4 * MB, "1 MB"),
        (1.6 * MB, "2 MB"),
        (45_600_000, "46 MB"),
        (999.4 * MB, "999 MB"),
        (999.6 * MB, "1.0 GB"),
        (2_340_000_000, "2.3 GB"),
        (1234.5 * GB, "1234.5 GB"),
    ],
)
def test_amounts(size, words):
    assert amount(size) == words
