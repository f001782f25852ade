"""Values of the closed set are decoded as they were encoded; other values are refused."""

import dataclasses
import datetime
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

import slts
from slts.persistence.codec import Decoder, Encoder
from slts.persistence.container import dump_json, parse_json
from slts.persistence.declarations import RECORDS
from tests.persistence.small_models import assert_same_value

DTYPES = ["?", "i1", "u1", "i2", "u2", "<i4", ">i4", "u4", "i8", "u8", "f2", "f4", "<f8", ">f8"]

scalars = (
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**64 - 1)
    | st.floats()
    | st.text(st.characters(), max_size=20)
    | arrays.from_dtype(np.dtype("i2"))
    | arrays.from_dtype(np.dtype("f4"))
    | arrays.from_dtype(np.dtype("f8"))
    | st.text(max_size=5).map(np.str_)
    | st.booleans().map(np.bool_)
)
numeric = st.sampled_from(DTYPES).flatmap(
    lambda dtype: arrays.arrays(
        dtype,
        arrays.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=3),
        elements=(
            {"allow_nan": False, "allow_infinity": False} if np.dtype(dtype).kind == "f" else None
        ),
    )
)
texts = st.lists(st.text(st.characters(exclude_characters="\0"), max_size=9), max_size=4)
values = st.recursive(
    scalars
    | numeric
    | numeric.map(np.asfortranarray)
    | texts.map(lambda t: np.array(t, dtype="<U12"))
    | texts.map(lambda t: np.array(t, dtype=object))
    | st.builds(range, st.integers(-9, 9), st.integers(-9, 9), st.integers(1, 4)),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.lists(inner, max_size=3).map(tuple)
        | st.dictionaries(st.text(max_size=5) | st.integers(-5, 5), inner, max_size=3)
    ),
    max_leaves=8,
)


def back(value):
    encoder = Encoder()
    node = parse_json(dump_json(encoder.encode(value, "x")))
    decoder = Decoder(encoder.tensors)
    result = decoder.decode(node, "x")
    decoder.finish()
    return result


@given(values)
def test_values_are_decoded_as_they_were(value):
    assert_same_value(*map(comparable, (value, back(value))))


def comparable(value):
    """The same value with NaN replaced by text, because NaN is not equal to itself."""
    if isinstance(value, list | tuple):
        return type(value)(map(comparable, value))
    if isinstance(value, dict):
        return {key: comparable(item) for key, item in value.items()}
    if isinstance(value, float | np.floating) and math.isnan(value):
        return f"{type(value).__name__} NaN"
    return value


def test_the_order_of_an_array_is_kept():
    value = np.asfortranarray(np.arange(6.0).reshape(2, 3))
    assert back(value).flags.f_contiguous
    assert back(np.ascontiguousarray(value)).flags.c_contiguous


def test_a_repeated_array_is_stored_once():
    encoder = Encoder()
    encoder.encode(np.broadcast_to(np.eye(3), (50, 3, 3)), "x")
    assert encoder.tensors["x"].shape == (3, 3)
    assert back(np.broadcast_to(np.eye(3), (50, 3, 3))).shape == (50, 3, 3)


def test_series_keep_their_names():
    batch = slts.SeriesBatch(np.arange(10.0).reshape(5, 2), [0, 2, 5], ["a", "b"])
    assert back(batch) == batch


def test_a_shared_record_stays_shared():
    shared, other = slts.Itakura(3.0), slts.Itakura(3.0)
    first, second, third = back(({"a b": shared}, [shared], other))
    assert first["a b"] is second[0]
    assert first["a b"] == third
    assert first["a b"] is not third


@pytest.mark.parametrize("name", RECORDS)
def test_a_declaration_lists_every_field_of_its_dataclass(name):
    kind, structure = RECORDS[name]
    assert list(structure.fields) == [field.name for field in dataclasses.fields(kind)]


ENDLESS: list = []
ENDLESS.append(ENDLESS)


@pytest.mark.parametrize(
    "value",
    [
        object(), print, {1, 2}, b"bytes", 1j, 2**64, -(2**63) - 1, np.complex128(1), "x" * 70_000,
        np.longdouble(1), np.array([1j]), np.array(["2020"], dtype="datetime64[Y]"),
        np.array([datetime.date(2020, 1, 1)], dtype=object), np.ma.masked_array([1.0]),
        np.array([b"x"]), np.array([["a"]]), ENDLESS, slts.SLTSClassifier(),
        np.zeros(2, dtype=[("a", "f8")]),
    ],
    ids=lambda value: type(value).__name__,
)  # fmt: skip
def test_other_values_are_refused(value):
    with pytest.raises(TypeError, match=r"^x"):
        Encoder().encode(value, "x")
