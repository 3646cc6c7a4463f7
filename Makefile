# Three commands: `make study`, `make ui` and `make test`. They make the virtual environment first if it is not there.
#   make study              the quick preset, offline, on generated stand-ins
#   make study DATA=real    the same on real data (downloaded, or from PLUMBLINE_MIRROR)
#   make study ARGS=...     more options for snakemake: ARGS="--configfile config/desk.yaml"
PYTHON ?= python3
DATA ?= generated
ARGS ?=
PEERS ?=
SEEDS ?= 0
PEERS_ARGS ?=
VENV := .venv
BIN := $(VENV)/bin

.PHONY: study ui test test-all test-browser test-crate test-gpu wheel soak bench peers docs lint format lock clean
.DEFAULT_GOAL := study

# Made anew when the lock or the package's metadata change.
$(VENV)/installed: envs/requirements.lock pyproject.toml
	$(PYTHON) -c 'import sys; sys.exit("plumbline needs Python 3.11.5 or later" if sys.version_info < (3, 11, 5) else 0)'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -r envs/requirements.lock
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --editable .
	$(BIN)/python -m compileall -q src
	touch $@

# What Python compiles is kept in both, whatever the environment says: they start fifty and a hundred processes.
study test: export PYTHONDONTWRITEBYTECODE :=
study: $(VENV)/installed
	$(BIN)/snakemake --cores all --keep-going --quiet rules --config data=$(DATA) $(ARGS)

# Runs in MLflow, in a browser on this machine.   make ui ARGS="--port 5001"
ui: $(VENV)/installed
	$(BIN)/plumbline ui $(ARGS)

# The fast tests: everything but what takes a second and more, a Slurm cluster, a browser and ratios of times.
# Some fifteen thousand files are made and deleted again: in memory, where two gigabytes of it are to be had.
test: export TMPDIR := $(or $(TMPDIR),$(shell \
	[ "$$(df --output=avail /dev/shm 2>/dev/null | tail -1)" -gt 2000000 ] 2>/dev/null && echo /dev/shm))
test: $(VENV)/installed
	$(BIN)/python -m pytest -n auto --dist worksteal -m "not slow and not slurm and not soak and not browser" --ignore tests/benchmarks

# All tests but `soak` and the timings of `bench`: the pipeline runs, a real single-node Slurm, the report and the site in
# Chromium (each skipped, with the reason, where it cannot be started).
test-all: $(VENV)/installed
	$(BIN)/python -m pytest -n auto --dist worksteal -m "not slurm and not soak and not browser"
	$(BIN)/python -m pytest -m slurm tests/slurm
	$(MAKE) test-browser

# The report and the site in Chromium; with npm also by axe-core, which judges whether a keyboard and a screen reader can use them.
test-browser: $(VENV)/installed
	axe=$$(mktemp -d); trap 'rm -rf "$$axe"' EXIT; \
	if (cd "$$axe" && npm pack --silent axe-core@4.14.1 && tar -xzf axe-core-4.14.1.tgz) > "$$axe/log" 2>&1; \
	then export PLUMBLINE_AXE="$$axe/package/axe.min.js"; \
	else cat "$$axe/log"; echo "axe-core could not be had from npm: its test is skipped"; fi; \
	$(BIN)/python -m pytest -n 2 --dist loadfile -m browser tests/analysis tests/docs

# A run as RO-Crate, judged by the validator of its profiles, which has an environment of its own and reads contexts from the
# network.
test-crate: $(VENV)/installed
	place=$$(mktemp -d); trap 'rm -rf "$$place"' EXIT; \
	$(PYTHON) -m venv "$$place" && "$$place/bin/python" -m pip install --quiet --disable-pip-version-check roc-validator==0.13.0 \
	&& PATH="$$place/bin:$$PATH" $(BIN)/python -m pytest tests/cli/test_results_crate.py

# What takes a device, on a GPU: every test that needs one is skipped without it, and says so. The last part times seeds in
# lockstep on the GPU and on a core.
test-gpu: $(VENV)/installed
	$(BIN)/python -m pytest -m gpu --ignore tests/benchmarks
	$(BIN)/python -m pytest tests/benchmarks -m gpu --benchmark-only -s

# The package in an empty environment, with the dependencies that it declares at the versions of the lock: a workspace away from
# the checkout, and a trial in it.
wheel:
	set -e; place=$$(mktemp -d); trap 'rm -rf "$$place"' EXIT; \
	$(PYTHON) -m venv "$$place/venv"; \
	"$$place/venv/bin/python" -m pip install --quiet --disable-pip-version-check --constraint envs/requirements.lock .; \
	cd "$$place"; venv/bin/plumbline init study; cd study; \
	../venv/bin/plumbline trial --method logei-default --task ackley-2 --rounds 2

# A small study whose processes are killed a hundred times, some ten minutes.
soak: $(VENV)/installed
	$(BIN)/python -m pytest tests/soak -m soak -s

# Ratios of times, measured side by side: tests/benchmarks.
bench: $(VENV)/installed
	$(BIN)/python -m pytest tests/benchmarks --benchmark-only -m "slow or not slow"
	$(MAKE) peers

# plumbline beside other libraries; results/peers keeps every row, so that a long run can be stopped and continued.
#   make peers                                  times of a round; those that are not installed are named
#   make peers PEERS="botorch optuna" SEEDS=5   of these peers, and regrets on five seeds
#   make peers PEERS_ARGS="--help"              more options
peers: $(VENV)/installed
	PYTHONPATH=tests/benchmarks $(BIN)/python -W ignore -m peers $(if $(PEERS),--peers $(PEERS)) --seeds $(SEEDS) $(PEERS_ARGS)

# The site, offline, with a page a claim and an experiment: docs/_build/index.html.
docs: $(VENV)/installed
	$(BIN)/python -m sphinx -W --keep-going -q -j auto -b html docs docs/_build

lint: $(VENV)/installed
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/snakefmt --check Snakefile workflow
	$(BIN)/snakemake --lint

format: $(VENV)/installed
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .
	$(BIN)/snakefmt Snakefile workflow

# What follows from envs/requirements.lock and pyproject.toml: checksums of all versions, and conda's environment.
lock: $(VENV)/installed
	$(BIN)/python -m pip install --quiet --disable-pip-version-check uv
	PATH="$(abspath $(BIN)):$$PATH" $(BIN)/python envs/export.py

clean:
	rm -rf $(VENV) .snakemake .mypy_cache .pytest_cache .ruff_cache docs/_build docs/api docs/claims docs/experiments docs/repository docs/_static/verdicts.css
