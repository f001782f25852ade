"""Declarations cover all classifiers, and named sizes must agree."""

import numpy as np
import pytest

import slts
from slts.estimators.parameters import NOTHING, TEXT, at_least
from slts.persistence.declarations import CLASSIFIERS
from slts.persistence.schema import Sizes, Structure, array, tuple_of, where
from tests.persistence.small_models import SMALL, by_name


@pytest.mark.parametrize("estimator", SMALL, ids=by_name)
def test_every_parameter_of_a_classifier_is_declared(estimator):
    assert estimator.get_params().keys() <= estimator.parameter_kinds.keys()


@pytest.mark.parametrize("estimator", SMALL, ids=by_name)
def test_every_fitted_attribute_is_declared_once(estimator, saved):
    model, _ = saved[by_name(estimator)]
    fitted = [name for name in vars(model) if name.endswith("_") and not name.startswith("_")]
    declared = [name for structure in CLASSIFIERS[type(model)] for name in structure.fields]
    assert sorted(declared) == sorted(fitted)


class Example:
    def __init__(self, **attributes):
        vars(self).update(attributes)


EXAMPLE = Structure(
    names=tuple_of(TEXT, "groups"),
    offsets=NOTHING | array("float64", "groups"),
    items=tuple_of(array("float64", "groups", "rank[i]", "rank[i]")),
    sizes={"groups": lambda example, sizes: 2},
)
GOOD = {
    "names": ("a", "b"),
    "offsets": np.zeros(2),
    "items": (np.zeros((2, 3, 3)), np.zeros((2, 1, 1))),
}


def check(structure, **attributes):
    structure.check("", Example(**attributes), Sizes())


def test_agreeing_sizes_are_accepted():
    check(EXAMPLE, **GOOD)
    check(EXAMPLE, **{**GOOD, "offsets": None})


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"names": ("a",)}, r"names must have shape \(groups\), where groups = 2, but .* \(1,\)"),
        ({"names": ("a", 1)}, r"names\[1\] must be text, but is 1"),
        ({"offsets": np.zeros(3)}, "offsets must have shape .groups., where groups = 2"),
        ({"offsets": np.zeros((2, 1))}, "offsets must be None or an array of float64 with 1 axes"),
        ({"offsets": np.zeros(2, int)}, "offsets must be None or an array of float64"),
        ({"items": (np.zeros((2, 3, 2)),)}, r"items\[0\] must have .* rank\[0\] = 3, but has"),
        ({"items": (np.zeros((2, 0, 0)),)}, r"items\[0\] must have shape"),
    ],
)
def test_disagreeing_sizes_are_refused(change, reason):
    with pytest.raises(slts.ModelFileError, match=reason):
        check(EXAMPLE, **{**GOOD, **change})


def test_conditions_and_rules_are_checked():
    def rule(example):
        raise slts.ModelFileError("refused by the rule")

    with pytest.raises(slts.ModelFileError, match="count must be even"):
        check(Structure(count=where(at_least(1), "even", lambda v: v % 2 == 0)), count=3)
    with pytest.raises(slts.ModelFileError, match="refused by the rule"):
        check(Structure(count=at_least(1), rule=rule), count=3)
