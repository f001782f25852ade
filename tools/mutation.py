"""Mutation test: draw small changes of the sources, and count those that make a test fail.

    python -m tools.mutation --seed 1 --count 150

Each mutant runs the tests of its part, without those marked slow, in a fork of this process.
`mutation_equivalent.txt` lists changes that no test can see, with the reason; ``...`` in a line is
any text.
"""

import argparse
import ast
import copy
import math
import os
import random
import re
import resource
import signal
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from importlib.machinery import SourceFileLoader
from itertools import islice
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "src" / "slts"
# Sources, and their tests in the order in which they run.
PARTS = {
    "solvers": ["tests/solvers"],
    "features": ["tests/features", "tests/estimators/test_local.py"],
    "training": [
        "tests/training",
        "tests/estimators/test_probabilities.py",
        "tests/estimators/test_tuning.py",
        "tests/estimators/test_groups.py",
        "tests/estimators/test_local.py",
        "tests/estimators/test_warnings.py",
        "tests/estimators/test_scans.py",
    ],
    "guarantees": ["tests/guarantees"],
    "series": ["tests/series"],
}
EQUIVALENT = Path(__file__).with_name("mutation_equivalent.txt")
# These files compare real numbers, which are equal only by chance: `<` is `<=` there.
REAL_NUMBERS = {"solvers/penalties.py", "solvers/separator.py"}
# Processor time of the tests of one mutant; they take a tenth of it without a mutant.
MOST_SECONDS = 200
# Imported before the forks. The package itself is not: every mutant imports it.
THIRD_PARTY = (
    "hypothesis.extra.numpy", "numpy", "pandas", "scipy.linalg", "scipy.optimize", "scipy.stats",
    "sklearn.model_selection", "sklearn.svm", "sklearn.utils.estimator_checks",
)  # fmt: skip

SWAPPED = {
    ast.Lt: (ast.LtE, ast.GtE), ast.LtE: (ast.Lt, ast.Gt),
    ast.Gt: (ast.GtE, ast.LtE), ast.GtE: (ast.Gt, ast.Lt),
    ast.Eq: (ast.NotEq,), ast.NotEq: (ast.Eq,),
    ast.Is: (ast.IsNot,), ast.IsNot: (ast.Is,),
    ast.In: (ast.NotIn,), ast.NotIn: (ast.In,),
    ast.And: (ast.Or,), ast.Or: (ast.And,),
    ast.BitAnd: (ast.BitOr,), ast.BitOr: (ast.BitAnd,),
    ast.Add: (ast.Sub,), ast.Sub: (ast.Add,), ast.Mult: (ast.Div,), ast.Div: (ast.Mult,),
    ast.FloorDiv: (ast.Mult,), ast.Mod: (ast.FloorDiv,), ast.Pow: (ast.Mult,),
}  # fmt: skip
# Calls whose arguments are messages, and calls that nothing depends on.
MESSAGES = {"warn", "bar", "info", "debug", "progress"}
SILENT = {"info", "debug", "progress"}
# Keywords that assert something, or that allow to save memory or time.
NO_EFFECT = {"strict", "copy", "overwrite_a", "overwrite_b", "check_finite"}
REPRESENTATIONS = {"__repr__", "__str__", "_repr_html_"}
REMOVABLE = ast.AugAssign | ast.Raise | ast.Continue | ast.Break | ast.Delete


@dataclass(frozen=True)
class Mutant:
    """The change `number` of a file; `function` is the outermost function, None at its top."""

    file: str
    number: int
    line: int
    function: str | None
    before: str
    after: str

    @property
    def only_differs_at_equality(self):
        same = self.before.replace("=", "") == self.after.replace("=", "")
        return self.file in REAL_NUMBERS and same

    def __str__(self):
        return f"{self.file} {self.function or '-'}: {self.before}  =>  {self.after}"


