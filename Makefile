# Every target creates .venv and installs what it needs, so `make reproduce` and `make test` work in a fresh clone.
PYTHON ?= $(shell command -v python3.11 || command -v python3)
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
OUT ?= out
# one more than there are cores: many tests wait for processes, sockets or a browser
WORKERS ?= $(shell expr $$(getconf _NPROCESSORS_ONLN) + 1)
# solver, parts, loops, contracts, what the command says, rules of the house: by name, because every file costs CPU seconds,
# and together they must stay below 300; what compiles anew, asks slow judges or starts processes is left to `make test`
QUICK := $(patsubst %,tests/core/test_%.py,objective checks certificate equilibrium closed_forms flow kernels mirror native one_step shapes) \
  $(patsubst %,tests/loops/test_%.py,step replay trace rollout) $(patsubst %,tests/contracts/test_%.py,primitives models skeletons complete) \
  tests/primitives tests/models tests/test_effect_size.py tests/choices/test_models.py tests/cli/test_settings.py \
  tests/runs/test_cache.py tests/paper/test_compare.py tests/runs/test_plan.py tests/agent/test_agent.py tests/test_imports.py \
  tests/test_population.py tests/test_project.py tests/test_wording.py
TEST := $(BIN)/python -m pytest -n $(WORKERS) --dist loadfile --no-loadscope-reorder

.PHONY: install reproduce record test quick thorough matrix extras coverage docs tables check format audit bench bench-compare bench-record bench-agents bench-studies stress attack soak kill mutants clean

install: $(READY)

$(READY): pyproject.toml constraints.txt
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable ".[cluster,gym,studies,studio,docs,dev]"
	touch $(READY)

reproduce: install  ## measure all claims of the paper, with fewer seeds, and write the report; DATA=fetch gets people's choices first
	$(if $(filter fetch,$(DATA)),$(BIN)/policychord choices data fetch)
	$(BIN)/policychord reproduce all --quick --out $(OUT)/paper $(if $(filter-out fetch,$(DATA)),--data $(DATA))

record: install  ## a full run with people's choices becomes the record that the site shows; DATA is their folder, or fetch
	$(if $(filter-out fetch,$(DATA)),,$(BIN)/policychord choices data fetch)
	$(BIN)/policychord reproduce all --full --fresh --out $(OUT)/record $(if $(filter-out fetch,$(DATA)),--data $(DATA))
	$(BIN)/python docs/record.py $(OUT)/record

test: install  ## run the tests on all cores
	$(TEST)

quick: install  ## the tests that matter while working
	$(TEST) $(QUICK)

thorough: install  ## the tests that take long
	$(TEST) -m thorough

matrix:  ## the tests that matter with Python 3.11, 3.12 and 3.13, and with the oldest and the newest JAX; fails if one is missing
	WORKERS=$(WORKERS) .ci/matrix $(QUICK)

extras:  ## every optional package alone in a clean environment: it imports, and its tests run without a skip
	PYTHON=$(PYTHON) .ci/extras

coverage: install  ## the tests, and which lines of the package they ran
	$(TEST) --cov=policychord --cov=policychord_paper --cov-report=term:skip-covered

docs: install  ## build the site, running every tutorial; open build/site/index.html
	$(BIN)/sphinx-build --fail-on-warning --keep-going docs build/site

tables: install  ## write the tables and figures that pages show from the code and from records
	$(BIN)/python docs/_ext/generated.py

check: install  ## format, lint, types, English of pages, docstrings and messages
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/python -m tests.docs.prose > /dev/null

format: install
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

audit: install  ## known weaknesses of the installed packages, where their database can be reached
	@rm -f build/audit.txt && mkdir -p build
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check pip-audit || echo "pip-audit could not be installed."
	@$(BIN)/python -m pip_audit --progress-spinner off --skip-editable --output build/audit.txt; code=$$?; \
	if [ ! -f build/audit.txt ]; then echo "make audit: its database could not be reached: nothing was checked."; exit 0; fi; \
	grep -v "could not be audited" build/audit.txt; \
	echo "make audit: $$(grep -c 'could not be audited' build/audit.txt) packages could not be checked, because the database that was reached does not know them."; \
	exit $$code

bench: install  ## speed against other solvers, then that of agents; prints tables, writes build/bench*.json, fails if a target is missed
	$(BIN)/python -m benchmarks.equilibrium --out build/bench.json; code=$$?; \
	$(BIN)/python -m benchmarks.agents --out build/bench-agents.json && exit $$code

bench-compare: install  ## the ratios of `make bench` beside those of the last version; fails if one became worse
	$(BIN)/python -m benchmarks.record compare build/bench.json build/bench-agents.json

bench-record: install  ## record the ratios of `make bench` as those of this version
	$(BIN)/python -m benchmarks.record add build/bench.json build/bench-agents.json

bench-studies: install  ## speed of the three studies against what the paper's scripts do, and of sweeps and the studio
	$(BIN)/python -m benchmarks.flock
	$(BIN)/python -m benchmarks.bandit
	$(BIN)/python -m benchmarks.quadrotor
	$(BIN)/python -m benchmarks.sweep
	$(BIN)/python -m benchmarks.studio

bench-agents: install  ## speed of agents alone
	$(BIN)/python -m benchmarks.agents --out build/bench-agents.json
	$(BIN)/python -m benchmarks.plain_python --out build/bench-plain.json

stress: install  ## random and hostile problems, thousands of their certificates judged in many digits; about 5 minutes
	$(BIN)/python -m benchmarks.stress --out build/stress.json

attack: install  ## broken tables, plans, tracks and results, links and bombs, wild messages and files to the studio; about 5 minutes
	$(BIN)/python -m benchmarks.attack

soak: install  ## all pages of the studio open for 20 minutes, 1,000 reconnects: the memory it holds
	$(BIN)/python -m benchmarks.attack --soak 20

kill: install  ## kill -9 of a whole run ten times, then its end: are the claims the same, bit for bit?
	$(BIN)/python -m benchmarks.kill --out build/kill

mutants: install  ## small wrong changes of the source: which do the tests not notice? takes hours, goes on where it stopped
	$(BIN)/python -m benchmarks.mutants --out build/mutants.json

clean:
	rm -rf $(VENV) build out .pytest_cache .ruff_cache .mypy_cache .hypothesis
