# Everything here works on a fresh clone: what is missing is fetched first (`make setup`).

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
MAKEFLAGS += --no-builtin-rules
# Without bytecode each process of the tests compiles the product and the tests again.
unexport PYTHONDONTWRITEBYTECODE

VENV := .venv
BIN := $(VENV)/bin
PYTHON ?= python3
INSTALLED := $(VENV)/.installed
RUNTIME := .runtime/.fetched
COMPILED := $(VENV)/.tests_compiled
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check
# Runs a quiet command, and shows that it runs.
STEP := $(PYTHON) -m cli.dev.setup_step
# The longest first: what comes last is short, so all workers end together.
SERVED := tests/spark tests/e2e tests/chaos tests/integration tests/contract
UNITS := tests/model tests/unit
SUITES := $(SERVED) $(UNITS)
# What runs a second time, on an installation that has lived (tests/aged_installation): every suite that has a server
# (test-aged; test-deep without the deep tests), and what broke on such installations first (test). The hour of .ci/run
# is enough only for those where age matters most.
AGED_SUITES := tests/spark tests/e2e tests/chaos tests/integration tests/contract
AGED_HOUR := tests/spark/audit/test_clean_run.py tests/spark/audit/faults/test_planted_faults.py tests/e2e/acceptance \
  tests/integration/runbooks tests/integration/checker tests/integration/postgres tests/integration/api/ingest \
  tests/integration/api/admin tests/integration/api/metrics tests/integration/client \
  tests/integration/check_endpoints tests/integration/kafka tests/contract \
  tests/integration/cli/commands tests/integration/spark \
  tests/e2e/command/test_audit_command.py tests/e2e/command/test_command.py tests/e2e/telemetry/test_metrics.py \
  $(addprefix tests/integration/api/console/pages/test_,bulk_actions.py exact_actions.py overview.py pages.py \
  repair_pages.py start_page.py) tests/integration/api/console/test_stores_away.py
AGED_FIRST := tests/integration/test_aged_installation.py tests/integration/checker/maintenance \
  tests/integration/checker/checks/test_resting_groups.py \
  tests/integration/checker/relay/refusals/test_held_leaves.py tests/integration/api/ingest/test_lived_installation.py \
  tests/integration/api/metrics/test_probes.py tests/integration/postgres/operators/test_installation_admin.py
# The rules of the source tree are checked by `make lint`.
LAYOUT := tests/unit/layout
# Tests wait for servers more than they compute, so two cores carry more workers. Each starts its own servers: where
# these are dear and the tests are few (an aged installation), fewer workers need less time.
PYTEST := $(BIN)/python -m pytest --dist loadscope --no-loadscope-reorder --ignore=$(LAYOUT)
# Its cache is its own: what failed there is repeated there (.ci/run).
AGED := $(PYTEST) --installation aged -o cache_dir=.pytest_cache/aged
LIVED_OUTPUT := .pytest_cache/aged/output.txt
UNITS_OUTPUT := .pytest_cache/units/output.txt
# Exists if a message has become too dear (.ci/run measures again then).
DEARER := .pytest_cache/dearer
# The main walk is first: .ci/run may not have time for all.
CONTAINERS := tests/containers/test_stack.py $(filter-out %/test_stack.py,$(sort $(wildcard tests/containers/test_*.py)))
DIST ?= dist
PROFILE ?= smoke
PROFILES ?= kill mixed alone frames failover brokers long
RUNS ?= .outbox-chaos/evidence
SEED ?= 1

.PHONY: help setup demo dev kafka client test test-young test-lived test-units test-deep test-aged test-compose evidence pictures lint lint-types lint-rules check bench chaos chaos-controls chaos-matrix up down

help: ## Show these words
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  make %-14s %s\n", $$1, $$2}'

setup: $(INSTALLED) $(RUNTIME) ## Fetch what is needed; run by the others, cheap when nothing changed

demo: setup ## Play the main job on real parts, told step by step
	@$(BIN)/python -m examples.demo