def changes_of(node):
    """Yield changed copies of a node, each with one change; None removes a statement."""
    match node:
        case ast.Compare():
            for at, operator in enumerate(node.ops):
                for new in SWAPPED[type(operator)]:
                    yield changed(node, ops=[*node.ops[:at], new(), *node.ops[at + 1 :]])
        case ast.BinOp() | ast.AugAssign() | ast.BoolOp():
            for new in SWAPPED.get(type(node.op), ()):
                yield changed(node, op=new())
        case ast.UnaryOp(op=ast.Not()):
            yield node.operand
        case ast.UnaryOp(op=ast.USub(), operand=operand) if not isinstance(operand, ast.Constant):
            yield operand
        case ast.Constant(value=bool()):
            yield changed(node, value=not node.value)
        case ast.Constant(value=int() | float()) if node.value + 1 != node.value:
            yield changed(node, value=node.value + 1)
        case ast.Return(value=ast.AST()) if not isinstance(node.value, ast.Constant):
            yield changed(node, value=ast.Constant(None))
        case ast.If() | ast.IfExp() | ast.While() if isinstance(
            node.test, ast.Name | ast.Attribute | ast.Call
        ):
            yield changed(node, test=ast.UnaryOp(ast.Not(), node.test))
    is_call = isinstance(node, ast.Expr) and isinstance(node.value, ast.Call)
    is_part = isinstance(node, ast.Assign) and not isinstance(node.targets[0], ast.Name | ast.Tuple)
    if isinstance(node, REMOVABLE) or is_part or (is_call and called(node.value) not in SILENT):
        yield ast.Pass()


def changed(node, **fields):
    other = copy.copy(node)
    for name, value in fields.items():
        setattr(other, name, value)
    return other


def called(node):
    """Return the name of the function that a node calls, if it is a call."""
    function = getattr(node, "func", None)
    return getattr(function, "attr", getattr(function, "id", None))


def sites(node, scope=(), function=None):
    """Yield (owner, field, position in a list, node, qualified name of the outermost function)."""
    for field, value in ast.iter_fields(node):
        if field in {"annotation", "returns", "decorator_list"}:
            continue
        for at, child in enumerate(value if isinstance(value, list) else [value]):
            if not isinstance(child, ast.AST) or left_out(child):
                continue
            # NumPy takes any negative size of a shape for the unknown one.
            if isinstance(child, ast.UnaryOp) and called(node) == "reshape":
                continue
            yield node, field, at if isinstance(value, list) else None, child, function
            inner, name = scope, function
            if isinstance(child, ast.FunctionDef | ast.ClassDef):
                inner = (*scope, child.name)
                if isinstance(child, ast.FunctionDef):
                    name = function or ".".join(inner)
            # What is raised is a message.
            if not isinstance(child, ast.Raise):
                yield from sites(child, inner, name)


def left_out(node):
    match node:
        case ast.JoinedStr() | ast.Assert() | ast.Import() | ast.ImportFrom():
            return True
        case ast.Call():
            return called(node) in MESSAGES
        case ast.FunctionDef():
            return node.name in REPRESENTATIONS
        case ast.If():
            return ast.unparse(node.test) == "TYPE_CHECKING"
        case ast.AnnAssign():
            return "TypeAlias" in ast.unparse(node.annotation)
        case ast.keyword():
            return node.arg in NO_EFFECT
    return False


def changes(tree):
    """Yield every change of a tree: owner, field, position in a list, old, new, function."""
    for owner, field, at, node, function in list(sites(tree)):
        for new in changes_of(node):
            yield owner, field, at, node, ast.copy_location(new, node), function


def mutants_of(path):
    """Return all changes of a file."""
    tree, found, file = ast.parse(path.read_text()), [], path.relative_to(PACKAGE).as_posix()
    for number, (owner, field, at, node, new, function) in enumerate(changes(tree)):
        # A number alone says little: show what it is a part of.
        is_small = isinstance(node, ast.Constant) and isinstance(owner, ast.expr | ast.keyword)
        before = one_line(owner if is_small else node)
        put(owner, field, at, new)
        after = one_line(owner if is_small else new)
        put(owner, field, at, node)
        found.append(Mutant(file, number, getattr(node, "lineno", 0), function, before, after))
    return found


