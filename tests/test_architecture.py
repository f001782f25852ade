"""Imports point one way: a part imports only parts that stand above it."""

import ast
from pathlib import Path

import pytest

import slts

ROOT = Path(slts.__file__).parent

# What each part may import.
FOUNDATION = {"_typing", "errors", "extras", "whole_files"}
ALLOWED = {
    "_typing": set(),
    "errors": set(),
    "extras": set(),
    "whole_files": set(),
    "execution": set(),
    "series": FOUNDATION,
    "alignment": FOUNDATION | {"series", "execution"},
    "models": FOUNDATION | {"series", "alignment"},
    "landmarks": FOUNDATION | {"series", "alignment", "execution"},
    "learning": FOUNDATION | {"series", "alignment", "execution"},
    "estimators": FOUNDATION
    | {"models", "series", "alignment", "execution", "landmarks", "learning", "files"},
    "datasets": FOUNDATION | {"series"},
    "aeon": FOUNDATION | {"estimators"},
    "explanation": FOUNDATION | {"models", "series", "alignment", "estimators"},
    "guarantees": FOUNDATION
    | {"models", "series", "alignment", "execution", "landmarks", "learning", "estimators"},
    "persistence": FOUNDATION | {"models", "series", "alignment", "learning", "estimators"},
    "plots": FOUNDATION
    | {"models", "series", "alignment", "estimators", "explanation", "guarantees"},
    "report": FOUNDATION
    | {
        "models",
        "series",
        "alignment",
        "execution",
        "learning",
        "estimators",
        "explanation",
        "guarantees",
    }
    | {"persistence"},
    "files": FOUNDATION | {"series", "datasets"},
    "cli": FOUNDATION
    | {"series", "execution", "learning", "estimators", "datasets", "files", "explanation"}
    | {"guarantees", "persistence", "plots", "report"},
    "__main__": {"cli"},
}


def part_of(module: str) -> str:
    names = module.split(".")
    return names[1] if len(names) > 1 else ""


def imported_parts(path: Path) -> set[str]:
    parts = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            modules = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import"
            modules = [node.module]
            if node.module == "slts":
                names = {alias.name for alias in node.names} - {"__version__"}
                modules = [f"slts.{name}" for name in names]
        else:
            continue
        parts |= {part_of(module) for module in modules if module.split(".")[0] == "slts"}
    return parts


def sources() -> list[Path]:
    return sorted(path for path in ROOT.rglob("*.py") if path != ROOT / "__init__.py")


@pytest.mark.parametrize("path", sources(), ids=lambda path: path.relative_to(ROOT).as_posix())
def test_a_part_imports_only_what_stands_above_it(path):
    part = path.relative_to(ROOT).parts[0].removesuffix(".py")
    assert part in ALLOWED, f"{part} is not in the table: say what it may import"
    forbidden = imported_parts(path) - ALLOWED[part] - {part}
    assert not forbidden, f"{part} must not import {sorted(forbidden)}"


def test_the_check_sees_forbidden_imports(tmp_path):
    file = tmp_path / "module.py"
    file.write_text("def f():\n    from slts.plots import plot_alignment\n    import slts.series\n")
    assert imported_parts(file) == {"plots", "series"}


def test_every_package_opens_with_a_map_of_its_modules():
    for init in ROOT.rglob("__init__.py"):
        if init.parent == ROOT:
            continue
        text = ast.get_docstring(ast.parse(init.read_text(encoding="utf-8"))) or ""
        modules = {path.name for path in init.parent.glob("*.py")} - {"__init__.py"}
        missing = {name for name in modules if name.removesuffix(".py") not in text}
        assert not missing, f"{init.relative_to(ROOT)} does not name {sorted(missing)}"


def test_public_names_are_importable():
    assert len(set(slts.__all__)) == len(slts.__all__)
    assert all(hasattr(slts, name) for name in slts.__all__)
