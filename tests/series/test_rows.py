"""normalize_rows: unit rows at every magnitude."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from slts.series import SeriesBatch, normalize_rows

ROWS = hnp.array_shapes(min_dims=2, max_dims=2, max_side=6)


def batch_of(values, names=None):
    values = np.asarray(values, dtype=np.float64)
    return SeriesBatch(values, [0, len(values)], names)


@given(hnp.arrays(np.float64, ROWS, elements=st.floats(allow_nan=False, allow_infinity=False)))
def test_rows_have_unit_norm_or_are_zero(values):
    out = normalize_rows(batch_of(values)).values
    zero = (values == 0).all(axis=1)
    np.testing.assert_array_equal(out[zero], 0.0)
    np.testing.assert_allclose(np.linalg.norm(out[~zero], axis=1), 1.0, rtol=1e-14)
    assert (np.sign(out) * np.sign(values) >= 0).all()


@given(hnp.arrays(np.float64, ROWS, elements=st.floats(-1e6, 1e6).filter(lambda v: abs(v) > 1e-6)))
def test_ordinary_rows_are_divided_by_their_norm_to_the_bit(values):
    norms = np.sqrt(np.einsum("ij,ij->i", values, values))[:, None]
    np.testing.assert_array_equal(normalize_rows(batch_of(values)).values, values / norms)


@pytest.mark.parametrize("scale", [1e-200, 1e200, 5e-324, 1e-310, 1e-154, 4e307])
def test_extreme_rows_do_not_overflow_or_vanish(scale):
    out = normalize_rows(batch_of([[3 * scale, 4 * scale]])).values
    np.testing.assert_allclose(out, [[0.6, 0.8]], rtol=1e-12 if scale > 1e-307 else 1e-2)


def test_lengths_and_names_are_kept_and_the_input_is_unchanged():
    batch = SeriesBatch([[3.0, 4.0], [6.0, 8.0]], [0, 1, 2], ["a", "b"])
    out = normalize_rows(batch)
    np.testing.assert_array_equal(out.offsets, batch.offsets)
    assert out.channel_names == ("a", "b")
    assert not out.values.flags.writeable
    np.testing.assert_array_equal(batch.values, [[3.0, 4.0], [6.0, 8.0]])


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        ([[5e-324, 0.0]], [[1.0, 0.0]]),
        ([[1e300, 1e-300]], [[1.0, 0.0]]),
        ([[3.0], [-0.1], [0.0]], [[1.0], [-1.0], [0.0]]),
    ],
)
def test_rows_of_one_large_entry_keep_only_its_sign(rows, expected):
    np.testing.assert_array_equal(normalize_rows(batch_of(rows)).values, expected)
    assert len(normalize_rows(batch_of(rows)[:0])) == 0
