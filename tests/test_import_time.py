"""Importing slts is cheap, and no module of slts imports an optional package by itself."""

import ast
from pathlib import Path

import pytest

import slts
from tests.data import run_python

HEAVY = [
    "aeon", "cupy", "dask", "distributed", "IPython", "matplotlib", "narwhals", "numba", "pandas",
    "polars", "pooch", "pyarrow", "rich", "safetensors", "sktime", "tqdm",
]  # fmt: skip
NEVER_BY_SCIKIT_LEARN = ["aeon", "dask", "distributed", "matplotlib", "numba", "polars", "sktime"]
# scikit-learn may import some of these where they are installed, so sys.modules alone cannot tell.
PROGRAM = f"""
import builtins, sys

plain_import, imports = builtins.__import__, set()

def watched(name, scope=None, *rest):
    importer = (scope or {{}}).get("__name__", "")
    if importer.partition(".")[0] == "slts" and name.partition(".")[0] in {HEAVY}:
        imports.add(f"{{importer}} imports {{name}}")
    return plain_import(name, scope, *rest)

builtins.__import__ = watched
from slts import *
print(*sorted(imports))
print(*set({NEVER_BY_SCIKIT_LEARN}) & set(sys.modules))
"""


def test_importing_slts_imports_no_other_package():
    program = "import sys, slts; print(*{'numpy', 'scipy', 'sklearn'} & set(sys.modules))"
    assert run_python(program) == "\n"


@pytest.mark.slow
def test_public_names_import_no_heavy_module_themselves_or_indirectly():
    assert run_python(PROGRAM) == "\n\n"


@pytest.mark.slow
def test_parts_are_attributes_without_an_import_of_their_own():
    program = "import slts; print(slts.tables.__name__, slts.plots.__name__, slts.report.__name__)"
    assert run_python(program) == "slts.tables slts.plots slts.report\n"


def test_type_checkers_see_the_public_names_where_they_come_from():
    tree = ast.parse(Path(slts.__file__).read_text(encoding="utf-8"))
    block = next(node for node in tree.body if isinstance(node, ast.If))
    names = [(alias.name, node.module) for node in block.body for alias in node.names]
    imported = {name: module.removeprefix("slts").removeprefix(".") for name, module in names}
    parts = dict.fromkeys(("datasets", "tables"), "")
    assert (imported, sorted(imported)) == (slts._PUBLIC | parts, sorted(slts.__all__))


def test_dir_lists_what_users_call():
    parts = {"__version__", "guarantees", "persistence", "plots", "report"}
    assert set(dir(slts)) == parts | set(slts.__all__)


def test_an_unknown_name_is_an_attribute_error():
    assert not hasattr(slts, "nonsense")
