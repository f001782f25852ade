"""Mutation test: draw small changes of the sources, and count those that make a test fail.

    python -m tests.mutation --seed 1 --count 150

A first run of the tests records which tests call which function. Each mutant then runs, in a fork
of this process, the tests that call the changed function, those of its own part first. Tests marked
slow are left out. `mutation_equivalent.txt` lists changes that no test can see, with the reason.
"""

# ruff: noqa: T201
import argparse
import ast
import copy
import json
import math
import os
import random
import resource
import signal
import sys
import tempfile
import threading
import time
import traceback
from collections import defaultdict
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from importlib.machinery import SourceFileLoader
from itertools import islice
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "src" / "slts"
# Sources, and the tests that run first on their mutants.
PARTS = {
    "learning": "tests/learning",
    "training": "tests/training",
    "guarantees": "tests/guarantees",
    "series": "tests/series",
    "explanation.py": "tests/test_explanation.py",
}
TESTS = [*PARTS.values(), "tests/models", "tests/estimators"]
EQUIVALENT = Path(__file__).with_name("mutation_equivalent.txt")
# Processor time of the tests of its own part for one mutant, and of others.
MOST_SECONDS = 10.0
# Seconds after which a mutant that waits for something is stopped.
MOST_WAITING = 1200
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


def called(call):
    return getattr(call.func, "attr", getattr(call.func, "id", None))


def sites(node, scope=(), function=None):
    """Yield (owner, field, position in a list, node, qualified name of the outermost function)."""
    for field, value in ast.iter_fields(node):
        if field in {"annotation", "returns", "decorator_list"}:
            continue
        for at, child in enumerate(value if isinstance(value, list) else [value]):
            if not isinstance(child, ast.AST) or left_out(child):
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


class Recorder:
    """Records for every test its duration and the functions of the package that it calls."""

    def __init__(self):
        self.seconds, self.calls, self._now = {}, defaultdict(set), set()
        self._prefix = f"{PACKAGE}{os.sep}"
        self._set_up = defaultdict(set)

    def trace(self, frame, _event, _argument):
        code = frame.f_code
        if code.co_filename.startswith(self._prefix):
            function = code.co_qualname.partition(".<locals>")[0]
            self._now.add((code.co_filename.removeprefix(self._prefix), function))

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_setup(self, item):
        self._now = set()
        result = yield
        # Fixtures of a module run once, for all its tests.
        self._set_up[item.nodeid.partition("::")[0]] |= self._now
        return result

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_call(self, item):
        self._now, begin = set(), time.process_time()
        try:
            return (yield)
        finally:
            self.seconds[item.nodeid] = time.process_time() - begin
            self.calls[item.nodeid] = self._now

    def by_function(self):
        """Return the tests that call each function, and None for those that call any."""
        found = defaultdict(set)
        for test, calls in self.calls.items():
            for file, function in calls | self._set_up[test.partition("::")[0]]:
                found[f"{file} {function}"].add(test)
                found[f"{file} {None}"].add(test)
        return {key: sorted(tests) for key, tests in found.items()}


class Only:
    """Runs the given tests in the given order."""

    def __init__(self, tests):
        self._order = {test: k for k, test in enumerate(tests)}

    def pytest_collection_modifyitems(self, items):
        items[:] = sorted(
            (item for item in items if item.nodeid in self._order),
            key=lambda item: self._order[item.nodeid],
        )


def run_pytest(paths, plugin):
    options = ["-q", "-x", "-m", "not slow", "-p", "no:cacheprovider", "-p", "no:xdist"]
    options += ["-W", "ignore::pytest.PytestAssertRewriteWarning"]
    return int(pytest.main([*options, *paths], plugins=[plugin]))


def record(tests):
    """Run tests once, and return their durations and the tests that call each function."""
    recorder = Recorder()
    threading.settrace(recorder.trace)
    sys.settrace(recorder.trace)
    code = run_pytest(tests, recorder)
    sys.settrace(None)
    if code:
        raise RuntimeError("a test fails without any mutant")
    return {"seconds": recorder.seconds, "tests": recorder.by_function()}


def in_fork(call, seconds=None, output=os.devnull):
    """Return the exit status of `call` in a fork, which may use some processor time."""
    pid = os.fork()
    if pid:
        return os.waitpid(pid, 0)[1]
    status = 99
    try:
        if seconds is not None:
            resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds))
            signal.alarm(MOST_WAITING)
        log = os.open(output, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        os.dup2(log, 1)
        os.dup2(log, 2)
        status = call()
    except BaseException:  # noqa: BLE001 (the fork must end here)
        traceback.print_exc()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status)


def chosen_tests(mutant, recorded):
    """Return tests that call the changed function: some of its own part, and some others."""
    own, seconds = PARTS[mutant.file.partition("/")[0]], recorded["seconds"]
    found = recorded["tests"].get(f"{mutant.file} {mutant.function}", ())
    for wanted in (True, False):
        tests, total = [], 0.0
        for test in sorted(found, key=seconds.get):
            if test.startswith(own) == wanted and total + seconds[test] <= MOST_SECONDS:
                tests.append(test)
                total += seconds[test]
        yield tests, total


def survives(mutant, recorded):
    """Whether all tests pass with the change."""

    def run(tests):
        code, load = mutated(mutant), SourceFileLoader.get_code
        wanted = f"slts.{mutant.file[:-3].replace('/', '.').removesuffix('.__init__')}"
        SourceFileLoader.get_code = lambda self, name: code if name == wanted else load(self, name)
        return run_pytest(sorted({test.partition("::")[0] for test in tests}), Only(tests))

    return all(
        in_fork(partial(run, tests), 30 + 5 * int(seconds)) == 0
        for tests, seconds in chosen_tests(mutant, recorded)
        if tests
    )


def wilson(k, n, z=1.96):
    """95% interval of a share."""
    centre, width = (k + z * z / 2), z * math.sqrt(k * (n - k) / n + z * z / 4)
    return (centre - width) / (n + z * z), (centre + width) / (n + z * z)


def record_into(path, tests=TESTS):
    """Record the tests in a fork, so that this process does not import the package."""
    with tempfile.NamedTemporaryFile() as log:
        if in_fork(lambda: path.write_text(json.dumps(record(tests))) * 0, output=log.name):
            raise SystemExit(Path(log.name).read_text()[-4000:])


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--seed", type=int, default=0, help="which mutants are drawn")
    parser.add_argument("--count", type=int, default=150, help="how many mutants are drawn")
    parser.add_argument("--record", type=Path, help="file that keeps which test calls what")
    options = parser.parse_args()
    os.chdir(ROOT)
    os.environ["OMP_NUM_THREADS"] = "1"
    for name in THIRD_PARTY:
        import_module(name)
    files = [path for part in PARTS for path in sorted(PACKAGE.glob(f"{part}/*.py"))]
    files += [PACKAGE / part for part in PARTS if part.endswith(".py")]
    files.remove(PACKAGE / "series" / "preview.py")  # the representation of series in notebooks
    known = {line.partition("  # ")[0] for line in EQUIVALENT.read_text().splitlines()}
    possible = [m for file in files for m in mutants_of(file) if str(m) not in known]
    drawn = random.Random(options.seed).sample(possible, options.count)
    with tempfile.TemporaryDirectory() as folder:
        path = options.record or Path(folder) / "record.json"
        if not path.exists():
            record_into(path)
        recorded = json.loads(path.read_text())
    survivors = 0
    for k, mutant in enumerate(drawn, 1):
        alive = survives(mutant, recorded)
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
