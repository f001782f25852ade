"""Every example in a docstring runs."""

import doctest
import importlib
import pkgutil

import pytest

import slts


def modules() -> list[str]:
    found = pkgutil.walk_packages(slts.__path__, prefix="slts.")
    return sorted(module.name for module in found if not module.name.endswith("_native"))


@pytest.mark.slow
@pytest.mark.parametrize("name", modules())
def test_examples_in_docstrings_give_what_they_say(name):
    if name == "slts.sktime":
        pytest.importorskip("sktime")
    failed, _ = doctest.testmod(importlib.import_module(name), optionflags=doctest.ELLIPSIS)
    assert failed == 0
