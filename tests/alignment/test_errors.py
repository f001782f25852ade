"""Invalid input raises an error that says what is wrong and where."""

import re

import numpy as np
import pytest

import slts
from slts import DataError, Itakura, align, aligned_products, as_series, distance, similarity
from slts.alignment import Aligner, AlignmentSettings
from slts.alignment.cpu import available_targets
from tests.data import run_python

GOOD = np.ones((2, 3))
PAIRWISE = [similarity, distance, aligned_products]


def broken(value):
    series = np.ones((2, 5))
    series[1, 4] = value
    return series


# The room of series tests what cannot be converted; here the series are named by their argument.
BATCHES = {
    "an empty series": ([GOOD, np.empty((2, 0))], "series 1 has 0 steps"),
    "infinity": ([GOOD, broken(-np.inf)], "series 1, step 4, channel 1 is -inf"),
    "mixed channels": ([GOOD, np.ones((4, 9))], "series 1 has 4 channels, expected 2"),
    "one string": ("abc", "is of type str"),
}
ONE_SERIES = {
    "empty": (np.empty((2, 0)), "0 steps"),
    "NaN": (np.full((2, 3), np.nan), "series 0 is NaN throughout"),
    "infinity": (broken(np.inf), "step 4, channel 1 is inf"),
    "a number": (3.0, "0 dimensions"),
}


@pytest.mark.parametrize("function", PAIRWISE)
@pytest.mark.parametrize("kind", BATCHES)
def test_bad_series_are_named_by_their_index(function, kind):
    bad, message = BATCHES[kind]
    with pytest.raises(DataError, match=re.escape(message)):
        function(bad)
    with pytest.raises(DataError, match=re.escape(message)) as error:
        function([GOOD], bad)
    assert re.search(r"\bY\b", str(error.value))


@pytest.mark.parametrize("kind", ONE_SERIES)
def test_a_bad_series_of_align_is_named_by_its_argument(kind):
    bad, message = ONE_SERIES[kind]
    with pytest.raises(DataError, match=f"'a'.*{message}"):
        align(bad, GOOD)
    with pytest.raises(DataError, match=f"'b'.*{message}"):
        align(GOOD, bad)


def test_both_must_have_the_same_channels():
    for function in PAIRWISE:
        with pytest.raises(DataError, match="'X' has 2 channels and 'Y' has 3"):
            function([GOOD], [np.ones((3, 3))])
    with pytest.raises(DataError, match="'a' has 2 channels and 'b' has 5"):
        align(GOOD, np.ones((5, 4)))


def test_one_series_instead_of_a_collection_is_recognised():
    X = [np.ones((3, 5)), np.ones((3, 7))]
    for function in PAIRWISE:
        with pytest.raises(DataError, match=r"'X' is read as 3 series .* one series x, pass \[x\]"):
            function(X[0], X)
        with pytest.raises(DataError, match=r"'Y' is read as 3 series .* one series x, pass \[x\]"):
            function(X, X[0])


@pytest.mark.parametrize(("a", "b"), [((2, 5), (7, 2)), ((5, 2), (2, 7)), ((5, 2), (7, 2))])
def test_other_axes_are_suggested_if_the_channels_then_agree(a, b):
    with pytest.raises(DataError, match="time_first"):
        align(np.ones(a), np.ones(b))
    with pytest.raises(DataError, match="time_first"):
        similarity([np.ones(a)], [np.ones(b)])


def test_cost_without_normalising_needs_short_rows():
    long, how = np.array([[0.5, 0.5], [0.5, 3.0]]), {"objective": "cost", "normalize": False}
    with pytest.raises(DataError, match=r"series 1 .* 3\.04138.*normalize=True"):
        similarity([np.full((2, 4), 0.5), long], **how)
    with pytest.raises(DataError, match="normalize=True"):
        align(np.full((2, 4), 0.5), long, **how)
    # No series have no row that is too long.
    assert similarity(as_series([GOOD])[:0], **how).shape == (0, 0)


@pytest.mark.parametrize("band", [-1, True, False, 2.0, np.float64(3), "5", "full", [1], (2,)])
def test_bands_are_none_an_int_or_itakura(band):
    for call in (
        lambda: align(GOOD, GOOD, band=band),
        lambda: similarity([GOOD], band=band),
        lambda: aligned_products([GOOD], band=band),
        lambda: AlignmentSettings(band=band),
    ):
        with pytest.raises(ValueError, match=f"'band'.*{re.escape(repr(band))}"):
            call()


@pytest.mark.parametrize("slope", [0.99, 0, -2, np.nan, np.inf, "2", None])
def test_max_slope_is_a_finite_number_from_one(slope):
    with pytest.raises(ValueError, match=f"'max_slope'.*{re.escape(repr(slope))}"):
        Itakura(slope)


