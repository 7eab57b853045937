# Every verb does the set-up it needs itself; the stamps make the second time quick. `make help` lists the verbs.

FN ?= functions.running_mean:running_mean
SEEDS ?= 3000
FUZZ_SECONDS ?= 60
VENV ?= .venv
TESTS ?=
# One process for each core, for all tests; a choice of TESTS runs in one, as a debugger wants it.
SIDE_BY_SIDE ?= -n auto --dist worksteal
IMAGE ?= stream-invoker
ENGINE ?= docker podman buildah

# On protobuf 6, what makes and reads protobuf's messages: sessions, clients, services, the gRPC doors and what is served by them.
# Left out is what never meets one, or meets the same messages as other tests do: endings of the process, its log, HTTP and GraphPipe.
PB6_TESTS := tests/protocols tests/client tests/attach tests/server/endpoints tests/transports/grpc tests/e2e tests/codecs/anyvalue tests/codecs/test_checkpoint.py tests/test_testing.py \
    $(foreach t,protocols/graphpipe protocols/web/service/page $(foreach e,stopping shutdown log_reader cancels_all \
    lifecycle workers http_attacker websocket options_http generators_http reference tensors \
    tensor_authors graphpipe graphpipe_client graphpipe_doors graphpipe_foreign,e2e/test_$(e).py),--ignore tests/$(t))

# The part of the tests that shows that the source distribution is whole: the package, its samples, its pages.
DIST_TESTS := tests/core tests/codecs tests/cli/test_main.py tests/test_packaging.py tests/test_gendocs.py tests/test_pages.py tests/functions

# What takes libraries that are heavy and that few need.
AGENT_TESTS := tests/protocols/toolbridge/service/agents 'tests/test_pages.py::test_the_page_works[run-agents]' \
    tests/codecs/anyvalue/test_frames.py tests/e2e/test_toolbridge_frames.py

# What looks at the files only. No clock runs here, so it goes side by side with what is being installed.
STATIC := fmt-check lint types imports proto-check docs-check trace

# A few seconds of what `make fuzz` and `make simulate` do at length.
EXTRAS := $(if $(wildcard tests/fuzz*),fuzz-short) $(if $(wildcard tests/simulate*),simulate)

# The first interpreter that runs and is new enough; `make PYTHON=/path/to/python3.12 ...` overrides it.
CANDIDATES := python3 python3.14 python3.13 python3.12 python3.11 python
NEW_ENOUGH := import sys; sys.exit(sys.version_info < (3, 11))
PYTHON ?= $(shell for p in $(CANDIDATES); do $$p -c '$(NEW_ENOUGH)' 2>/dev/null && { command -v $$p; break; }; done)

BIN := $(VENV)/bin
PIP := -m pip install --quiet --disable-pip-version-check
LOCKED := $(PIP) --require-hashes -r
SELF := --no-deps --no-build-isolation --editable . --editable ./conformance
PROJECTS := pyproject.toml conformance/pyproject.toml conformance/setup.py
SDIST := from setuptools import build_meta as b; b.build_sdist('$(CURDIR)/dist')
BASE := $(VENV)/.stamp-base
DEV := $(VENV)/.stamp-dev
PROTO := .venv-proto/.stamp
PB6 := .venv-pb6/.stamp
AGENTS := .venv-agents/.stamp
INTEROP := .interop/.stamp
ACTION_ENGINE := .interop/action-engine/.stamp
GRAPHPIPE := .interop/graphpipe/.stamp
ASGI := .interop/asgi/.stamp
OPENAPI := .interop/openapi/.stamp
CLOUDEVENTS := .interop/cloudevents/.stamp
ECHO := build/bench/echo
PEERS := build/peers
CLIENTS := build/clients

.DEFAULT_GOAL := help
.PHONY: help run setup test test-all test-protobuf6 test-agents check setup-check fmt fmt-check lint types imports proto proto-check trace docs docs-check \
        conformance deletable setup-interop interop fuzz fuzz-short simulate bench bench-quick bench-cpp bench-peers bench-clients picture dist dist-unpack setup-dist dist-check image image-check lock clean

