"""The architecture: which part may import which, no cycles, no private names of other parts."""

import ast
import re
from collections import defaultdict
from functools import cache
from pathlib import Path

import slts

ROOT = Path(slts.__file__).parent

# What each part may import: series -> alignment -> features -> training -> estimators -> the rest.
# Solvers know arrays only.
FOUNDATION = {"_typing", "errors", "extras", "atomic_files", "quantities"}
# `as_series` reads data frames as tables do.
SERIES = FOUNDATION | {"series", "tables"}
ALIGNMENT = SERIES | {"execution", "alignment"}
FEATURES = ALIGNMENT | {"solvers", "features"}
TRAINING = FEATURES | {"training"}
FITTED = FEATURES | {"estimators"}
ALLOWED = {
    **{name: set() for name in FOUNDATION},
    "quantities": {"_typing"},
    "execution": {"quantities"},
    "series": SERIES,
    "datasets": SERIES,
    "tables": SERIES | {"datasets", "execution"},
    "alignment": ALIGNMENT,
    "solvers": FOUNDATION | {"execution"},
    "features": FEATURES,
    "training": TRAINING,
    "estimators": TRAINING,
    "aeon": FOUNDATION | {"estimators"},
    "sktime": FOUNDATION | {"estimators", "series"},
    "guarantees": FITTED,
    "persistence": FITTED,
    "plots": FITTED | {"guarantees"},
    "report": FITTED | {"guarantees", "persistence"},
    "cli": FITTED
    | {"datasets", "training", "guarantees", "persistence", "plots", "report", "__init__"},
    "__main__": {"cli"},
}


@cache
def sources() -> list[Path]:
    return sorted(ROOT.rglob("*.py"))


def part_of(path: Path) -> str:
    return path.relative_to(ROOT).parts[0].removesuffix(".py")


def module_of(path: Path) -> str:
    parts = ("slts", *path.relative_to(ROOT).with_suffix("").parts)
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


@cache
def tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


@cache
def known_modules() -> set[str]:
    return {module_of(source) for source in [*sources(), *ROOT.rglob("*.pyi")]}


@cache
def imported_modules(path: Path) -> set[str]:
    """Modules of ours that a file imports anywhere, also inside functions and TYPE_CHECKING."""
    known, modules = known_modules(), set()
    for node in ast.walk(tree(path)):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import"
            inner = [f"{node.module}.{alias.name}" for alias in node.names]
            names = [name if name in known else node.module for name in inner]
        else:
            continue
        modules |= {name for name in names if name == "slts" or name.startswith("slts.")}
    return modules


def imported_parts(path: Path) -> set[str]:
    return {name.split(".")[1] if "." in name else "__init__" for name in imported_modules(path)}


def test_a_part_imports_only_what_stands_above_it():
    forbidden = {}
    for path in sources():
        if path == ROOT / "__init__.py":
            continue
        part = part_of(path)
        assert part in ALLOWED, f"{part} is not in the table: say what it may import"
        version_only = {"__init__"} if imports_version_only(path) else set()
        forbidden[str(path)] = imported_parts(path) - ALLOWED[part] - {part} - version_only
    assert not any(forbidden.values()), {path: names for path, names in forbidden.items() if names}


def imports_version_only(path: Path) -> bool:
    return all(
        {alias.name for alias in node.names} <= {"__version__"}
        for node in ast.walk(tree(path))
        if isinstance(node, ast.ImportFrom) and node.module == "slts"
    )


def test_the_check_sees_forbidden_imports(tmp_path):
    file = tmp_path / "module.py"
    file.write_text("def f():\n    from slts.plots import plot_alignment\n    import slts.series\n")
    assert imported_parts(file) == {"plots", "series"}


def cycle(graph: dict[str, set[str]]) -> list[str]:
    """Some cycle of a graph, or nothing."""
    done: set[str] = set()

    def visit(name: str, way: list[str]) -> list[str]:
        if name in way:
            return way[way.index(name) :]
        if name in done:
            return []
        for other in graph.get(name, ()):
            if circle := visit(other, [*way, name]):
                return circle
        done.add(name)
        return []

    return next((circle for name in graph if (circle := visit(name, []))), [])


def test_modules_do_not_import_each_other_in_a_circle():
    graph = {module_of(path): imported_modules(path) - {"slts"} for path in sources()}
    del graph["slts"]
    circle = cycle(graph)
    assert not circle, " -> ".join(circle)


def test_the_check_sees_a_circle():
    assert cycle({"a": {"b"}, "b": {"c"}, "c": {"a"}, "d": {"a"}})
    assert not cycle({"a": {"b", "c"}, "b": {"c"}, "c": set()})


# Private names that Python or scikit-learn asks for.
GRANTED = {"_replace", "_asdict", "_getframe", "_sklearn_output_config"}
# Where a text defines private names: functions, classes, variables, fields, keywords, attributes.
DEFINITIONS = re.compile(r"(?:def |class |self\.|cls\.|^\s*|[(,]\s*)(_[a-zA-Z]\w*)", re.MULTILINE)
NAMED_ATTRIBUTES = re.compile(r"(?:__slots__|setattr|self\.__dict__).*")
# Functions that read an attribute by its name; the last ones read it in a dict of attributes.
READERS = {"getattr", "hasattr", "delattr", "setdefault", "get", "pop"}