def mutated(mutant):
    """Return the code of a file with one change."""
    tree = ast.parse((PACKAGE / mutant.file).read_text())
    owner, field, at, _, new, _ = next(islice(changes(tree), mutant.number, None))
    put(owner, field, at, new)
    return compile(ast.fix_missing_locations(tree), PACKAGE / mutant.file, "exec")


def put(owner, field, at, node):
    if at is None:
        setattr(owner, field, node)
    else:
        getattr(owner, field)[at] = node


def one_line(node):
    return ast.unparse(node).partition("\n")[0]


def run_pytest(paths):
    options = ["-q", "-x", "-m", "not slow", "-p", "no:cacheprovider", "-p", "no:xdist"]
    options += ["-W", "ignore::pytest.PytestAssertRewriteWarning"]
    return int(pytest.main([*options, *map(str, paths)]))


def in_fork(call):
    """Return the exit status of `call` in a fork, which may use some processor time."""
    pid = os.fork()
    if pid:
        return os.waitpid(pid, 0)[1]
    status = 99
    try:
        resource.setrlimit(resource.RLIMIT_CPU, (MOST_SECONDS, MOST_SECONDS))
        # For mutants that wait for something.
        signal.alarm(10 * MOST_SECONDS)
        for stream in (1, 2):
            os.dup2(os.open(os.devnull, os.O_WRONLY), stream)
        status = call()
    finally:
        os._exit(status)


def passes(part, name=None, code=None):
    """Whether all tests of a part pass; `code` replaces that of the module `name`."""

    def run(folder):
        load = SourceFileLoader.get_code
        SourceFileLoader.get_code = lambda self, other: code if other == name else load(self, other)
        files = [folder] if folder.is_file() else sorted(folder.glob("test_*.py"))
        # Tests that name the module fail first.
        return run_pytest(sorted(files, key=lambda file: str(name) not in file.read_text()))

    return all(in_fork(partial(run, ROOT / folder)) == 0 for folder in PARTS[part])


def survives(mutant):
    """Whether no test fails with the change."""
    name = f"slts.{mutant.file[:-3].replace('/', '.')}"
    return passes(mutant.file.partition("/")[0], name, mutated(mutant))


def wilson(k, n, z=1.96):
    """95% interval of a share."""
    centre, width = (k + z * z / 2), z * math.sqrt(k * (n - k) / n + z * z / 4)
    return (centre - width) / (n + z * z), (centre + width) / (n + z * z)


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--seed", type=int, default=0, help="which mutants are drawn")
    parser.add_argument("--count", type=int, default=150, help="how many mutants are drawn")
    options = parser.parse_args()
    os.chdir(ROOT)
    os.environ["OMP_NUM_THREADS"] = "1"
    for name in THIRD_PARTY:
        import_module(name)
    files = [path for part in PARTS for path in sorted(PACKAGE.glob(f"{part}/*.py"))]
    lines = [line.partition("  # ")[0] for line in EQUIVALENT.read_text().splitlines()]
    known = re.compile("|".join(re.escape(line).replace(re.escape("..."), ".*") for line in lines))
    found = [m for file in files for m in mutants_of(file)]
    possible = [m for m in found if not (m.only_differs_at_equality or known.fullmatch(str(m)))]
    drawn = random.Random(options.seed).sample(possible, options.count)
    failing = [part for part in PARTS if not passes(part)]
    if failing:
        raise SystemExit(f"tests fail without any change: {', '.join(failing)}")
    survivors = 0
    for k, mutant in enumerate(drawn, 1):
        alive = survives(mutant)
        survivors += alive
        print(f"{k} {'SURVIVED' if alive else 'killed'}  line {mutant.line}  {mutant}", flush=True)
    n, killed = len(drawn), len(drawn) - survivors
    low, high = wilson(killed, n)
    print(
        f"{killed} of {n} mutants killed: {killed / n:.1%}, 95% interval {low:.1%} to {high:.1%} "
        f"(seed {options.seed}, drawn from {len(possible)})"
    )


if __name__ == "__main__":
    main()