help: ## list the verbs
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / {printf "  make %-16s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

run: $(BASE) ## serve a function: make run FN=functions.repeat:repeat
	$(BIN)/python -m invoker $(FN)

setup: $(DEV) ## make .venv with the locked dependencies, for development

test: $(DEV) ## run the tests but the slow ones, or a choice: make test TESTS="tests/core -k order"
	$(BIN)/python -m pytest $(or $(TESTS),$(SIDE_BY_SIDE) -m "not slow")

test-all: $(DEV) ## run all tests, the slow ones too
	$(BIN)/python -m pytest $(SIDE_BY_SIDE)

test-protobuf6: $(PB6) ## run the tests on the newest protobuf 6
	.venv-pb6/bin/python -m pytest --quiet $(or $(TESTS),$(SIDE_BY_SIDE) $(PB6_TESTS))

test-agents: $(AGENTS) ## run the tests of agents, which need DSPy, and of DataFrames, which need pandas
	.venv-agents/bin/python -m pytest --quiet $(or $(TESTS),$(AGENT_TESTS))

check: ## all that CI asks for
	$(MAKE) -j 2 setup-check $(STATIC)
	$(MAKE) test-all test-protobuf6 test-agents conformance deletable $(EXTRAS)

setup-check: $(AGENTS) $(DEV) $(PB6) $(PROTO) ## make all environments that `make check` needs

fmt: $(DEV) ## format the code
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix-only --quiet .

fmt-check: $(DEV)
	$(BIN)/ruff format --check --quiet .

lint: $(DEV) ## lint the code
	$(BIN)/ruff check --quiet .

types: $(DEV) ## check the types
	$(BIN)/mypy

imports: $(DEV) ## check the dependency rule
	$(BIN)/lint-imports --config setup.cfg --no-logo
	cd conformance && $(abspath $(BIN))/lint-imports --config setup.cfg --no-logo --cache-dir ../.import_linter_cache

proto: $(PROTO) ## write invoker/_pb from proto/
	.ci/proto

proto-check: $(PROTO) ## fail when invoker/_pb is not what proto/ gives
	.ci/proto --check

trace: $(DEV) ## fail when a MUST of docs/reference has no test
	$(BIN)/python -m tests.trace

docs: $(DEV) ## write the generated pages of docs/reference
	$(BIN)/python -m tests.gendocs

docs-check: $(DEV)
	$(BIN)/python -m tests.gendocs --check

deletable: $(DEV) ## fail when something breaks without one of the protocols
	$(BIN)/python -m tools deletable

conformance: $(DEV) ## judge our own server from outside
	$(BIN)/python -m tests.judge

setup-interop: $(INTEROP) $(ACTION_ENGINE) $(GRAPHPIPE) $(ASGI) $(OPENAPI) $(CLOUDEVENTS) ## install the foreign clients into .interop

interop: $(DEV) $(INTEROP) $(ACTION_ENGINE) $(GRAPHPIPE) $(ASGI) $(OPENAPI) $(CLOUDEVENTS) ## run foreign clients (Node, buf, curl, action-engine, graphpipe) and hosts (FastAPI, uvicorn, Jupyter)
	$(BIN)/python -m pytest $(or $(TESTS),$(SIDE_BY_SIDE) tests/interop)

picture: $(DEV) $(INTEROP) ## take the picture of the page that README.md shows
	$(BIN)/python -m tests.picture

fuzz: $(DEV) ## throw garbage at a server for FUZZ_SECONDS
	$(BIN)/python -m tests.fuzz --seconds $(FUZZ_SECONDS)

fuzz-short: FUZZ_SECONDS := 5
fuzz-short: fuzz

simulate: $(DEV) ## run SEEDS random schedules through the pure core
	$(BIN)/python -m tests.simulate --seeds $(SEEDS)

bench: $(DEV) bench-cpp bench-peers bench-clients ## measure beside bare grpc.aio, C++, FastAPI and others (PEER=host:port adds a running invoker, BEFORE=folder an older checkout)
	$(BIN)/python -m benchmarks --write
	$(BIN)/python -m benchmarks.headline

bench-quick: $(DEV) bench-cpp bench-peers bench-clients ## the same in less than six minutes: one short round, nothing written
	$(BIN)/python -m benchmarks --quick

bench-peers: # FastAPI, uvicorn, functions-framework and LitServe; without them their columns are left out
	@$(MAKE) --no-print-directory $(PEERS)/.stamp || echo "the peers of benchmarks/peers.lock cannot be installed" >&2

$(PEERS)/.stamp: benchmarks/peers.lock
	@rm -rf $(@D)
	$(PYTHON) -m venv $(@D)
	$(@D)/bin/python $(LOCKED) $< || { rm -rf $(@D); exit 1; }
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

dist-unpack: dist # into build/sdist, where only the environment may be from before
	mkdir -p build/sdist
	find build/sdist -mindepth 1 -maxdepth 1 ! -name .venv -exec rm -rf {} +
	tar -xzf "$$(ls -t dist/stream_invoker-*.tar.gz | head -1)" -C build/sdist --strip-components 1

setup-dist: $(DEV) # all of it, so that nobody installs into the environment that builds
	$(MAKE) --no-print-directory dist-unpack
	$(MAKE) --no-print-directory -C build/sdist setup PYTHON="$(PYTHON)"

dist-check: dist-unpack ## run a part of the tests from an unpacked source distribution, in an environment of its own
	$(MAKE) --no-print-directory -C build/sdist test PYTHON="$(PYTHON)" TESTS="$(SIDE_BY_SIDE) $(DIST_TESTS)"

image: ## build the container image of deploy/Containerfile: make image IMAGE=stream-invoker ENGINE=podman
	@for engine in $(ENGINE); do if command -v $$engine >/dev/null && $$engine info >/dev/null 2>&1; then \
	    exec $$engine build --file deploy/Containerfile --tag $(IMAGE) .; fi; done; \
	echo "make image needs a container engine that runs, one of: $(ENGINE). None does here: install one or start it (docker info" \
	    "says what is wrong). make image-check runs the same steps without one, as root." >&2; exit 1

image-check: $(DEV) ## run the steps of deploy/Containerfile in a bare root and serve from it, without a container engine
	$(BIN)/python -m tests.image

lock: ## write the lock files anew with the newest releases
	PYTHON="$(PYTHON)" .ci/lock --upgrade

clean: ## remove what the verbs have made
	rm -rf conformance/build conformance/*.egg-info .venv .venv-proto .venv-pb6 .venv-agents .interop .mypy_cache .pytest_cache .ruff_cache .import_linter_cache .hypothesis build dist *.egg-info

$(VENV)/bin/python:
	@test -n "$(PYTHON)" || { echo "no Python 3.11 or newer found; give one: make PYTHON=/path/to/python3" >&2; exit 1; }
	$(PYTHON) -m venv $(VENV)

$(BASE): requirements/base.lock $(PROJECTS) | $(VENV)/bin/python
	$(BIN)/python $(LOCKED) requirements/base.lock
	$(BIN)/python $(PIP) $(SELF)
	@touch $@

$(DEV): requirements/dev.lock $(BASE)
	$(BIN)/python $(LOCKED) requirements/dev.lock
	@touch $@

$(PROTO): requirements/proto.lock
	@test -x .venv-proto/bin/python || $(PYTHON) -m venv .venv-proto
	.venv-proto/bin/python $(LOCKED) requirements/proto.lock
	@touch $@

$(PB6): requirements/protobuf6.lock $(PROJECTS)
	@test -x .venv-pb6/bin/python || $(PYTHON) -m venv .venv-pb6
	.venv-pb6/bin/python $(LOCKED) requirements/protobuf6.lock
	.venv-pb6/bin/python $(PIP) $(SELF)
	@touch $@

$(AGENTS): requirements/agents.lock $(PROJECTS)
	@test -x .venv-agents/bin/python || $(PYTHON) -m venv .venv-agents
	.venv-agents/bin/python $(LOCKED) requirements/agents.lock
	.venv-agents/bin/python $(PIP) $(SELF)
	@touch $@

$(INTEROP): tests/interop/package.json tests/interop/package-lock.json
	@mkdir -p .interop
	cp tests/interop/package.json tests/interop/package-lock.json .interop/
	cd .interop && npm install --ignore-scripts --no-audit --no-fund --loglevel=error
	@touch $@

# There are wheels for few platforms; where there is none, its tests say so.
$(ACTION_ENGINE): tests/interop/action_engine/requirements.lock
	@rm -rf $(@D)
	$(PYTHON) -m venv $(@D)
	$(@D)/bin/python $(LOCKED) $< --only-binary :all: || { rm -rf $(@D); mkdir -p $(@D); }
	@touch $@

# The second, older flatbuffers is the one that the client asks for; programs choose it with PYTHONPATH.
$(GRAPHPIPE): tests/interop/graphpipe/requirements.lock tests/interop/graphpipe/pinned.lock
	@rm -rf $(@D)
	$(PYTHON) -m venv $(@D)
	$(@D)/bin/python $(LOCKED) $< --no-deps
	$(@D)/bin/python $(LOCKED) $(word 2,$^) --no-deps --target $(@D)/pinned
	@touch $@

$(CLOUDEVENTS): tests/interop/cloudevents/requirements.lock
	@rm -rf $(@D)
	$(PYTHON) -m venv $(@D)
	$(@D)/bin/python $(LOCKED) $<
	@touch $@

$(OPENAPI): tests/interop/openapi/requirements.lock
	@rm -rf $(@D)
	$(PYTHON) -m venv $(@D)
	$(@D)/bin/python $(LOCKED) $<
	@touch $@

# Hosts of ASGI applications, with what invoker itself needs, since they import it.
$(ASGI): tests/interop/asgi/requirements.lock
	@rm -rf $(@D)
	$(PYTHON) -m venv $(@D)
	$(@D)/bin/python $(LOCKED) $<
	@touch $@