def private_names(names: list[str]) -> set[str]:
    return {name for name in names if name.startswith("_") and not name.startswith("__")}


def private_definitions(text: str) -> set[str]:
    """Private names that a module defines."""
    quoted = re.findall(r"[\"'](_\w+)", "".join(NAMED_ATTRIBUTES.findall(text)))
    return private_names(DEFINITIONS.findall(text) + quoted)


def is_own(node: ast.Attribute) -> bool:
    """Whether an expression is an attribute of `self` or `cls`."""
    return isinstance(node.value, ast.Name) and node.value.id in ("self", "cls")


def called(node: ast.expr) -> str:
    """Return the last name of an expression such as `a.b`."""
    return getattr(node, "attr", getattr(node, "id", ""))


def texts(nodes: list[ast.expr]) -> list[str]:
    """Return the texts among some expressions."""
    values = [node.value for node in nodes if isinstance(node, ast.Constant)]
    return [value for value in values if isinstance(value, str)]


def reads_attributes(node: ast.expr) -> bool:
    """Whether an expression is `x.__dict__` or `vars(x)`."""
    is_vars = isinstance(node, ast.Call) and called(node.func) == "vars"
    return is_vars or called(node) == "__dict__"


def imports_from_other_part(module: str, part: str) -> bool:
    return module.startswith("slts.") and module.split(".")[1] != part


def read_privately(module: ast.Module, part: str, defined: set[str]) -> set[str]:
    """Private names of other parts that a module reads."""
    names: list[str] = []
    for node in ast.walk(module):
        if isinstance(node, ast.Attribute) and not is_own(node):
            names.append(node.attr)
        elif isinstance(node, ast.Call) and called(node.func) in READERS:
            names += texts(node.args)
        elif isinstance(node, ast.Subscript) and reads_attributes(node.value):
            names += texts([node.slice])
        elif isinstance(node, ast.ImportFrom) and imports_from_other_part(node.module or "", part):
            names += [alias.name for alias in node.names]
    return private_names(names) - defined - GRANTED


def test_no_part_reads_private_names_of_another():
    defined = defaultdict(set)
    for path in sources():
        defined[part_of(path)] |= private_definitions(path.read_text(encoding="utf-8"))
    reads = {
        path.relative_to(ROOT).as_posix(): names
        for path in sources()
        if (names := read_privately(tree(path), part_of(path), defined[part_of(path)]))
    }
    assert not reads


def test_the_check_sees_private_reads():
    module = ast.parse(
        "from slts.series import _hidden\nmodel._secret\nself._own\ngetattr(model, '_other')\n"
        "model._mine\nmodel.__dict__['_a']\nvars(model)['_b']\nmodel.__dict__.setdefault('_c', 0)"
    )
    expected = {"_hidden", "_secret", "_other", "_a", "_b", "_c"}
    assert read_privately(module, "cli", {"_mine"}) == expected


def test_the_check_sees_private_definitions():
    text = (
        "model.__dict__['_read'] = model._stored = 1\nprint('_text')\n"
        "class A:\n    __slots__ = ('_slot',)\n    _field: int\nsetattr(a, '_set', 1)\n"
        "self.__dict__['_kept'] = 1\ndef _function(a, _argument): pass"
    )
    expected = {"_slot", "_field", "_set", "_kept", "_function", "_argument"}
    assert private_definitions(text) == expected


def fitted_attributes_stored(module: ast.Module) -> set[str]:
    """Fitted attributes, such as `coef_`, that a module stores in another object."""
    return {
        node.attr
        for node in ast.walk(module)
        if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store)
        if node.attr.endswith("_") and not node.attr.startswith("_") and not is_own(node)
    }


def test_only_estimators_change_fitted_models():
    stored = {
        path.relative_to(ROOT).as_posix(): names
        for path in sources()
        if part_of(path) != "estimators" and (names := fitted_attributes_stored(tree(path)))
    }
    assert not stored


def test_the_check_sees_changed_models():
    module = ast.parse("model.coef_ = 1\nself.own_ = 2\nmodel.name = 3\nmodel.coef_.T")
    assert fitted_attributes_stored(module) == {"coef_"}


def test_every_package_opens_with_a_map_of_its_modules():
    for init in ROOT.rglob("__init__.py"):
        if init.parent == ROOT:
            continue
        text = ast.get_docstring(tree(init)) or ""
        modules = {path.name for path in init.parent.glob("*.py")} - {"__init__.py"}
        missing = {name for name in modules if name.removesuffix(".py") not in text}
        assert not missing, f"{init.relative_to(ROOT)} does not name {sorted(missing)}"
        gone = set(re.findall(r"^(\w+\.py)\b", text, re.MULTILINE)) - modules
        assert not gone, f"{init.relative_to(ROOT)} names {sorted(gone)}"
