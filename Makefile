# `make demo` and `make test` need Python >= 3.11 with pip and a C++20 compiler; they set up .venv.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
SOURCES := pyproject.toml CMakeLists.txt $(wildcard src/slts/*/native/*)
# Options of `make reproduce` and `make accuracy`; interrupted runs continue.
# JOBS=2 ONLY=auslan,table2 SPLITS=3 MARKDOWN=docs/accuracy.md; SLTS_POOL includes the pool.
STUDY_OPTIONS := $(if $(filter-out 0,$(FAST)),--fast) $(if $(JOBS),--jobs $(JOBS)) $(if $(ONLY),--only $(ONLY)) \
  $(if $(SPLITS),--splits $(SPLITS)) $(if $(MARKDOWN),--markdown $(MARKDOWN))
CXX_SOURCES := $(wildcard src/slts/*/native/*.?pp) src/slts/alignment/cuda/kernel.cu tests/alignment/cuda/emulator.hpp

.PHONY: help demo test fuzz mutants lint format bench reproduce accuracy docs clean
help:  ## list the targets
	@grep -E '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 11

demo: $(VENV)/.demo  ## train on an embedded data set; model and report in demo-output/
	$(BIN)/slts demo --out demo-output

test: $(VENV)/.dev  ## run the tests; FAST=1 skips the slow ones (set SLTS_DATA to run those on the UCI originals)
	$(BIN)/python -m pytest -n auto --dist worksteal $(if $(filter-out 0,$(FAST)),-m "not slow")

fuzz: $(VENV)/.dev  ## run random cases for FUZZ_SECONDS=300 and report those that end without a clear error
	$(BIN)/python -m tools.fuzz --seconds $(or $(FUZZ_SECONDS),300)

mutants: $(VENV)/.dev  ## change the sources at random, and count the changes that no test detects (SEED=1 COUNT=150)
	$(BIN)/python -m tools.mutation --seed $(or $(SEED),1) --count $(or $(COUNT),150)

lint: $(VENV)/.dev  ## check style, formatting and types
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/clang-format --dry-run --Werror $(CXX_SOURCES)
	$(BIN)/mypy

format: $(VENV)/.dev  ## format the sources
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .
	$(BIN)/clang-format -i $(CXX_SOURCES)

bench: $(VENV)/.bench  ## measure against the peers; results in bench-output/
	$(BIN)/python benchmarks/alignment.py --json bench-output/alignment.json
	$(BIN)/python benchmarks/solvers.py --json bench-output/solvers.json
	$(BIN)/python benchmarks/classifiers.py --json bench-output/classifiers.json
	$(BIN)/python benchmarks/latency.py --json bench-output/latency.json

reproduce: $(VENV)/.study  ## repeat the paper's study; results in reproduction/ (FAST=1: short form)
	$(BIN)/python -m study reproduce --out reproduction $(STUDY_OPTIONS)

accuracy: $(VENV)/.study-torch  ## compare accuracy with other libraries; results in accuracy/ (FAST=1: short form)
	$(BIN)/python -m study accuracy --out accuracy $(STUDY_OPTIONS)

docs: $(VENV)/.docs  ## build the documentation into docs/_build/html
	$(BIN)/sphinx-build -W --keep-going -b html docs docs/_build/html

clean:  ## remove the environment and everything built, including results of the studies
	rm -rf $(VENV) build demo-output bench-output reproduction accuracy docs/_build docs/api/generated .pytest_cache .mypy_cache .ruff_cache .hypothesis

# One stamp per extra; the package is installed in place, so Python sources need no reinstall.
$(VENV)/.%: $(VENV)/.created $(SOURCES)
	$(BIN)/python -m pip install --quiet --editable ".[$*]"
	@touch $@

$(VENV)/.created:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "slts needs Python >= 3.11; set one with: make PYTHON=python3.12 ..." >&2; exit 1; }
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip
	@touch $@
