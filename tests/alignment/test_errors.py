"""Invalid input raises an error that says what is wrong and where."""

import re
import subprocess
import sys

import numpy as np
import pytest

import slts
from slts import DataError, Itakura, align, aligned_products, as_series, similarity
from slts.alignment import Aligner, AlignmentSettings
from slts.alignment.cpu import available_targets

GOOD = np.ones((2, 3))
PAIRWISE = [similarity, aligned_products]


def broken(value):
    series = np.ones((2, 5))
    series[1, 4] = value
    return series


BATCHES = {
    "an empty list": ([], "0 sample"),
    "an empty series": ([GOOD, np.empty((2, 0))], "series 1 has 0 steps"),
    "no channels": ([GOOD, GOOD, np.empty((0, 3))], "series 2 has 0 channels"),
    "NaN": ([GOOD, np.full((2, 3), np.nan)], "series 1 is NaN throughout"),
    "infinity": ([GOOD, broken(-np.inf)], "series 1, step 4, channel 1 is -inf"),
    "mixed channels": ([GOOD, np.ones((4, 9))], "series 1 has 4 channels, expected 2"),
    "a 3-D series": ([GOOD, np.ones((2, 2, 2))], "series 1 has 3 dimensions"),
    "a number as series": ([GOOD, 3.0], "series 1 is a single number"),
    "a 4-D array": (np.ones((2, 2, 2, 2)), "4 dimension"),
    "a 1-D array": (np.ones(4), "1 dimension"),
    "strings": (["abc", "de"], "series 0 has dtype"),
    "one string": ("abc", "is of type str"),
    "ragged channels": ([GOOD, [[1.0, 2.0], [1.0]]], "series 1 is not rectangular"),
}
ONE_SERIES = {
    "empty": (np.empty((2, 0)), "0 steps"),
    "an empty list": ([], "0 steps"),
    "NaN": (np.full((2, 3), np.nan), "series 0 is NaN throughout"),
    "infinity": (broken(np.inf), "step 4, channel 1 is inf"),
    "three axes": (np.ones((2, 2, 2)), "3 dimensions"),
    "a number": (3.0, "single number"),
    "a string": ("abc", "dtype"),
    "ragged": ([[1.0, 2.0], [1.0]], "not rectangular"),
}


# -- series


@pytest.mark.parametrize("function", PAIRWISE)
@pytest.mark.parametrize("kind", BATCHES)
def test_bad_series_are_named_by_their_index(function, kind):
    bad, message = BATCHES[kind]
    with pytest.raises(DataError, match=re.escape(message)):
        function(bad)
    with pytest.raises(DataError, match=re.escape(message)):
        function([GOOD], bad)


@pytest.mark.parametrize("kind", BATCHES)
def test_bad_series_of_y_are_said_to_be_of_y(kind):
    with pytest.raises(DataError, match=r"\bY\b"):
        similarity([GOOD], BATCHES[kind][0])


@pytest.mark.parametrize("kind", ONE_SERIES)
def test_a_bad_series_of_align_is_named_by_its_argument(kind):
    bad, message = ONE_SERIES[kind]
    with pytest.raises(DataError, match=f"'a'.*{message}"):
        align(bad, GOOD)
    with pytest.raises(DataError, match=f"'b'.*{message}"):
        align(GOOD, bad)


@pytest.mark.parametrize("function", PAIRWISE)
def test_x_and_y_must_have_the_same_channels(function):
    with pytest.raises(DataError, match="'X' has 2 channels and 'Y' has 3"):
        function([GOOD], [np.ones((3, 3))])


def test_a_and_b_must_have_the_same_channels():
    with pytest.raises(DataError, match=r"'a' has 2 channels and 'b' has 5: .* the same number\.$"):
        align(GOOD, np.ones((5, 4)))


@pytest.mark.parametrize(("a", "b"), [((2, 5), (7, 2)), ((5, 2), (2, 7)), ((5, 2), (7, 2))])
def test_other_axes_are_suggested_if_the_channels_then_agree(a, b):
    with pytest.raises(DataError, match=r"Is the layout time_first\?"):
        align(np.ones(a), np.ones(b))
    with pytest.raises(DataError, match=r"Is the layout time_first\?"):
        similarity([np.ones(a)], [np.ones(b)])


