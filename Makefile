# make demo    see it work: trains small models, writes a report          make test    run the tests
# make lint    style (ruff)      make types   types (mypy)                 make bench   side by side with the peers
# make test-gpu   the tests that need an accelerator                      make clean   remove what make made

PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
PIP    := $(BIN)/python -m pip install --quiet --no-input --disable-pip-version-check -c constraints.txt
STAMPS := $(VENV)/.stamps
JOBS   ?= auto

.PHONY: demo test test-gpu lint types bench clean
.DELETE_ON_ERROR:

demo: $(STAMPS)/demo
	$(BIN)/assay demo

test: $(STAMPS)/test
	$(BIN)/python -m pytest -q -n $(JOBS)

test-gpu: $(STAMPS)/test
	$(BIN)/python -m pytest -q -m gpu

lint: $(STAMPS)/dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(STAMPS)/dev
	$(BIN)/mypy

bench: $(STAMPS)/bench
	$(BIN)/python -m benchmarks

# torch comes first and pinned: unpinned, the newest release would bring gigabytes of CUDA packages.
$(STAMPS)/base: constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "assay needs Python 3.11 or newer; say which with: make PYTHON=python3.11 ...")'
	@test -x $(BIN)/python || { echo "making $(VENV)"; $(PYTHON) -m venv $(VENV); }
	@echo "installing torch"
	@$(PIP) torch==2.13.0 hatchling
	@mkdir -p $(STAMPS) && touch $@

$(STAMPS)/demo:  EXTRAS := demo
$(STAMPS)/test:  EXTRAS := demo,test,bench
$(STAMPS)/dev:   EXTRAS := dev
$(STAMPS)/bench: EXTRAS := bench
$(STAMPS)/demo $(STAMPS)/test $(STAMPS)/dev $(STAMPS)/bench: $(STAMPS)/base pyproject.toml hatch_build.py $(wildcard src/assay/native/*.c)
	@echo "installing assay[$(EXTRAS)]"
	@$(PIP) --no-build-isolation --editable ".[$(EXTRAS)]"
	@touch $@

clean:
	rm -rf $(VENV) assay-demo .pytest_cache .mypy_cache .ruff_cache .hypothesis
