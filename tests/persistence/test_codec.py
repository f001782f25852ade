"""Values are decoded as they were encoded; fields must be as annotated; nothing else is stored."""

import datetime
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal, Protocol

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

import slts
from slts._typing import AnyArray, FloatArray, IntArray
from slts.persistence.codec import Codec, conforms, pack, unpack
from tests.persistence.small_models import assert_same_value, with_identifiers


class Weighing(Protocol):
    def total(self) -> float: ...


@dataclass(frozen=True, eq=False)
class Weights:
    values: FloatArray
    scale: float = 1.0

    def __post_init__(self):
        if self.values.ndim != 1:
            raise ValueError(f"values must have one axis, got shape {self.values.shape}")

    def total(self):
        return self.scale * self.values.sum()

    @cached_property
    def largest(self):
        return self.values.max()


@dataclass(frozen=True, eq=False)
class Names:
    names: tuple[str, ...] | None


@dataclass(frozen=True, eq=False, slots=True)
class Model:
    count: int | None
    mask: npt.NDArray[np.bool_]
    several: tuple[Weights | Names, ...]
    weighing: Weighing
    by_name: dict[str, FloatArray]
    anything: Any
    series: slts.SeriesBatch
    gaps: FloatArray = field(metadata={"nan": True})
    length: int = field(init=False, default=3)
    _cache: Any = field(default=None, repr=False)


CLASSES = (Weights, Names, Model, slts.Itakura, slts.SeriesBatch)


def make_model(**changes):
    weights = Weights(np.array([1.0, 2.0]))
    fields = {
        "count": None, "mask": np.array([True, False]), "weighing": weights,
        "several": (weights, Names(("u", "v"))), "by_name": {"first": np.zeros((2, 3))},
        "anything": {3: slts.Itakura(2.0)}, "gaps": np.array([np.nan, np.inf]),
        "series": with_identifiers([np.array([[0, 1], [2, np.nan]]), np.ones((2, 3))]),
    }  # fmt: skip
    return Model(**{**fields, **changes})


def back(value, edit=lambda node: None):
    """Encode a value, edit its node, and decode it from the bytes of a file."""
    codec = Codec(CLASSES)
    node = codec.encode(value, "x")
    edit(node)
    document, stored = unpack(pack({"value": node}, codec.arrays))
    return Codec(CLASSES, stored).decode(document["value"], "x")


scalars = st.none() | st.booleans() | st.integers() | st.floats() | st.text(st.characters())
dtypes = st.sampled_from(["?", "i2", "u8", "f2", "f4", "f8", "<U4"]).map(np.dtype)
tensors = st.sampled_from(["?", "i1", "u2", "<i4", "u8", "f2", "f4", "f8", "<U4", "M8[s]"]).flatmap(
    lambda dtype: arrays.arrays(dtype, arrays.array_shapes(min_dims=0, max_dims=3, min_side=0))
)
values = st.recursive(
    scalars
    | dtypes.flatmap(arrays.from_dtype)
    | tensors
    | tensors.map(np.asfortranarray)
    | st.lists(st.text()).map(lambda texts: np.array(texts, dtype=object))
    | st.builds(range, st.integers(-9, 9), st.integers(-9, 9), st.integers(1, 4)),
    lambda inner: (
        st.lists(inner)
        | st.lists(inner).map(tuple)
        | st.dictionaries(st.text() | st.integers(), inner)
    ),
    max_leaves=8,
)


@given(values)
def test_parameters_of_any_type_are_decoded_as_they_were(value):
    assert_same_value(value, back(value))


def test_a_dataclass_is_decoded_as_it_was():
    model = make_model()
    assert_same_value(model, back(model))
    assert model.series.times.dtype == "datetime64[ns]"


def test_only_public_arguments_of_the_constructor_are_stored():
    weights = Weights(np.ones(3))
    assert weights.largest == 1.0
    assert Codec(CLASSES).encode(weights, "x").keys() == {"class", "values", "scale"}
    assert not {"length", "_cache"} & Codec(CLASSES).encode(make_model(_cache=3), "x").keys()


def test_the_order_of_an_array_is_kept_but_not_its_strides_and_byte_order():
    value = np.asfortranarray(np.arange(6.0).reshape(2, 3))
    assert back(value).flags.f_contiguous
    assert back(value.T).flags.c_contiguous
    assert_same_value(back(np.arange(9, dtype=">i8")[::2]), np.arange(0, 9, 2))


def test_an_array_that_occurs_twice_is_stored_once():
    values, codec = np.arange(4.0), Codec(CLASSES)
    # Arrays that are freed at once: the next one may get their memory.
    nodes = [codec.encode((values + k)[::-1], "x") for k in range(3)]
    assert [node["array"] for node in nodes] == ["x", "x+", "x++"]
    first, second, third = back([Weights(values), Weights(values), Weights(values.copy())])
    assert first.values is second.values is not third.values