def test_cost_without_normalising_needs_short_rows():
    long = np.array([[0.5, 0.5], [0.5, 3.0]])
    with pytest.raises(
        DataError, match=r"norm at most 1, but series 1 .* 3\.04138.*normalize=True"
    ):
        similarity([np.full((2, 4), 0.5), long], objective="cost", normalize=False)
    with pytest.raises(DataError, match=r"norm at most 1.*normalize=True"):
        align(np.full((2, 4), 0.5), long, objective="cost", normalize=False)


# -- bands


@pytest.mark.parametrize("band", [-1, True, False, 2.0, np.float64(3), "5", "full", [1], (2,)])
def test_bands_are_none_an_int_or_itakura(band):
    for call in (
        lambda: align(GOOD, GOOD, band=band),
        lambda: similarity([GOOD], band=band),
        lambda: aligned_products([GOOD], band=band),
        lambda: AlignmentSettings(band=band),
    ):
        with pytest.raises(ValueError, match=f"'band'.*Got {re.escape(repr(band))} instead"):
            call()


@pytest.mark.parametrize("radius", [np.int64(2), np.uint8(2)])
def test_integers_of_numpy_are_radii(radius):
    x = np.random.default_rng(0).normal(size=(4, 2, 9))
    np.testing.assert_array_equal(similarity(x, band=radius), similarity(x, band=2))


@pytest.mark.parametrize("slope", [0.99, 0, -2, np.nan, np.inf, "2", None])
def test_max_slope_is_a_finite_number_from_one(slope):
    with pytest.raises(ValueError, match=f"'max_slope'.*Got {re.escape(repr(slope))} instead"):
        Itakura(slope)


@pytest.mark.parametrize("function", PAIRWISE)
@pytest.mark.parametrize("n_jobs", [1, 2])
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_a_band_without_a_path_names_the_pair_and_its_lengths(function, n_jobs, dtype):
    x = [np.ones((1, 3))] * 7
    y = [np.ones((1, 3))] * 20 + [np.ones((1, 5))] + [np.ones((1, 3))] * 5
    message = (
        r"Itakura\(max_slope=1\.0\).*series [0-6] of X \(length 3\).*series 20 of Y \(length 5\)"
    )
    with pytest.raises(DataError, match=message):
        function(x, y, band=Itakura(1.0), n_jobs=n_jobs, dtype=dtype)


def test_a_band_without_a_path_is_found_in_the_fused_reductions(rng):
    how = AlignmentSettings(band=Itakura(1.0))
    x, y = as_series([rng.normal(size=(2, 3))]), as_series([rng.normal(size=(2, 5))])
    for call in (
        lambda: Aligner(y, how).grouped(x, np.ones((1, 1))),
        lambda: Aligner(y, how).projected(x, np.eye(2)[None]),
    ):
        with pytest.raises(DataError, match=r"series 0 of X \(length 3\).*series 0 of Y"):
            call()


def test_a_band_without_a_path_names_the_series_of_align():
    with pytest.raises(DataError, match=r"no path between a \(length 3\) and b \(length 5\)"):
        align(np.ones((1, 3)), np.ones((1, 5)), band=Itakura(1.0))


# -- settings


@pytest.mark.parametrize("objective", ["Affinity", "", None, 1, ["cost"]])
def test_unknown_objectives_are_answered_with_the_known_ones(objective):
    with pytest.raises(ValueError, match=r"'objective'.*'affinity', 'cost'.*Got"):
        similarity([GOOD], objective=objective)
    with pytest.raises(ValueError, match=r"'objective'.*'affinity', 'cost'.*Got"):
        align(GOOD, GOOD, objective=objective)


@pytest.mark.parametrize("dtype", ["float16", "int32", "double precision", object(), np.complex128])
def test_unknown_precisions_are_answered_with_the_known_ones(dtype):
    with pytest.raises(ValueError, match=r"'dtype'.*'float64', 'float32'.*Got"):
        similarity([GOOD], dtype=dtype)


@pytest.mark.parametrize("dtype", [np.float32, np.dtype("float32"), "f4"])
def test_precisions_may_be_given_as_numpy_dtypes(dtype):
    assert similarity([GOOD], dtype=dtype).dtype == np.float32


