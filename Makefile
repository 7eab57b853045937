# Every verb does the set-up it needs itself; the stamps make the second time quick. `make help` lists the verbs.

FN ?= functions.running_mean:running_mean
VENV ?= .venv
TESTS ?=
# Two processes for each core, since tests wait for half of their time; a choice of TESTS runs in one, as a debugger wants it.
SIDE_BY_SIDE ?= -n $(shell $(PYTHON) -c 'import os; print(2 * (os.cpu_count() or 1))') --dist worksteal
IMAGE ?= stream-invoker
ENGINE ?= docker podman buildah

# The first interpreter that runs and is new enough; `make PYTHON=/path/to/python3.12 ...` overrides it.
CANDIDATES := python3 python3.14 python3.13 python3.12 python3.11 python
NEW_ENOUGH := import sys; sys.exit(sys.version_info < (3, 11))
PYTHON ?= $(shell for p in $(CANDIDATES); do $$p -c '$(NEW_ENOUGH)' 2>/dev/null && { command -v $$p; break; }; done)

BIN := $(VENV)/bin
INSTALL := install --quiet --disable-pip-version-check
# A lock file is complete, so nothing is resolved, and modules are compiled when they are imported: it takes half the time.
EXACTLY := --no-deps --require-hashes -r
PIP := -m pip $(INSTALL)
# An environment beside .venv has no pip of its own.
ENVIRONMENT = $(PYTHON) -m venv --without-pip $(@D)
# Fill the environment of the interpreter $(1): uv takes a sixth of pip's time. It does not read pip's settings, and not
# every platform has it, so where it fails pip does the same.
fill = echo "$(1): $(2)"; \
    $(BIN)/uv pip install --quiet --native-tls --no-progress --python $(1) $(2) 2>/dev/null || \
    $(BIN)/python -m pip --python $(1) $(INSTALL) --no-compile $(2)
FILL = $(call fill,$(@D)/bin/python,$(1))
SELF := --no-deps --no-build-isolation --editable . --editable ./conformance
PROJECTS := pyproject.toml conformance/pyproject.toml conformance/setup.py
SDIST := from setuptools import build_meta as b; b.build_sdist('$(CURDIR)/dist')
BASE := $(VENV)/.stamp-base
DEV := $(VENV)/.stamp-dev
FOREIGN := .interop/.stamp $(patsubst %,.interop/%.stamp, action-engine/ graphpipe/ asgi/ openapi/ cloudevents/)
ECHO := build/bench/echo
PEERS := build/peers
CLIENTS := build/clients

.DEFAULT_GOAL := help
.PHONY: help setup run test check fmt proto docs bench bench-cpp bench-peers bench-clients dist image interop clean

help: ## list the verbs
	@awk -F ':.*## ' '/^[a-z]+:.*## / {printf "  make %-8s %s\n", $$1, $$2}' $(MAKEFILE_LIST)
	@echo "What else there is: .venv/bin/python -m tools"

setup: $(DEV) ## make .venv with the locked dependencies, for development

run: $(BASE) ## serve a function: make run FN=functions.repeat:repeat
	$(BIN)/python -m invoker $(FN)

test: $(DEV) ## run the tests but the slow ones, or a choice: make test TESTS="tests/core -k order"
	$(BIN)/python -m pytest $(or $(TESTS),$(SIDE_BY_SIDE) -m "not slow")

check: $(DEV) ## all that has to pass before a change goes in
	$(BIN)/python -m tools check

fmt: $(DEV) ## format the code
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix-only --quiet .

proto: .venv-proto/.stamp ## write invoker/_pb from proto/
	.ci/proto

docs: $(DEV) ## write the generated pages of docs/reference
	$(BIN)/python -m tests.gendocs

bench: $(DEV) bench-cpp bench-peers bench-clients ## measure beside bare grpc.aio, C++, FastAPI and others (QUICK=1: one short round, nothing written)
	$(BIN)/python -m benchmarks $(if $(QUICK),--quick,--write)
	$(if $(QUICK),,$(BIN)/python -m benchmarks.headline)

interop: $(DEV) $(FOREIGN) ## run foreign clients (Node, buf, curl, action-engine, graphpipe) and hosts (FastAPI, uvicorn, Jupyter)
	$(BIN)/python -m pytest $(or $(TESTS),-n auto --dist worksteal tests/interop)

bench-peers: # FastAPI, uvicorn, functions-framework and LitServe; without them their columns are left out
	@$(MAKE) --no-print-directory $(PEERS)/.stamp || echo "the peers of benchmarks/peers.lock cannot be installed" >&2

$(PEERS)/.stamp: benchmarks/peers.lock | $(BASE)
	@rm -rf $(@D)
	$(ENVIRONMENT)
	@{ $(call FILL,$(EXACTLY) $<); } || { rm -rf $(@D); exit 1; }
	@touch $@

bench-clients: # @grpc/grpc-js; without it its rows are left out
	@$(MAKE) --no-print-directory $(CLIENTS)/.stamp || echo "@grpc/grpc-js cannot be installed: it takes node and npm" >&2

$(CLIENTS)/.stamp: benchmarks/clients/package.json benchmarks/clients/package-lock.json
	@rm -rf $(@D) && mkdir -p $(@D)
	cp $^ $(@D)/
	cd $(@D) && npm ci --ignore-scripts --no-audit --no-fund --loglevel=error || { rm -rf $(CURDIR)/$(@D); exit 1; }
	@touch $@

