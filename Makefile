# make demo   the whole way in about six minutes: translate, train, measure, look, translate with what was trained
# make test   everything CI runs: lint, types, import direction, tests
# make bench  how fast it is, against others in the same run; a quarter of an hour with nothing else running
# All set up .venv first; the second time that takes no time.

PYTHON ?= python3
VENV   := .venv
# Windows keeps the commands of a virtual environment elsewhere.
BIN    := $(VENV)/$(if $(filter Windows_NT,$(OS)),Scripts,bin)

DEMO    := demo-model
# Half the depth and half the vocabulary of the default recipe: less good in the end, better after three minutes.
SMALLER := model.encoder_layers=2 model.decoder_layers=2 tokenizer.vocab_size=4000 training.validate_every=250
UNSEEN  := "My brother is reading a good book." "Did you see Tom at the station?" "We have to go home tomorrow."

# Where the environment forbids Python to keep what it compiles, every process here would compile all of PyTorch again.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: demo test bench lint install clean

demo: $(VENV)/installed
	@echo "1. Translate with models that come with it"
	$(BIN)/transduce models
	$(BIN)/transduce translate "Where is the station?" "I would like a cup of coffee." "My sister works in a hospital."
	$(BIN)/transduce translate --from en --to twi "I am hungry." "My sister works in a hospital."
	@echo
	@echo "2. Train one: Tatoeba English-German, a small model, three minutes (Ctrl-C and make demo goes on)"
	$(BIN)/transduce train tatoeba-en-de -o $(DEMO) --minutes 3 $(SMALLER)
	@echo
	@echo "3. Measure it on 2,120 sentences that it has not seen"
	$(BIN)/transduce evaluate $(DEMO) tatoeba-en-de --beam 1
	@echo
	@echo "4. See where it looks: every layer and head on one page"
	$(BIN)/transduce attention $(DEMO) "My brother is reading a good book." -o $(DEMO)/attention.html
	@echo
	@echo "5. Translate sentences that it was not trained on"
	$(BIN)/transduce translate -m $(DEMO) $(UNSEEN)

# One process more than two cores: tests that wait, for a service or a killed run, leave them to others.
test: export OMP_NUM_THREADS := 1
test: lint
	$(BIN)/python -m pytest --numprocesses 3 --dist loadfile --no-loadscope-reorder

# transformers is the peer; what it needs of torch is there already.
bench: $(VENV)/installed
	@$(BIN)/python -m pip install --quiet "transformers>=5,<6" "torch<2.14"
	$(BIN)/python benchmarks/startup.py --rounds 7
	$(BIN)/python benchmarks/translation.py --rounds 3
	$(BIN)/python benchmarks/training.py --rounds 3 --batches 4
	$(BIN)/python benchmarks/training.py --size base --rounds 2 --batches 1 --against torch huggingface
	$(BIN)/python benchmarks/serving.py --seconds 6 --rounds 3
	$(BIN)/python benchmarks/growth.py

lint: $(VENV)/installed
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

install: $(VENV)/installed

# Tests' tools come with the package: one environment serves demo, tests and development. Python compiles what it imports;
# compiling all 18,000 files in advance would take a minute more.
$(VENV)/installed: pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 10) and "transduce needs Python 3.10 or later; this is " + sys.version.split()[0] + ". Try: make PYTHON=python3.12 ...")'
	@echo "Installing into $(VENV); the first time this takes a minute or two, most of it for torch."
	@$(PYTHON) -m venv $(VENV)
	@$(BIN)/python -m pip install --quiet --upgrade "pip>=25.1"
	$(BIN)/python -m pip install --quiet --no-compile --editable . --group dev
	@$(BIN)/python -c 'open("$@", "w").close()'

clean:
	$(PYTHON) -c 'import shutil; shutil.rmtree("$(VENV)", ignore_errors=True)'
