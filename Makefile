# Everything a developer runs. `make test` alone sets up what it needs.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed

.DEFAULT_GOAL := help
.PHONY: help install demo up test check format bench audit protos docs dist clean

help: ## Show the targets
	@sed -n 's/^\([a-z]*\):.*## \(.*\)/  make \1\t\2/p' $(MAKEFILE_LIST) | expand -t 18

install: $(STAMP) ## Make .venv with everything in it; does nothing when nothing changed

$(STAMP): pyproject.toml constraints.txt
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[dev]'
	$(BIN)/python -m compileall -q src/drakit
	@touch $(STAMP)

demo: $(STAMP) ## Run a cluster with nodes and drivers, and one workload per capability
	$(BIN)/drakit demo

up: $(STAMP) ## Run a cluster in the foreground, in memory, until interrupted
	$(BIN)/drakit up --ephemeral --kubeconfig drakit.kubeconfig

test: $(STAMP) ## Run all tests
	$(BIN)/python -m pytest -n auto --dist loadgroup

check: $(STAMP) ## Format, lint, types, layers
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/python -m pytest -q tests/house

format: $(STAMP) ## Format, and mend what the linter can
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

bench: $(STAMP) ## Measure against Kubernetes, in one table; it goes to benchmarks/results
	$(BIN)/python -m benchmarks

audit: $(STAMP) ## Look up known vulnerabilities of the pinned versions, where there is a network
	$(BIN)/python scripts/audit.py

docs: $(STAMP) ## Build the docs site into site/; a broken link is an error
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --quiet --clean

dist: $(STAMP) ## Build wheel and sdist, check both, and run the wheel in an empty environment
	rm -rf dist
	$(BIN)/python -m build --no-isolation --outdir dist .
	$(BIN)/python .ci/check_dist.py dist
	$(BIN)/python .ci/bill_of_materials.py dist

protos: $(STAMP) ## Generate the code of gRPC interfaces from their .proto files
	$(BIN)/python scripts/protos.py

clean: ## Remove what the other targets made
	rm -rf $(VENV) .pytest_cache .mypy_cache .ruff_cache .hypothesis .benchmarks build dist site
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