dev: setup ## Run PostgreSQL, Kafka, the API and the checker here (Ctrl-C stops)
	@$(BIN)/outbox dev

kafka: setup ## Fetch another release of Kafka for tests and chaos runs (KAFKA=4.3.1)
	@$(BIN)/outbox dev --fetch-kafka $(KAFKA)

client: ## Build the producer's library for Python as a wheel in dist/
	@$(PYTHON) -m pip wheel --quiet --disable-pip-version-check --no-deps --wheel-dir $(DIST) ./outbox_client

test: setup ## Run what proves each promise on real PostgreSQL, Kafka and Spark: ten minutes
	@failed=0; $(MAKE) --no-print-directory --keep-going -j 3 test-young test-lived test-units || failed=1; \
	  cat $(LIVED_OUTPUT) $(UNITS_OUTPUT); exit $$failed

# At the same time, as each waits for its servers now and then; the outputs of the shorter ones come last. Tests that
# call make get none of the flags of this one.
test-young: $(COMPILED)
	@env -u MAKEFLAGS -u MFLAGS $(PYTEST) -n 5 --durations=15 -m "not deep" $(SERVED)

# Each worker collects every test of its session, and most tests are here: so they have a session and one process.
test-units: $(COMPILED)
	@mkdir -p $(dir $(UNITS_OUTPUT))
	@env -u MAKEFLAGS -u MFLAGS $(PYTEST) --dist no -o cache_dir=$(dir $(UNITS_OUTPUT)) --durations=5 -m "not deep" \
	  $(UNITS) > $(UNITS_OUTPUT)

test-lived:
	@mkdir -p $(dir $(LIVED_OUTPUT))
	@env -u MAKEFLAGS -u MFLAGS $(AGED) --dist no --durations=5 -m "not deep" $(AGED_FIRST) > $(LIVED_OUTPUT)

test-deep: AGED_LATER := $(if $(HOUR),$(AGED_HOUR),$(AGED_SUITES))
test-deep: setup ## Run mutants, storms, clusters, failovers, the harness, every suite aged, the cost of a message
	@failed=0; $(PYTEST) -n 4 --durations=15 -m deep $(SUITES) || failed=1; \
	  $(AGED) -n 4 --durations=15 -m "not deep or aged" $(AGED_LATER) $(addprefix --ignore=,$(AGED_FIRST)) || failed=1; \
	  rm -f $(DEARER); $(BIN)/python -m benchmarks.cost.gate || { touch $(DEARER); failed=1; }; exit $$failed

test-aged: setup ## Run every suite with a server on an installation that has lived
	@$(AGED) -n 4 --durations=15 $(AGED_SUITES)

test-compose: setup ## Run the operations stack in real containers, where a container engine can be started
	@$(BIN)/python -m pytest -rs --durations=5 $(CONTAINERS)

pictures: setup ## Take the pictures of docs/console.md, with Chromium
	@$(BIN)/python -m tests.integration.api.console

evidence: setup ## Run what takes hours: every ordered pair of failpoints, fuzzing, long chaos profiles
	@$(AGED) -n 4 $(AGED_SUITES)
	@$(BIN)/python -m pytest -rs tests/containers
	@$(BIN)/python -m tests.integration.failpoints --all-pairs
	@$(BIN)/python -m tests.integration.transaction_markers
	@$(BIN)/python -m tests.compatibility
	@OUTBOX_FUZZ_CASES=300 $(BIN)/python -m pytest --timeout 7200 tests/integration/api/http/test_schemathesis.py
	@TEST_INSTALLS=1 $(BIN)/python -m pytest -rs tests/e2e/pages/test_readme.py tests/unit/deploy/test_distributions.py \
	  tests/unit/deploy/monitoring/test_dashboard_types.py tests/integration/api/console/browser/test_axe.py
	@OUTBOX_TEST_KILLS=1 $(BIN)/python -m pytest --timeout 7200 tests/spark/audit/test_killed.py
	@$(BIN)/python -m benchmarks.speed.checks --keep checks
	@$(BIN)/python -m benchmarks.speed.checks --scale 0.1 --outage 900 --per-second 200 --keep outage
	@$(BIN)/python -m benchmarks.endurance.backlog
	@$(BIN)/python -m benchmarks.endurance.disturbances
	@$(BIN)/python -m benchmarks.endurance.flat
	@$(BIN)/python -m benchmarks.speed.settings_grid
	@$(BIN)/python -m benchmarks.endurance.hostile --seconds 600
	@$(BIN)/python -m benchmarks.audit.cuts --cuts 30
	@$(BIN)/outbox-chaos controls --seed $(SEED)
	@mkdir -p $(RUNS)
	@for profile in $(PROFILES); do $(BIN)/outbox-chaos evidence $(RUNS)/$$profile --profile $$profile --seed $(SEED) || exit; done

