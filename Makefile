# Each target sets up what it needs. Paths may contain spaces: nothing here uses $(CURDIR) unquoted.
SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help
.NOTPARALLEL:
.SUFFIXES:

BIN := .venv/bin
COLLECTION ?= crawl
DEMO ?= demo
SEEDS ?=
SUITE ?=
RUNS ?=
PIP := $(BIN)/python -m pip --disable-pip-version-check install --quiet
# Through the environment, so that the shell takes & and ? in a URL as they are.
export SEEDS COLLECTION DEMO

.PHONY: help demo crawl test test-long check format docs bench bench-scale clean

help:
	@echo 'make demo                      crawl the embedded sample web and show what was found'
	@echo 'make crawl SEEDS="https://…"   crawl sites into ./$(COLLECTION) (COLLECTION=name)'
	@echo 'make test                      tests, some minutes'
	@echo 'make test-long [SUITE=name]    the long suites; each can be run alone, stopped and gone on with'
	@echo 'make check                     style and types'
	@echo 'make bench [SUITE=name]        speed beside its peers (bench/run.py names the suites);'
	@echo '                               SUITE=million: with a million known pages'
	@echo '                               SUITE=archive: work on finished archives'
	@echo 'make bench-scale [SUITE=name]  many agents, pages, sites: docs/design/scaling.md (hours;'
	@echo '                               SUITE: polite, plain, figures, million, weights)'
	@echo 'make docs                      write the generated pages of the reference'
	@echo 'make clean                     remove what these targets made, but no collection'

# Stamps: what is installed in .venv, remade when pyproject.toml changes.
.make/venv: pyproject.toml
	@mkdir -p .make
	@python=$$(bin/choose-python); \
	if ! { [ -x $(BIN)/python ] && $(BIN)/python -m pip --version >/dev/null 2>&1; }; then \
	    rm -rf .venv; "$$python" -m venv .venv; fi
	@echo 'installing geomi into .venv'
	@$(PIP) --only-binary=:all: 'setuptools>=70.1'
	@$(BIN)/python bin/requirements > .make/base.txt
	@$(PIP) --only-binary=:all: --requirement .make/base.txt
	@$(PIP) --no-deps --no-build-isolation --editable .
	@touch $@

.make/dev: .make/venv
	@$(BIN)/python bin/requirements dev cluster replay > .make/dev.txt
	@$(PIP) --only-binary=:all: --no-binary=surt --requirement .make/dev.txt
	@touch $@

# Scrapy and what it brings in a place of its own: it is only measured.
.make/bench: .make/venv
	@$(BIN)/python bin/requirements bench > .make/bench.txt
	@rm -rf .make/peers && $(BIN)/python -m venv .make/peers
	@.make/peers/bin/python -m pip --disable-pip-version-check install --quiet \
	    --only-binary=:all: --requirement .make/bench.txt
	@touch $@

demo: .make/venv
	@$(BIN)/geomi demo "$$DEMO"

crawl: .make/venv
	@if [ -z "$${SEEDS// /}" ]; then \
	    echo 'make crawl needs seeds: make crawl SEEDS="https://www.example.org/"' >&2; exit 2; fi
	@set -f; $(BIN)/geomi crawl "$$COLLECTION" $$SEEDS

test: .make/dev
	@bin/debian-packages nginx-light postgresql python3-doc postgresql-doc-15 wget
	@$(BIN)/python -m pytest -q -p no:cacheprovider

test-long: .make/dev
	@bin/debian-packages nginx-light postgresql python3-doc postgresql-doc-15 openjdk-17-doc wget
	@HYPOTHESIS_PROFILE=long $(BIN)/python -m pytest -q -p no:cacheprovider -m long \
	    --resume=".make/long-$(or $(SUITE),all)" $(if $(SUITE),-k "$(SUITE)")

check: .make/dev
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check --quiet .
	@$(BIN)/mypy

format: .make/dev
	@$(BIN)/ruff check --fix --quiet .
	@$(BIN)/ruff format --quiet .

docs: .make/venv
	@$(BIN)/python -c 'from geomi.sheet import reference; print(reference(), end="")' \
	    > docs/reference/settings.md
	@$(BIN)/python tests/docs/pages.py

bench: .make/venv $(if $(filter peers full,$(SUITE)),.make/bench)
	@bin/debian-packages nginx-light postgresql python3-doc postgresql-doc-15 openjdk-17-doc wget wget2
	@$(BIN)/python $(if $(filter million archive digests again,$(SUITE)),bench/$(SUITE:archive=archives).py, \
	    bench/run.py $(if $(SUITE),--suite "$(SUITE)")) $(if $(RUNS),--runs "$(RUNS)")
	@$(if $(filter archive,$(SUITE)),$(BIN)/python bench/rewriting.py $(if $(RUNS),--runs "$(RUNS)"))

bench-scale: .make/dev
	@bin/debian-packages nginx-light postgresql python3-doc postgresql-doc-15 openjdk-17-doc
	@$(BIN)/python bench/scale.py $(if $(SUITE),--suite "$(SUITE)") $(if $(RUNS),--runs "$(RUNS)")

clean:
	@rm -rf .venv .make build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis bench/results
	@find . -name __pycache__ -not -path './.git/*' -prune -exec rm -rf {} +
	@rm -rf src/geomi.egg-info