@pytest.mark.parametrize("value", [
    object(), print, {1, 2}, b"bytes", 1j, np.complex128(1), np.longdouble(1), np.array([1j]),
    np.array([datetime.date(2020, 1, 1)], dtype=object), np.ma.masked_array([1.0]),
    np.array([b"x"]), np.zeros(2, dtype=[("a", "f8")]), slts.SLTSClassifier(),
    type("Weights", (), {})(),
], ids=lambda value: type(value).__name__)  # fmt: skip
def test_other_values_are_not_stored(value):
    with pytest.raises(TypeError, match=r"^x.*, which files cannot store"):
        Codec(CLASSES).encode(value, "x")


@pytest.mark.parametrize(("annotation", "accepted", "refused"), [
    (int, [1, np.int8(1)], [True, 1.0, "1", None]),
    (float, [1.0, 1, np.float32(1)], [True, "1", None, 1j]),
    (bool, [True, np.bool_(False)], [1, None]),
    (int | None, [None, 3], ["3", 3.5]),
    (Literal["a", "b"], ["a"], ["c", None]),
    (FloatArray, [np.zeros(2), np.zeros((1, 1))], [np.zeros(2, "f4"), [0.0], None]),
    (IntArray, [np.zeros(2, np.int64)], [np.zeros(2), np.zeros(2, np.int32)]),
    (npt.NDArray[np.floating[Any]], [np.zeros(2, "f4")], [np.zeros(2, int)]),
    (AnyArray, [np.array(["x"])], [1.0, [1.0]]),
    (tuple[int, ...], [(), (1, 2)], [[1], (1, "x"), 1]),
    (tuple[int, str], [(1, "x")], [(1,), (1, "x", 2), ("x", 1), 3]),
    (Sequence[float], [[1.0], (1.0,)], [1.0, ["x"]]),
    (dict[str, int], [{}, {"a": 1}], [{1: 1}, {"a": "b"}, [("a", 1)]]),
    (Weights | Names, [Names(None)], [None, slts.Itakura(2.0)]),
    (Weighing, [Weights(np.ones(1))], [None, "x"]),
    (Any, [None, "x"], []),
], ids=str)  # fmt: skip
def test_values_are_compared_with_annotations(annotation, accepted, refused):
    assert all(conforms(value, annotation) for value in accepted)
    assert not any(conforms(value, annotation) for value in refused)


def put(name, value):
    return lambda node: node.__setitem__(name, value)


@pytest.mark.parametrize(("edit", "reason"), [
    (put("scale", "1"), "x.scale must be float"),
    (put("scale", {"float": "nan"}), "x.scale has NaN"),
    (put("surprise", 1), "x has missing or unknown fields: surprise"),
    (lambda node: node.pop("scale"), "x has missing or unknown fields: scale"),
    (put("class", "Popen"), "x has an unknown form or class"),
    (put("class", "Names"), "missing or unknown fields: names, scale, values"),
    (put("values", {"array": "nowhere"}), "x.values is not valid: 'nowhere'"),
    (put("values", {"array": "x.values", "dtype": "O"}), "x.values is not valid"),
    (put("values", {"array": "x.values", "dtype": "<M8[ns]"}), "x.values must be .*float64"),
    (put("values", {"numpy": ["O", 1]}), "x.values has an unknown form"),
    (put("values", {"numpy": ["<U99999999", "x"]}), "x.values must be .*float64"),
    (put("values", {"range": [0, 3, 0]}), "x.values is not valid: range"),
    (put("values", {"range": [0, 2**62, 1]}), "x.values must be .*float64"),
    (put("values", {"dict": [[{"tuple": [[]]}, 1]]}), "x.values is not valid: unhashable"),
])  # fmt: skip
def test_edited_nodes_are_refused_with_the_path(edit, reason):
    with pytest.raises(slts.ModelFileError, match=reason):
        back(Weights(np.ones(2)), edit=edit)


def test_errors_name_the_path_and_what_is_expected():
    def exchange(node):
        node["several"]["tuple"][0]["values"]["array"] = "x.by_name.0"

    with pytest.raises(slts.ModelFileError, match=r"^x.several.0 is not valid: .* one axis"):
        back(make_model(), edit=exchange)
    with pytest.raises(slts.ModelFileError, match=r"^x.count must be int \| None, got 'many'"):
        back(make_model(), edit=put("count", "many"))
    with pytest.raises(slts.ModelFileError, match=r"^x.mask must be .*bool.*, got int64"):
        back(make_model(mask=np.arange(3)))


@pytest.mark.parametrize("number", [np.nan, np.inf])
def test_numbers_are_finite_unless_the_field_allows_others(number):
    for value, name in (
        (Weights(np.array([0.0, number])), "values"),
        (Weights(np.ones(1), number), "scale"),
        (make_model(anything=[number]), "anything"),
        (make_model(by_name={"a": np.array(number)}), "by_name"),
    ):
        with pytest.raises(slts.ModelFileError, match=f"^x.{name} has NaN or infinite values"):
            back(value)
    assert_same_value(back(make_model(gaps=np.array([number]))).gaps, np.array([number]))
