# Every target creates .venv and installs what it needs, so `make reproduce` and `make test` work in a fresh clone.
PYTHON ?= $(shell command -v python3.11 || command -v python3)
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
OUT ?= out
# one more than there are cores: many tests wait for processes, sockets or a browser
WORKERS ?= $(shell expr $$(getconf _NPROCESSORS_ONLN) + 1)
TEST := $(BIN)/python -m pytest -n $(WORKERS) --dist loadfile --no-loadscope-reorder

.PHONY: install reproduce test thorough coverage docs check format bench bench-agents bench-studies stress clean

install: $(READY)

$(READY): pyproject.toml constraints.txt
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable ".[cluster,gym,studies,studio,docs,dev]"
	touch $(READY)

reproduce: install  ## measure all claims of the paper, with fewer seeds, and write the report
	$(BIN)/policychord reproduce all --quick --out $(OUT)/paper

test: install  ## run the tests on all cores
	$(TEST)

thorough: install  ## the tests that take long
	$(TEST) -m thorough

coverage: install  ## the tests, and which lines of the package they ran
	$(TEST) --cov=policychord --cov-report=term:skip-covered

docs: install  ## build the site, running every tutorial; open build/site/index.html
	$(BIN)/sphinx-build --fail-on-warning --keep-going docs build/site

check: install  ## format, lint, types
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy

format: install
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

bench: install  ## speed against other solvers, then that of agents; prints tables, writes build/bench*.json
	$(BIN)/python -m benchmarks.equilibrium --out build/bench.json
	$(BIN)/python -m benchmarks.agents --out build/bench-agents.json

bench-studies: install  ## speed of the three studies against what their papers' scripts do
	$(BIN)/python -m benchmarks.flock
	$(BIN)/python -m benchmarks.bandit
	$(BIN)/python -m benchmarks.quadrotor
	$(BIN)/python -m benchmarks.sweep
	$(BIN)/python -m benchmarks.studio

bench-agents: install  ## speed of agents alone
	$(BIN)/python -m benchmarks.agents --out build/bench-agents.json

stress: install  ## 100,000 random and adversarial problems
	$(BIN)/python -m benchmarks.stress --problems 100000 --out build/stress.json

clean:
	rm -rf $(VENV) build out .pytest_cache .ruff_cache .mypy_cache .hypothesis
