# make demo   what transduce does, in about two minutes
# make test   everything CI runs: lint, types, import direction, tests
# Both set up .venv first; the second time that takes no time.

PYTHON ?= python3
VENV   := .venv
# Windows keeps the commands of a virtual environment elsewhere.
BIN    := $(VENV)/$(if $(filter Windows_NT,$(OS)),Scripts,bin)

.PHONY: demo test lint install clean

demo: $(VENV)/installed
	$(BIN)/transduce translate "Where is the station?" "I would like a cup of coffee." "My sister works in a hospital."
	@echo
	$(BIN)/transduce paper
	@echo
	$(BIN)/python examples/reverse_digits.py

test: lint
	$(BIN)/python -m pytest

lint: $(VENV)/installed
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

install: $(VENV)/installed

# Tests' tools come with the package: one environment serves demo, tests and development.
$(VENV)/installed: pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 10) and "transduce needs Python 3.10 or later; this is " + sys.version.split()[0] + ". Try: make PYTHON=python3.12 ...")'
	@echo "Installing into $(VENV); the first time this takes a minute or two, most of it for torch."
	@$(PYTHON) -m venv $(VENV)
	@$(BIN)/python -m pip install --quiet --upgrade "pip>=25.1"
	$(BIN)/python -m pip install --quiet --editable . --group dev
	@$(BIN)/python -c 'open("$@", "w").close()'

clean:
	$(PYTHON) -c 'import shutil; shutil.rmtree("$(VENV)", ignore_errors=True)'
