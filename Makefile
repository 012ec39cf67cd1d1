# jobmond. Needs Debian 12 or newer with make, python3 (3.11 or newer) and python3-venv.
#
#   make run      the daemon, on this host, without any configuration
#   make test     every test; as root on Debian it installs what the live tests need
#   make check    format, lint, types, layers and the unit tests: what a commit must pass
#   make venv     only the environment for development (.venv)

PYTHON ?= python3
BIN := .venv/bin
CONSTRAINTS := requirements/constraints.txt
PIP := $(BIN)/python -m pip --disable-pip-version-check --quiet --quiet
PYTEST := $(BIN)/python -m pytest -q -rs

.PHONY: run test check venv format lint types layers unit live-packages pins clean

run: .venv/.run
	@$(BIN)/jobmond run

# A file stays on one worker, with the cluster its tests share. The longest begins, then the order
# of the tree, so that the many short unit tests fill what the long live ones leave. Live tests
# wait more than they work: four workers keep two cores busy.
WORKERS ?= 4
test: .venv/.dev live-packages
	@$(PYTEST) -n $(WORKERS) --dist loadfile --no-loadscope-reorder $(ARGS)

check: format lint types layers unit

venv: .venv/.dev

format: .venv/.dev
	@$(BIN)/ruff format --check .

lint: .venv/.dev
	@$(BIN)/ruff check .

types: .venv/.dev
	@$(BIN)/mypy

layers: .venv/.dev
	@$(BIN)/lint-imports

unit: .venv/.dev
	@$(PYTEST) -n 2 tests/unit tests/contract

# Without root or apt the live tests are skipped, and say so.
live-packages:
	@if [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
		sh tests/live/install.sh || echo "live tests: packages could not be installed" >&2; \
	fi

.venv/bin/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo "jobmond needs Python 3.11 or newer; $(PYTHON) is older" >&2; exit 1; }
	@$(PYTHON) -m venv .venv || \
		{ rm -rf .venv; echo "apt-get install python3-venv, then try again" >&2; exit 1; }

.venv/.run: .venv/bin/python pyproject.toml $(CONSTRAINTS)
	@echo "installing jobmond into .venv" >&2
	@$(PIP) install --constraint $(CONSTRAINTS) --editable .
	@touch $@

.venv/.dev: .venv/bin/python pyproject.toml $(CONSTRAINTS)
	@echo "installing jobmond and its tools into .venv" >&2
	@$(PIP) install --constraint $(CONSTRAINTS) --editable '.[dev,postgres]'
	@touch .venv/.run $@

# What a fresh installation resolves to, without addresses; commit it together with the reason.
pins:
	@rm -rf .venv/fresh && $(PYTHON) -m venv .venv/fresh
	@.venv/fresh/bin/python -m pip --quiet install '.[dev,postgres]'
	@{ head -n 1 $(CONSTRAINTS); .venv/fresh/bin/python -m pip freeze | grep '^[^@ ]*==[^@ ]*$$'; \
		} >.venv/pins && mv .venv/pins $(CONSTRAINTS)

clean:
	rm -rf .venv dist build .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