bench-cpp: # Debian's g++ libgrpc++-dev libprotobuf-dev protobuf-compiler-grpc; without them the column is left out
	@if command -v protoc >/dev/null && command -v grpc_cpp_plugin >/dev/null && \
	printf '#include <grpcpp/grpcpp.h>\n#include <google/protobuf/message.h>\n' | $(CXX) -fsyntax-only -x c++ - 2>/dev/null; \
	then $(MAKE) --no-print-directory $(ECHO); \
	else echo "no C++ echo is built: it takes Debian's g++ libgrpc++-dev libprotobuf-dev protobuf-compiler-grpc" >&2; fi

$(ECHO): benchmarks/cpp/echo.cc proto/riff/riff-rpc.proto
	@mkdir -p $(@D)
	protoc -I proto/riff --cpp_out=$(@D) --grpc_out=$(@D) \
	    --plugin=protoc-gen-grpc=$$(command -v grpc_cpp_plugin) riff-rpc.proto
	$(CXX) -std=c++17 -O2 -I$(@D) -o $@ $< $(@D)/riff-rpc.pb.cc $(@D)/riff-rpc.grpc.pb.cc -Wl,--copy-dt-needed-entries -lgrpc++ -lprotobuf

dist: $(BASE) ## write the wheels and the source distributions of invoker and of the conformance suite into dist/
	rm -rf dist build/lib build/bdist.* conformance/build
	$(BIN)/python -c "$(SDIST)" >/dev/null
	cd conformance && $(abspath $(BIN))/python -c "$(SDIST)" >/dev/null
	$(BIN)/python $(subst install,wheel,$(PIP)) --no-deps --no-build-isolation --wheel-dir dist . dist/stream_invoker_conformance-*.tar.gz
	@ls dist

image: ## build the container image of deploy/Containerfile: make image IMAGE=stream-invoker ENGINE=podman
	@for engine in $(ENGINE); do if command -v $$engine >/dev/null && $$engine info >/dev/null 2>&1; then \
	    exec $$engine build --file deploy/Containerfile --tag $(IMAGE) .; fi; done; \
	echo "make image needs a container engine that runs, one of: $(ENGINE). None does here: install one or start it (docker info" \
	    "says what is wrong). python -m tools image runs the same steps without one, as root." >&2; exit 1

clean: ## remove what the verbs have made
	rm -rf conformance/build conformance/*.egg-info .venv .venv-* .interop .mypy_cache .pytest_cache .ruff_cache .import_linter_cache .hypothesis build dist *.egg-info

$(VENV)/bin/python:
	@test -n "$(PYTHON)" || { echo "no Python 3.11 or newer found; give one: make PYTHON=/path/to/python3" >&2; exit 1; }
	$(PYTHON) -m venv $(VENV)

$(BASE): requirements/uv.lock requirements/base.lock $(PROJECTS) | $(VENV)/bin/python
	@$(BIN)/python $(PIP) --no-compile $(EXACTLY) requirements/uv.lock || echo "there is no uv for this machine, so pip does its work" >&2
	@$(call fill,$(BIN)/python,$(EXACTLY) requirements/base.lock)
	@$(call fill,$(BIN)/python,$(SELF))
	@touch $@

$(DEV): requirements/dev.lock $(BASE)
	@$(call fill,$(BIN)/python,$(EXACTLY) requirements/dev.lock)
	@touch $@

.venv-proto/.stamp: requirements/proto.lock | $(BASE)
	@test -x $(@D)/bin/python || $(ENVIRONMENT)
	@$(call FILL,$(EXACTLY) $<)
	@touch $@

.venv-agents/.stamp: requirements/agents.lock $(PROJECTS) | $(BASE)
.venv-second/.stamp: requirements/protobuf6.lock $(PROJECTS) | $(BASE)
.venv-second/.stamp .venv-agents/.stamp:
	@test -x $(@D)/bin/python || $(ENVIRONMENT)
	@$(call FILL,$(EXACTLY) $<)
	@$(call FILL,$(SELF))
	@touch $@

.interop/.stamp: tests/interop/package.json tests/interop/package-lock.json
	@mkdir -p .interop
	cp tests/interop/package.json tests/interop/package-lock.json .interop/
	cd .interop && npm install --ignore-scripts --no-audit --no-fund --loglevel=error
	@touch $@

# There are wheels for few platforms; where there is none, its tests say so.
.interop/action-engine/.stamp: tests/interop/action_engine/requirements.lock | $(BASE)
	@rm -rf $(@D)
	$(ENVIRONMENT)
	@{ $(call FILL,$(EXACTLY) $< --only-binary :all:); } || { rm -rf $(@D); mkdir -p $(@D); }
	@touch $@

# The second, older flatbuffers is the one that the client asks for; programs choose it with PYTHONPATH.
.interop/graphpipe/.stamp: tests/interop/graphpipe/requirements.lock tests/interop/graphpipe/pinned.lock | $(BASE)
	@rm -rf $(@D)
	$(ENVIRONMENT)
	@$(call FILL,$(EXACTLY) $<)
	@$(call FILL,$(EXACTLY) $(word 2,$^) --target $(@D)/pinned)
	@touch $@

.interop/cloudevents/.stamp: tests/interop/cloudevents/requirements.lock | $(BASE)
	@rm -rf $(@D)
	$(ENVIRONMENT)
	@$(call FILL,$(EXACTLY) $<)
	@touch $@

.interop/openapi/.stamp: tests/interop/openapi/requirements.lock | $(BASE)
	@rm -rf $(@D)
	$(ENVIRONMENT)
	@$(call FILL,$(EXACTLY) $<)
	@touch $@

# Hosts of ASGI applications, with what invoker itself needs, since they import it.
.interop/asgi/.stamp: tests/interop/asgi/requirements.lock | $(BASE)
	@rm -rf $(@D)
	$(ENVIRONMENT)
	@$(call FILL,$(EXACTLY) $<)
	@touch $@