def test_distances_need_an_objective_that_is_one():
    x = as_series([GOOD])
    with pytest.raises(ValueError, match="'affinity'"):
        Aligner(x, AlignmentSettings()).distances(x)


@pytest.mark.parametrize("shape", [(3, 3), (2,), (2, 3), (1, 2, 2), ()])
def test_metrics_of_a_wrong_shape_are_answered_with_the_right_one(shape):
    with pytest.raises(ValueError, match=rf"'metric'.*\(2, 2\).*{re.escape(str(shape))}"):
        similarity([GOOD], metric=np.ones(shape))


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_metrics_must_be_finite(value):
    with pytest.raises(ValueError, match=r"'metric'.*finite"):
        similarity([GOOD], metric=[[1.0, 0.0], [0.0, value]])


@pytest.mark.parametrize("metric", ["identity", [[1.0, 2.0], [3.0]]])
def test_metrics_that_are_no_arrays_are_named(metric):
    with pytest.raises(ValueError, match="'metric'"):
        similarity([GOOD], metric=metric)


def test_weights_need_one_column_per_landmark():
    x, y = as_series([GOOD]), as_series([GOOD, GOOD])
    with pytest.raises(ValueError, match=r"'weights'.*\(groups, 2\).*\(1, 3\)"):
        Aligner(y, AlignmentSettings()).grouped(x, np.ones((1, 3)))


def test_stacks_of_metrics_need_square_ones():
    x = as_series([GOOD])
    with pytest.raises(ValueError, match=r"'metrics'.*\(metrics, 2, 2\).*\(2, 2\)"):
        Aligner(x, AlignmentSettings()).projected(x, np.eye(2))


def test_the_number_of_threads_is_checked():
    with pytest.raises(ValueError, match="n_jobs must not be 0: 1 is one thread"):
        similarity([GOOD], n_jobs=0)
    with pytest.raises(TypeError, match="n_jobs must be a whole number or None, got 'all'"):
        similarity([GOOD], n_jobs="all")


def test_an_unknown_instruction_set_is_answered_with_the_available_ones(monkeypatch):
    monkeypatch.setenv("SLTS_ISA", "mmx")
    names = ", ".join(target.name for target in available_targets())
    for call in (lambda: similarity([GOOD]), lambda: align(GOOD, GOOD)):
        with pytest.raises(ValueError, match=rf"SLTS_ISA.*{names}.*'mmx'"):
            call()


def test_an_empty_instruction_set_means_the_best(monkeypatch):
    monkeypatch.setenv("SLTS_ISA", "")
    assert similarity([GOOD]).shape == (1, 1)


# -- products beyond the range of floats

OVERFLOWING = """
import numpy as np, slts
a, b = np.full((1, 2), {value}), np.full((1, 4), -{value})
try:
    slts.{call}
except slts.DataError as error:
    assert "normalize=True" in str(error)
else:
    raise SystemExit("not refused")
"""


@pytest.mark.parametrize(
    ("value", "call"),
    [
        ("1e200", "align(a, b, normalize=False)"),
        ("1e200", "aligned_products([a], [b], normalize=False)"),
        ("1e30", "aligned_products([a], [b], normalize=False, dtype='float32')"),
    ],
)
def test_overflowing_affinities_are_refused_and_corrupt_no_memory(value, call):
    code = OVERFLOWING.format(value=value, call=call)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr


# -- edges


def test_flags_of_numpy_are_flags():
    assert align(GOOD, GOOD, normalize=np.True_).length == align(GOOD, GOOD).length


def test_no_series_have_no_row_that_is_too_long():
    empty = as_series([GOOD])[:0]
    assert similarity(empty, objective="cost", normalize=False).shape == (0, 0)


def test_errors_of_data_are_value_errors():
    assert issubclass(slts.DataError, ValueError)


def test_a_path_that_does_not_fit_in_memory_is_an_error_before_it_is_allocated(monkeypatch):
    monkeypatch.setattr("slts.alignment.cpu.usable_memory", lambda: 10**9)
    long = np.sin(np.arange(100_000.0))
    message = "path of two series of 100000 and 100000 steps needs 2.5 GB of memory.*1 GB"
    with pytest.raises(MemoryError, match=message):
        slts.align(long, long)
    with pytest.raises(MemoryError, match=message):
        slts.aligned_products([long], [long])
