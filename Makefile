# Every target makes its own virtual environment and installs what it needs.
PYTHON ?= python3
VENV   ?= .venv
BIN    := $(VENV)/bin
STAMP  := $(VENV)/.installed
NAME   ?=
# What `make versions` runs on each Python.
TARGETS ?= test demo demo-memcached
PROCESSORS := $(shell nproc)
# Tests run in two processes for each processor, since many wait for other processes, or for time to pass; in e2e in one for
# each processor, since each has its own Kubernetes. WORKERS=4 is another number; 0 runs them in the process of pytest itself.
WORKERS ?=
TWICE := $(shell expr 2 \* $(PROCESSORS))
PYTEST := $(BIN)/python -m pytest --dist=worksteal --numprocesses
export PYTHONPATH := scripts:operators/etcd/src:examples/demo
# Some machines forbid bytecode: each of the hundreds of programs that tests start would then compile everything, for seconds.
export PYTHONDONTWRITEBYTECODE :=

.PHONY: help demo demo-memcached test oldest versions shake check style types imports generated format e2e judge bench rig clean

help: ## Show the targets
	@grep -E '^[a-z0-9-]+:.*##' Makefile | sed -E 's/:.*## /\t/' | sort

$(STAMP): pyproject.toml
	@$(PYTHON) -c 'import sys; sys.version_info >= (3, 11) or sys.exit("expected Python 3.11 or newer, got " + sys.version.split()[0] + "; name another one: make PYTHON=python3.11 $(MAKECMDGOALS)")'
	@$(PYTHON) -c 'import ensurepip, venv' 2> /dev/null || { echo "expected Python with venv and pip, got $(PYTHON) without; on Debian and Ubuntu: apt install python3-venv" >&2; exit 1; }
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade "pip>=25.1"
	$(BIN)/python -m pip install --quiet --editable ".[cli,cluster,fast,schema,webhook]" --group test --group check --group rig
	touch $@

$(VENV)/.bench: $(STAMP)
	$(BIN)/python -m pip install --quiet --group bench
	touch $@

demo: $(STAMP) ## A cluster of etcd on a cluster of this machine, from nothing: Python and pip alone; ARGS=--stay keeps it
	@PYTHONPATH=examples/demo:operators/etcd/src $(BIN)/python examples/demo/etcd_cluster.py $(ARGS)

demo-memcached: $(STAMP) ## The same with a smaller operator, the one of the README
	@PYTHONPATH=examples/demo:examples/memcached/src $(BIN)/python examples/demo/memcached.py $(ARGS)

test: $(STAMP) ## The fast suite: Python and pip alone
	$(BIN)/python -m compileall -q -j $(PROCESSORS) src operators/etcd/src scripts # once, not in each of the processes
	HYPOTHESIS_PROFILE=quick $(PYTEST) $(or $(WORKERS),$(TWICE)) -m "not real and not long"

# Without the peers, which need newer libraries than Navarch, and without types, which `make check` reads.
oldest: $(STAMP) ## The fast suite with the oldest version of each dependency that pyproject.toml allows
	$(BIN)/python -m oldest > $(VENV)/oldest.txt
	$(PYTHON) -m venv $(VENV)/oldest
	$(VENV)/oldest/bin/python -m pip install --quiet --upgrade "pip>=25.1"
	$(VENV)/oldest/bin/python -m pip install --quiet --constraint $(VENV)/oldest.txt --editable ".[cli,cluster,etcd,fast,otel,schema,webhook]" --group test-tools --group rig
	$(VENV)/oldest/bin/python -m pytest --dist=worksteal --numprocesses $(or $(WORKERS),$(TWICE)) --ignore=tests/conformance/clients --ignore=tests/conformance/test_pods_kubectl.py --ignore=tests/conformance/test_proxy.py --ignore=tests/docs/test_embedded_server.py --ignore=tests/typing -m "not real and not long" $(ARGS)

versions: ## Tests and demos on every supported Python of this machine; NAMESPACES=no on a kernel that refuses user namespaces, ONLY=3.13
	$(PYTHON) -m versions $(TARGETS) --folder=$(VENV)/versions $(if $(filter no,$(NAMESPACES)),--no-namespaces) $(ONLY:%=--only %)

shake: $(STAMP) ## The fast suite while events, answers and processes come late; SEED=7 STRENGTH=2 ARGS=tests/operator
	$(BIN)/python -m shake $(SEED:%=--seed=%) $(STRENGTH:%=--strength=%) --workers=$(or $(WORKERS),$(PROCESSORS)) $(ARGS)

check: $(STAMP) ## Format, lint, types, import contracts, generated files, tests
	$(MAKE) --no-print-directory --jobs=2 --output-sync=target types style imports generated
	$(MAKE) --no-print-directory test

style: $(STAMP)
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .

types: $(STAMP)
	$(BIN)/mypy

imports: $(STAMP)
	$(BIN)/lint-imports
	$(BIN)/python -m census --check

generated: $(STAMP)
	$(BIN)/python -m kubernetes_api check
	$(BIN)/python -m fresh_cluster --check
	cd examples/memcached && $(abspath $(BIN))/navarch generate --check
	cd operators/etcd && $(abspath $(BIN))/navarch generate --check
	$(BIN)/python -m figures --check
	$(BIN)/python -m reference --check

format: $(STAMP) ## Format the code and mend what ruff can mend
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

rig: $(STAMP) ## Build Kubernetes for the real engine (needs Go; says so if it is missing)
	$(BIN)/python -m rig build

e2e: $(STAMP) rig ## The conformance tests on a real Kubernetes, and the tests that run for long
	HYPOTHESIS_PROFILE=full $(PYTEST) $(or $(WORKERS),$(PROCESSORS)) -m "real or long" tests operators

judge: $(STAMP) rig ## Ask the referees whether the verdicts that tests replay still hold; NAME=fields for one, RECORD=1 writes
	PYTHONPATH=$(PYTHONPATH):tests:operators/etcd/tests $(BIN)/python -m judge $(NAME) $(if $(RECORD),--record)

bench: $(STAMP) $(VENV)/.bench rig ## Benchmarks beside the peers; NAME=runtime for one (client, cluster, etcd, runtime, scale, sdk, server, ship, soak, webhook)
	$(BIN)/python -m compileall -q src benchmarks # as pip does for the peers
	$(BIN)/python benchmarks/run.py $(NAME)

clean: ## Remove the virtual environment and caches
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
