"""Importing slts is cheap: no module of it imports anything heavy by itself."""

import subprocess
import sys

HEAVY = [
    "aeon",
    "cupy",
    "dask",
    "distributed",
    "IPython",
    "matplotlib",
    "narwhals",
    "numba",
    "pandas",
    "polars",
    "pooch",
    "pyarrow",
    "requests",
    "rich",
    "safetensors",
    "tqdm",
]
# scikit-learn may load some of these where they are installed, so sys.modules alone would not tell.
PROGRAM = f"""
import builtins, sys

plain_import, asked = builtins.__import__, set()

def watched(name, scope=None, *rest):
    importer = (scope or {{}}).get("__name__", "")
    if importer.partition(".")[0] == "slts" and name.partition(".")[0] in {HEAVY}:
        asked.add(f"{{importer}} imports {{name}}")
    return plain_import(name, scope, *rest)

builtins.__import__ = watched
import slts
print("\\n".join(sorted(asked)))
"""
NEVER_BY_SCIKIT_LEARN = ["aeon", "dask", "distributed", "matplotlib", "numba", "polars"]


def printed(program):
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout.split("\n")[:-1]


def test_no_module_of_slts_imports_a_heavy_one():
    assert printed(PROGRAM) == [""]


def test_parts_are_reached_without_an_import_of_their_own():
    program = "import slts; print(slts.files.__name__, slts.plots.__name__, slts.report.__name__)"
    assert printed(program) == ["slts.files slts.plots slts.report"]


def test_importing_slts_loads_no_heavy_module_in_a_roundabout_way():
    program = f"import sys, slts; print(*set({NEVER_BY_SCIKIT_LEARN}) & set(sys.modules))"
    assert printed(program) == [""]
