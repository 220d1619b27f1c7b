# Everything here works on a fresh clone: what is missing is fetched first (`make setup`).

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
MAKEFLAGS += --no-builtin-rules
# Without bytecode each process of the tests compiles the product and the tests again.
unexport PYTHONDONTWRITEBYTECODE
# A user's own modules could have the names of ours.
unexport PYTHONPATH PYTHONHOME

VENV := .venv
BIN := $(VENV)/bin
PYTHON ?= python3
INSTALLED := $(VENV)/.installed
RUNTIME := .runtime/.fetched
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check
# Runs a quiet command, and shows that it runs.
STEP := $(PYTHON) -m deploy.setup_step
# Tests wait for servers more than they compute, so two cores carry more workers; each starts its own servers.
PYTEST := $(BIN)/python -m pytest -n 5 --dist loadfile --ignore tests/containers --no-loadscope-reorder --durations=15
# Prometheus watches the first two; what is lost and restored comes after them.
CONTAINERS := $(addprefix tests/containers/test_,stack.py profiles.py backup.py)
DIST ?= dist
PROFILE ?= kill
SEED ?= 1

.PHONY: help setup demo dev kafka client test test-deep test-compose pictures lint check bench chaos up down

help: ## Show these words
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  make %-14s %s\n", $$1, $$2}'

setup: $(INSTALLED) $(RUNTIME) ## Fetch what is needed; run by the others, cheap when nothing changed

demo: setup ## Play the main job on real parts, told step by step
	@$(BIN)/python -m examples.demo

dev: setup ## Run PostgreSQL, Kafka, the API and the checker here (Ctrl-C stops)
	@$(BIN)/outbox dev

kafka: setup ## Fetch another release of Kafka for tests and chaos runs (KAFKA=4.3.1)
	@$(BIN)/python -m deploy.fetch $(KAFKA)

client: ## Build the producer's library for Python as a wheel in dist/
	@$(PYTHON) -m pip wheel --quiet --disable-pip-version-check --no-deps --wheel-dir $(DIST) ./outbox_client

test: setup ## Run what proves each promise on real PostgreSQL, Kafka and Spark: four minutes
	@env -u MAKEFLAGS -u MFLAGS $(PYTEST) -m "not deep"

test-deep: setup ## Run storms, clusters, failovers, generated clients and large audits: fifteen minutes
	@env -u MAKEFLAGS -u MFLAGS $(PYTEST) -m deep

test-compose: setup ## Run the operations stack in real containers, where a container engine can be started
	@$(BIN)/python -m pytest -rs --durations=5 $(CONTAINERS)

pictures: setup ## Take the pictures of docs/console.md, with Chromium
	@$(BIN)/python -m tests.integration.api.console

lint: setup ## Check format, lint, types, import contracts and migrations
	@$(BIN)/ruff format --check .
	@$(BIN)/ruff check .
	@$(BIN)/mypy
	@$(BIN)/lint-imports
	@$(if $(wildcard migrations/versions/*.sql),$(BIN)/squawk migrations/versions/*.sql)

check: lint test ## The gate before a commit: lint, then test

bench: setup ## Measure this tree beside RocketMQ; write docs/performance.md (QUICK=1: one short round)
	@$(BIN)/python -m benchmarks $(if $(QUICK),--quick)

chaos: setup ## Break everything on purpose and judge the rest (PROFILE=kill, mixed, failover or brokers; SEED=1 KAFKA=)
	@$(BIN)/outbox-chaos run --profile $(PROFILE) --seed $(SEED) $(if $(KAFKA),--kafka $(KAFKA))

up: ## Start the operations stack (docker-compose.yml; COMPOSE_PROFILES=spark,tls adds to it)
	@docker compose version >/dev/null 2>&1 || { echo "missing: Docker with its compose plugin" >&2; exit 2; }
	@deploy/make-secrets.sh
	@docker compose up --detach --build --wait || { deploy/why-down.sh >&2; exit 1; }

down: ## Stop the operations stack with all its profiles; its data stays
	@SECRETS_MADE=no docker compose --profile '*' down --remove-orphans

$(INSTALLED): pyproject.toml chaos/pyproject.toml requirements/dev.txt
	@deploy/needs.sh $(PYTHON)
	@test -x $(BIN)/python || $(STEP) "creating $(VENV)" $(PYTHON) -m venv $(VENV)
	@$(STEP) "installing $$(grep -c == requirements/dev.txt) Python packages into $(VENV)" \
	  $(PIP) --require-hashes -r requirements/dev.txt
	@$(STEP) "installing this project into $(VENV)" $(PIP) --no-deps --no-build-isolation -e . -e chaos
	@touch $@

$(RUNTIME): pom.xml | $(INSTALLED)
	@deploy/needs.sh $(PYTHON)
	@$(BIN)/python -m deploy.fetch
	@touch $@
