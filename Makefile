# Everything here works on a fresh clone: what is missing is fetched first (`make setup`).

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
MAKEFLAGS += --no-builtin-rules

VENV := .venv
BIN := $(VENV)/bin
PYTHON ?= python3
INSTALLED := $(VENV)/.installed
RUNTIME := .runtime/.fetched
# The longest first: what comes last is short, so both workers end together.
SUITES := tests/spark tests/integration tests/e2e tests/contract tests/model tests/unit
LAST := tests/chaos
PROFILE ?= smoke
SEED ?= 1

.PHONY: help setup demo dev test check bench chaos chaos-controls up down

help: ## Show these words
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  make %-14s %s\n", $$1, $$2}'

setup: $(INSTALLED) $(RUNTIME) ## Fetch what is needed; run by the others, cheap when nothing changed

demo: setup ## Play the main job on real parts, told step by step
	@$(BIN)/python -m examples.demo

dev: setup ## Run PostgreSQL, Kafka, the API and the checker here (Ctrl-C stops)
	@$(BIN)/outbox dev

test: setup ## Run every suite on real PostgreSQL, Kafka and Spark; two at once, chaos last
	@failed=0; \
	$(BIN)/python -m pytest --durations=15 -n 2 \
		--dist loadscope --no-loadscope-reorder $(SUITES) || failed=1; \
	$(BIN)/python -m pytest --durations=5 -n 2 --dist loadscope $(LAST) || failed=1; \
	exit $$failed

check: setup ## The gate: format, lint, types, imports, tests
	@$(BIN)/ruff format --check .
	@$(BIN)/ruff check .
	@$(BIN)/mypy
	@$(BIN)/lint-imports
	@$(MAKE) --no-print-directory test

bench: setup ## Measure the hot paths beside raw Kafka and raw COPY
	@$(BIN)/python -m benchmarks

chaos: setup ## Break everything on purpose and judge the rest (PROFILE=smoke SEED=1)
	@$(BIN)/outbox-chaos run --profile $(PROFILE) --seed $(SEED)

chaos-controls: setup ## Run relays that are wrong in one rule each; all must be caught
	@$(BIN)/outbox-chaos controls --seed $(SEED)

up: ## Start the operations stack (docker-compose.yml)
	@docker compose version >/dev/null 2>&1 || { echo "missing: Docker with its compose plugin" >&2; exit 2; }
	@deploy/make-secrets.sh
	@docker compose up --detach --build --wait

down: ## Stop the operations stack; its data stays
	@docker compose down

$(INSTALLED): pyproject.toml chaos/pyproject.toml requirements/dev.txt
	@deploy/needs.sh $(PYTHON)
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@echo "installing Python packages" >&2
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements/dev.txt
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e . -e chaos
	@touch $@

$(RUNTIME): pom.xml | $(INSTALLED)
	@deploy/needs.sh $(PYTHON)
	@$(BIN)/outbox dev --fetch
	@touch $@
