# Everything here sets itself up: a virtual environment in .venv, made once and again when the pins change.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
# test processes; many tests wait for other processes, so there is one more than the cores of a small machine
WORKERS ?= 3

.DEFAULT_GOAL := help
.PHONY: help demo test lint type cov bench fix all clean

help: ## what can be made
	@awk -F ':.*## ' '/^[a-z]+:.*## / {printf "  make %-6s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

$(READY): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "telegram_bus needs Python 3.11 or newer; name one: make PYTHON=python3.12 $(MAKECMDGOALS)"; exit 2; }
	@$(PYTHON) -m venv $(VENV) || \
	  { echo "Python's venv module is missing; on Debian and Ubuntu: apt install python3-venv"; exit 2; }
	@echo "setting up $(VENV) (once) ..."
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[dev]'
	@touch $@

demo: $(READY) ## a bot, a leader and two agents on this machine, no token needed
	@$(BIN)/python -m telegram_bus demo $(ARGS)

test: $(READY) ## all tests (set ARGS for pytest's options)
	@$(BIN)/python -m pytest -n $(WORKERS) --dist worksteal $(ARGS)

lint: $(READY) ## ruff and the import contracts
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/lint-imports

type: $(READY) ## mypy --strict
	@$(BIN)/mypy

cov: $(READY) ## tests with coverage
	@$(BIN)/coverage erase
	@$(BIN)/coverage run -m pytest $(ARGS)
	@$(BIN)/coverage combine --quiet
	@$(BIN)/coverage report

bench: $(READY) ## measure, beside a raw socket echo, against docs/performance.md
	@$(BIN)/python -m benchmarks $(ARGS)

fix: $(READY) ## let ruff mend what it can
	@$(BIN)/ruff check --fix .
	@$(BIN)/ruff format .

all: lint type test ## what CI asks

clean: ## remove the environment and the caches
	@rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .hypothesis
