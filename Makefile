# Every target sets up what it needs: a virtual environment in .venv, Java, and the jars in the cache folder.
# All of it is pinned by hash, done once, and needs no network afterwards.
.DEFAULT_GOAL := help
SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c

PYTHON ?= python3
UV_VERSION := 0.13.8

VENV := .venv
IN_VENV := $(VENV)/bin
# Stamps are named for what they stand for, so a checkout that only touches files repeats nothing. The first
# holds this folder's name: an environment does not survive being moved, nor the Python under it being removed.
CREATED := $(VENV)/.created-$(shell echo "$(CURDIR)" | cksum | tr ' ' '-')
$(shell test -x $(IN_VENV)/python || rm -f $(VENV)/.created-*)
LOCKS := requirements/build.txt requirements/dev.txt
PACKAGES := $(VENV)/.packages-$(shell cat $(LOCKS) | cksum | tr ' ' '-')
SEAWALL := $(VENV)/.seawall-$(shell cksum < pyproject.toml | tr ' ' '-')
PIP := $(IN_VENV)/python -m pip --disable-pip-version-check --no-input --quiet

.PHONY: help
help: ## Show this list
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 12

.PHONY: demo
demo: setup ## See the whole of it work, on a real broker and an S3 server of its own
	$(IN_VENV)/seawall demo

.PHONY: test
test: setup ## Run every test but the long ones
	$(IN_VENV)/python -m pytest -n auto --dist loadgroup --no-loadscope-reorder $(PYTEST)

.PHONY: test-long
test-long: setup ## Run the tests that take minutes each, which `make test` leaves out
	$(IN_VENV)/python -m pytest -m long $(PYTEST)

.PHONY: test-fast
test-fast: setup-python ## Run the tests that need neither Java nor patience
	$(IN_VENV)/python -m pytest -m "not jvm and not slow and not long" --hypothesis-profile quick \
		-n auto --dist loadscope $(PYTEST)

.PHONY: lint
lint: docs ## Check style, types, the layers between packages, and the links in docs/
	$(IN_VENV)/ruff check
	$(IN_VENV)/ruff format --check
	$(IN_VENV)/mypy
	$(IN_VENV)/lint-imports

.PHONY: docs
docs: setup-python ## Build docs/ as a site into build/site, and check every link in it
	NO_MKDOCS_2_WARNING=1 $(IN_VENV)/python -m mkdocs build --strict

.PHONY: bom
bom: setup-python ## Write the bill of materials, from the pins, into build/seawall.cdx.json
	@mkdir -p build
	$(IN_VENV)/python -m seawall.reference.bom > build/seawall.cdx.json

.PHONY: bench
bench: setup ## Measure against other tools; ONLY=name for one benchmark
	$(IN_VENV)/python -m bench $(ONLY)

.PHONY: soak
soak: setup ## Run all of it at once for an hour and see whether anything grows; SOAK="--minutes 10"
	$(IN_VENV)/python -m tests.soak $(SOAK)

.PHONY: setup
setup: setup-python ## Fetch all that the targets above need, and nothing more
	@$(IN_VENV)/python -m seawall.jvm ensure

.PHONY: lock
lock: ## Pin again what pyproject.toml asks for (then read the diff)
	folder=$$(mktemp -d); trap 'rm -rf "$$folder"' EXIT; \
	$(PYTHON) -m venv "$$folder" && "$$folder/bin/pip" install --quiet uv==$(UV_VERSION); \
	pin() { "$$folder/bin/uv" pip compile --universal --python-version 3.10 --generate-hashes \
		--no-emit-index-url --no-header --quiet "$$@"; }; \
	pin pyproject.toml --extra demo --extra otel --extra scaler --extra top --group dev -o requirements/dev.txt; \
	pin pyproject.toml --extra demo --extra otel --extra scaler --extra top -c requirements/dev.txt -o requirements/user.txt; \
	pin --group build -c requirements/dev.txt -o requirements/build.txt

.PHONY: clean
clean: ## Remove what was built here; the fetched jars stay in the cache folder
	rm -rf $(VENV) build dist .cache .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

.PHONY: setup-python
setup-python: $(SEAWALL)

$(CREATED):
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 10))' || { \
		echo "seawall: Python 3.10 or newer is needed, and $(PYTHON) is not; run: make PYTHON=/path/to/python3.11" >&2; \
		exit 1; }
	@echo "seawall: making $(VENV) with $$($(PYTHON) --version)" >&2
	@rm -rf $(VENV)
	@$(PYTHON) -m venv $(VENV) || { \
		echo "seawall: Python cannot make a virtual environment; on Debian, run: sudo apt-get install -y python3-venv" >&2; \
		rm -rf $(VENV); exit 1; }
	@touch $@

# Two steps, and no build isolation: pyspark comes as a source archive, and what builds it is pinned as well.
$(PACKAGES): $(CREATED)
	@echo "seawall: installing Python packages (about 600 MB, a few minutes, once)" >&2
	@$(PIP) install --require-hashes --no-build-isolation -r requirements/build.txt
	@$(PIP) install --require-hashes --no-build-isolation -r requirements/dev.txt
	@rm -f $(VENV)/.packages-*
	@touch $@

$(SEAWALL): $(PACKAGES)
	@$(PIP) install --no-build-isolation --no-deps --no-index --editable .
	@rm -f $(VENV)/.seawall-*
	@touch $@