lint: setup ## Check format, lint, types, import contracts, migrations and the rules of the source tree
	@$(MAKE) --no-print-directory -j 2 lint-types lint-rules $(COMPILED)

lint-types:
	@$(BIN)/mypy

lint-rules:
	@$(BIN)/ruff format --check .
	@$(BIN)/ruff check .
	@$(BIN)/lint-imports
	@$(BIN)/squawk migrations/versions/*.sql
	@$(BIN)/python -m pytest -q $(LAYOUT)

check: lint test ## The gate before a commit: lint, then test

bench: setup ## Measure this tree beside its last release and RocketMQ; write docs/performance.md (QUICK=1: one short round)
	@$(BIN)/python -m benchmarks $(if $(QUICK),--quick)

chaos: setup ## Break everything on purpose and judge the rest (PROFILE=smoke SEED=1 KAFKA=)
	@$(BIN)/outbox-chaos run --profile $(PROFILE) --seed $(SEED) $(if $(KAFKA),--kafka $(KAFKA))

chaos-matrix: PROFILE := releases
chaos-matrix: setup ## Run one profile on each fetched release of Kafka (PROFILE=releases SEED=1)
	@$(BIN)/outbox-chaos matrix --profile $(PROFILE) --seed $(SEED) --record

chaos-controls: setup ## Run relays that are wrong in one rule each; all must be caught
	@$(BIN)/outbox-chaos controls --seed $(SEED)

up: ## Start the operations stack (docker-compose.yml; COMPOSE_PROFILES=spark,tls adds to it)
	@docker compose version >/dev/null 2>&1 || { echo "missing: Docker with its compose plugin" >&2; exit 2; }
	@deploy/make-secrets.sh
	@docker compose up --detach --build --wait || \
	  { docker compose logs --no-log-prefix --tail=3 migrate logins >&2; exit 1; }

down: ## Stop the operations stack with all its profiles; its data stays
	@docker compose --profile '*' down --remove-orphans

$(INSTALLED): pyproject.toml chaos/pyproject.toml requirements/dev.txt
	@deploy/needs.sh $(PYTHON)
	@test -x $(BIN)/python || $(STEP) "creating $(VENV)" $(PYTHON) -m venv $(VENV)
	@$(STEP) "installing $$(grep -c == requirements/dev.txt) Python packages into $(VENV)" \
	  $(PIP) --require-hashes -r requirements/dev.txt
	@$(STEP) "installing this project into $(VENV)" $(PIP) --no-deps --no-build-isolation -e . -e chaos
	@touch $@

$(RUNTIME): pom.xml | $(INSTALLED)
	@deploy/needs.sh $(PYTHON)
	@$(BIN)/outbox dev --fetch
	@touch $@

# Else each worker compiles every test, all at the same time. What cannot be imported is shown by the tests.
$(COMPILED): $(INSTALLED)
	@$(STEP) "compiling the tests" env -u MAKEFLAGS -u MFLAGS $(PYTEST) --quiet --collect-only $(SUITES) > $@.txt || true
	@mv $@.txt $@
