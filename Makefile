# hugeplan: every command of this repository. `make` alone lists them.
# A stamp file stands beside what it vouches for, so a second run does only what has changed.

SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
MAKEFLAGS += --no-print-directory

# PROFILE=production installs what an image needs, without test tools and the embedded PostgreSQL.
PROFILE ?= development
VENV ?= .venv
STATE ?= $(or $(HUGEPLAN_STATE_DIR),.state)
# The benchmark profile of the demo: quick, full or none.
MEASURE ?= quick
# Synthetic nodes that the demo shows beside this machine, labelled as such.
DEMO_FLEET ?= 0
PYTHON ?=
RELEASE ?=
SERVE ?=
# The synthetic fleet of `make seed-fleet`.
NODES ?= 1000
SEED ?= 1
UV_VERSION := 0.13.8

BIN := $(VENV)/bin
LOCK := deploy/python/$(PROFILE).txt
VENV_READY := $(VENV)/.$(PROFILE)-locked
INSTALLED := $(VENV)/.$(PROFILE)-installed
NODE_READY := frontend/node_modules/.installed
DIST_READY := frontend/dist/.built
TLBBENCH := agent/build/tlbbench
SAY := deploy/make/say

TLBBENCH_SOURCES := $(shell find agent/tlbbench -type f -not -path '*/tests/*' 2>/dev/null)
# Folders are listed too: removing a source changes only its folder's time.
FRONTEND_SOURCES := $(shell find frontend/src frontend/public 2>/dev/null) \
	$(wildcard frontend/*.html frontend/*.json frontend/*.ts frontend/*.js frontend/*.cjs frontend/*.mjs)

##@ Use

.PHONY: help
help: ## List the commands
	@awk 'BEGIN {FS = ":.*## "} /^##@ / {printf "\n%s\n", substr($$0, 5)} \
		/^[a-z-]+:.*## / {printf "  make %-10s %s\n", $$1, $$2}' $(firstword $(MAKEFILE_LIST))
	@echo

.PHONY: demo
demo: setup frontend agent ## Start everything on http://127.0.0.1:8000 (HUGEPLAN_PORT changes it) and measure this machine once (DEMO_FLEET=200 adds a synthetic fleet)
	@exec $(BIN)/python deploy/make/demo.py --state-dir $(STATE) --measure $(MEASURE) --fleet $(DEMO_FLEET)

.PHONY: measure
measure: setup agent ## Measure this machine again and send the result to the running demo
	@exec $(BIN)/python deploy/make/demo.py --state-dir $(STATE) --measure $(MEASURE) --measure-again

.PHONY: setup
setup: $(INSTALLED) ## Create .venv with the commands hugeplan and hugeplan-agent
	@:

.PHONY: dependencies
dependencies: $(VENV_READY) ## Create .venv with the locked packages alone
	@:

.PHONY: seed-fleet
seed-fleet: setup ## Put a synthetic fleet into HUGEPLAN_DATABASE_URL (NODES=10000 SEED=1)
	@cd backend && ../$(BIN)/python -m tools.seed --nodes $(NODES) --seed $(SEED)

##@ Build

.PHONY: agent
agent: $(TLBBENCH) ## Build agent/build/tlbbench
	@:

.PHONY: frontend
frontend: $(DIST_READY) ## Build the user interface into frontend/dist
	@:

.PHONY: release
release: setup frontend ## Build dist/ reproducibly: wheels, deb, rpm, requirements, chart, man pages, SBOM, sums (RELEASE=--images: images)
	@$(SAY) "building release $$(cat deploy/release/VERSION) into dist"
	@$(BIN)/python deploy/release/release.py --out dist $(RELEASE)

.PHONY: docs
docs: ## Build the documentation as a site with search into .state/docs, and serve it on http://127.0.0.1:8001 (SERVE=no: build alone)
	@$(MAKE) PROFILE=docs VENV=$(VENV)-docs dependencies
	@NO_MKDOCS_2_WARNING=1 $(VENV)-docs/bin/mkdocs --quiet build --strict --config-file deploy/docs/mkdocs.yml --site-dir $(abspath $(STATE)/docs)
	@$(SAY) "wrote $(STATE)/docs"
	@[ "$(SERVE)" = no ] || exec python3 -m http.server --bind 127.0.0.1 --directory $(STATE)/docs 8001

.PHONY: version
version: ## Write deploy/release/VERSION wherever a literal must stand
	@python3 deploy/release/version.py

.PHONY: runtime
runtime: $(VENV_READY) ## Leave in a .venv of PROFILE=production what an image runs, and nothing that builds
	@[ $(PROFILE) = production ] || { echo "hugeplan: make runtime is for images; it needs PROFILE=production." >&2; exit 1; }
	@$(SAY) "leaving what runs"
	@deploy/make/runtime.sh $(VENV)

.PHONY: screenshots
screenshots: setup frontend ## Picture every page and state in both themes into frontend/screenshots
	@cd frontend && npm run --silent screenshots

.PHONY: schemas
schemas: setup ## Write the JSON Schemas and the pages of the reference again, from the code that declares them
	@text=$$($(BIN)/python -m hugeplan_agent.report_schema) && echo "$$text" > agent/hugeplan_agent/report.schema.json
	@cd backend && ../$(BIN)/python -m tools.reference
	@text=$$($(BIN)/python deploy/release/cli_reference.py) && echo "$$text" > docs/reference-cli.md

.PHONY: lock
lock: ## Pin every Python dependency again, with hashes, from the pyproject files
	@deploy/make/lock.sh $(STATE)/lock $(UV_VERSION)

.PHONY: clean
clean: ## Remove what was built; the data in .state stays
	rm -rf $(VENV) agent/build agent/build-* frontend/node_modules frontend/dist

##@ Prove

.PHONY: test
test: ## Run all test suites from nothing, two side by side; the last line is the total
	@deploy/make/preflight.sh python
	@$(MAKE) setup
	@exec $(BIN)/python deploy/suites/run_tests.py --state-dir $(STATE) \
		$(if $(TEST_SECONDS),--seconds $(TEST_SECONDS))

.PHONY: test-install
test-install: setup ## Type every line of the guides into fresh machines, with podman, Docker and a real Kubernetes (root, about 40 minutes)
	@$(BIN)/python deploy/suites/provision.py guides
	@exec $(BIN)/python deploy/suites/run_tests.py --state-dir $(STATE) --lanes 1 \
		images guides containers cluster kubernetes

.PHONY: test-kubernetes
test-kubernetes: setup ## Run the tests on a real Kubernetes 1.34 (built from Go modules once, about ten minutes)
	@exec $(BIN)/python deploy/suites/run_tests.py --state-dir $(STATE) kubernetes

.PHONY: kubernetes
kubernetes: ## Build what test-kubernetes needs into the cache folder
	@deploy/kubernetes/rig/binaries/build.sh

.PHONY: check
check: setup ## Lint, types, import contracts, formats, builds with warnings as errors, clang-tidy
	@exec $(BIN)/python deploy/suites/run_checks.py

.PHONY: bench
bench: setup agent ## Time the parts against their budgets
	@exec $(BIN)/python deploy/suites/budgets.py

.PHONY: validate
validate: setup agent ## Predict what huge pages save a PostgreSQL here, measure, compare (needs root; VALIDATE="--data-gib 1 --pool-gib 2")
	@$(BIN)/hugeplan backtest | tail -n 1
	@cd backend && ../$(BIN)/python -m validate $(VALIDATE) || test $$? -eq 77

.PHONY: validate-matrix
validate-matrix: setup agent ## The same for rows of 128 B, 8 KB, 16 KB and 1 to 64 clients, resumable (VALIDATE="--parts 1")
	@cd backend && ../$(BIN)/python -m validate.matrix $(VALIDATE) || test $$? -eq 77

.PHONY: chaos
chaos: setup ## Kills, forged tokens, clock steps, no database, no connections, a full disk, a large migration, each under load (CHAOS="kills --server-kills 5")
	@cd backend && ../$(BIN)/python -m tools.chaos $(CHAOS)

.PHONY: attack
attack: setup ## Attack a service on loopback as each role, with a table of what each attack cost (ATTACK="lint --passes 1")
	@cd backend && ../$(BIN)/python -m tools.attack $(ATTACK)

.PHONY: fuzz
fuzz: setup ## Feed damaged and random input to tlbbench's parsers (clang's libFuzzer)
	@exec bash agent/tlbbench/tests/fuzz.sh

# What stands behind the commands.

$(VENV_READY): $(LOCK)
	@deploy/make/venv.sh $(VENV) $(LOCK) "$(PYTHON)"
	@touch $@

$(INSTALLED): $(VENV_READY) backend/pyproject.toml agent/pyproject.toml
	@$(SAY) "installing the commands hugeplan and hugeplan-agent"
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation \
		-e backend -e agent
	@touch $@

$(NODE_READY): frontend/package.json frontend/package-lock.json
	@deploy/make/preflight.sh node
	@$(SAY) "installing the front end's packages"
	@cd frontend && npm ci --no-audit --no-fund --loglevel=error
	@touch $@

$(DIST_READY): $(NODE_READY) $(FRONTEND_SOURCES)
	@$(SAY) "building the user interface"
	@cd frontend && npm run --silent build
	@touch $@

frontend/package.json frontend/package-lock.json:
	@echo "hugeplan: $@ is missing, so the user interface cannot be built." >&2; exit 1

$(TLBBENCH): $(VENV_READY) $(TLBBENCH_SOURCES)
	@deploy/make/preflight.sh cc
	@test -f agent/tlbbench/meson.build || { echo "hugeplan: agent/tlbbench/meson.build is missing, so tlbbench cannot be built." >&2; exit 1; }
	@$(SAY) "building tlbbench"
	@deploy/make/build-tlbbench.sh "$(abspath $(BIN))"
	@touch $@