@pytest.mark.parametrize("n_jobs", [1, 2])
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_a_band_without_a_path_names_the_pair_and_its_lengths(n_jobs, dtype):
    how = AlignmentSettings(band=Itakura(1.0), dtype=dtype)
    x = as_series([np.ones((1, 3))] * 7)
    y = as_series([np.ones((1, n)) for n in [3] * 20 + [5] + [3] * 5])
    aligner = Aligner(y, how, n_jobs=n_jobs)
    pair = r"Itakura\(max_slope=1\.0\).*series [0-6] of X \(length 3\).*series 20 of Y \(length 5\)"
    for call in (
        lambda: similarity(x, y, band=how.band, n_jobs=n_jobs, dtype=dtype),
        lambda: aligned_products(x, y, band=how.band, n_jobs=n_jobs, dtype=dtype),
        lambda: aligner.grouped(x, np.ones((1, 26))),
        lambda: aligner.projected(x, np.eye(1)[None]),
        lambda: aligner.path(x[:1], 20),
    ):
        with pytest.raises(DataError, match=pair):
            call()
    with pytest.raises(DataError, match=r"no path between a \(length 3\) and b \(length 5\)"):
        align(np.ones((1, 3)), np.ones((1, 5)), band=Itakura(1.0))


@pytest.mark.parametrize(("how", "named"), [
    *(({"objective": o}, "'objective'.*'affinity', 'cost'") for o in ("Affinity", "", None, 1)),
    *(({"dtype": t}, "'dtype'.*'float64'") for t in ("float16", "int32", object(), complex)),
    *(({"metric": np.ones(shape)}, rf"'metric'.*\(2, 2\).*{re.escape(str(shape))}")
      for shape in ((3, 3), (2,), (2, 3), (1, 2, 2), ())),
    ({"metric": [[1.0, 0.0], [0.0, np.nan]]}, "'metric'.*finite"),
    ({"metric": [[1.0, 0.0], [0.0, np.inf]]}, "'metric'.*finite"),
    ({"metric": "identity"}, "'metric'"),
    ({"metric": [[1.0, 2.0], [3.0]]}, "'metric'"),
    ({"n_jobs": 0}, "n_jobs must not be 0"),
])  # fmt: skip
def test_parameters_are_answered_with_what_they_may_be(how, named):
    with pytest.raises(ValueError, match=named):
        similarity([GOOD], **how)


def test_what_numpy_makes_is_accepted():
    x = np.random.default_rng(0).normal(size=(4, 2, 9))
    for radius in (np.int64(2), np.uint8(2)):
        np.testing.assert_array_equal(similarity(x, band=radius), similarity(x, band=2))
    for dtype in (np.float32, np.dtype("float32"), "f4"):
        assert similarity([GOOD], dtype=dtype).dtype == np.float32
    assert align(GOOD, GOOD, normalize=np.True_).length == align(GOOD, GOOD).length
    with pytest.raises(TypeError, match="n_jobs"):
        similarity([GOOD], n_jobs="all")


def test_an_unknown_instruction_set_is_answered_with_the_available_ones(monkeypatch):
    monkeypatch.setenv("SLTS_ISA", "mmx")
    names = ", ".join(target.name for target in available_targets())
    for call in (lambda: similarity([GOOD]), lambda: align(GOOD, GOOD)):
        with pytest.raises(ValueError, match=rf"SLTS_ISA.*{names}.*'mmx'"):
            call()
    monkeypatch.setenv("SLTS_ISA", "")
    assert similarity([GOOD]).shape == (1, 1)


OVERFLOWING = """
import numpy as np, slts
a, b = np.full((1, 2), {value}), np.full((1, 4), -{value})
try:
    slts.{call}
except slts.DataError as error:
    assert "normalize=True" in str(error)
else:
    raise SystemExit("no error")
"""


@pytest.mark.parametrize(("value", "call"), [
    ("1e200", "align(a, b, normalize=False)"),
    ("1e200", "aligned_products([a], [b], normalize=False)"),
    ("1e30", "aligned_products([a], [b], normalize=False, dtype='float32')"),
])  # fmt: skip
def test_overflowing_affinities_are_errors_and_corrupt_no_memory(value, call):
    run_python(OVERFLOWING.format(value=value, call=call))


def test_a_path_that_does_not_fit_in_memory_is_an_error_before_it_is_allocated(monkeypatch):
    monkeypatch.setattr("slts.alignment.cpu.usable_memory", lambda: 10**9)
    long = np.sin(np.arange(100_000.0))
    message = "100000 and 100000 steps needs 2.5 GB of memory.*1 GB"
    with pytest.raises(MemoryError, match=message):
        slts.align(long, long)
    with pytest.raises(MemoryError, match=message):
        slts.aligned_products([long], [long])
