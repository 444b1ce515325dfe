# The everyday commands. `make help` lists them.
SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help

PRESET ?= release
JOBS ?= $(shell nproc)
SECONDS ?= 60
ROUNDS ?= 5
BUILD := build/$(PRESET)
PYTHON := build/venv/bin/python
LINT := /usr/bin/python3 hack/lint

.PHONY: help setup build demo-build test-build demo demo-replicas demo-cluster serve test test-packaging test-packaging-full test-cluster test-cluster-full test-goldens lint format bench bench-peers bench-tokenizer bench-replays chaos chaos-replicas fairness memory soak stream-model coverage fuzz release test-asan test-tsan instrumented-build ci clean

help: ## print this text
	@echo "Sightline. On a fresh Debian 12 machine, run 'make demo' or 'make test'. Both install their needs."
	@sed -n 's/^\([a-z-]*\):[^#]*## \(.*\)/  make \1\t\2/p' Makefile | expand -t 22
	@echo "Variables: PRESET=release|dev|asan|tsan (build/PRESET), JOBS=N (default: all cores)."

setup: ## install packages and the Python environment (hack/setup --check lists missing ones)
	@hack/setup

build: setup ## build the programs into build/release/bin
	@cmake --preset $(PRESET) --log-level=WARNING >/dev/null
	@cmake --build $(BUILD) -j$(JOBS) --target programs

# The demos need the model directories of the test data.
demo-build: build
	@cmake --build $(BUILD) -j$(JOBS) --target test_models

test-build: setup
	@cmake --preset $(PRESET) --log-level=WARNING >/dev/null
	@cmake --build $(BUILD) -j$(JOBS)

# The programs and their tests, without benchmarks.
instrumented-build: setup
	@cmake --preset $(PRESET) --log-level=WARNING >/dev/null
	@cmake --build $(BUILD) -j$(JOBS) --target tested

demo: demo-build ## run two simulated engines and a router: requests about a picture go to the same engine
	@$(PYTHON) hack/demo --build $(BUILD)

demo-replicas: demo-build ## run NATS, two agents, two routers, a frontend: the routers share blocks and load
	@$(PYTHON) hack/demo-replicas --build $(BUILD)

demo-cluster: demo-build ## run Kubernetes on this machine, the operator and one object, and send a picture (as root)
	@$(PYTHON) hack/demo-cluster --build $(BUILD)

serve: demo-build ## keep two simulated engines and a router running for curl, until Ctrl-C
	@$(PYTHON) hack/serve --build $(BUILD)

test: test-build ## build everything, run all tests (C++, Python, lint rules)
	@hack/run_tests $(BUILD)

# These tests wait half of the time, so two processes run for each core.
test-packaging: demo-build ## test the installed parts: chart, alerts, boards, images (no cluster)
	@SL_BUILD=$(CURDIR)/$(BUILD) $(PYTHON) -m pytest -c tests/pytest.ini tests/packaging \
		-n $$((2 * $(JOBS))) --dist loadfile

# These tests mostly wait for alerts, so more processes run than the machine has cores.
test-packaging-full: test-packaging ## the same, also wait for slow alerts, compare two releases of one commit (40 minutes)
	@SL_BUILD=$(CURDIR)/$(BUILD) $(PYTHON) -m pytest -c tests/pytest.ini \
		tests/packaging/test_live_alerts.py --cleared -n 6 --dist load --durations 5
	@hack/compare_releases

test-cluster: demo-build ## run tests on a real Kubernetes, as root with real pods (else TESTBED_PODS=off)
	@hack/run_cluster_tests $(BUILD)

test-cluster-full: demo-build ## the same, with 200 kills of the operator, all faults of its API server, 100 objects at rest (SEED=N)
	@SL_CLUSTER_FULL=1 SEED=$(SEED) hack/run_cluster_tests $(BUILD)

test-goldens: test-build ## run the full golden tables of a directory outside the repository: GOLDENS=DIR
	@hack/run_goldens $(BUILD) "$(GOLDENS)"

lint: setup ## check the project's rules; each finding names its rule (PATHS=DIR: findings there)
	@$(LINT) $(PATHS)

format: setup ## rewrite C++ sources with clang-format
	@git ls-files -co --exclude-standard '*.h' '*.cc' | xargs -r clang-format-14 -i

chaos: test-build ## inject random faults, run hostile clients: SECONDS=60, SEED=N (default: a new seed)
	@$(PYTHON) tests/chaos/run --build $(BUILD) --seconds $(SECONDS) $(if $(SEED),--seed $(SEED))

chaos-replicas: test-build ## the same with several routers; NATS, agents and routers fail: SECONDS=60, SEED=N
	@$(PYTHON) tests/chaos/replicas --build $(BUILD) --seconds $(SECONDS) $(if $(SEED),--seed $(SEED))

memory: test-build ## fill a memory budget of 1.5 GiB with hostile clients and engines: SECONDS=60 for each kind
	@$(PYTHON) tests/chaos/memory --build $(BUILD) --seconds $(SECONDS)

fairness: test-build ## block the events thread beside healthy engines, then let one lose its blocks silently: SECONDS=60
	@$(PYTHON) tests/chaos/fairness --build $(BUILD) --seconds $(SECONDS)

soak: ## run chaos and chaos-replicas, ten minutes each
	@$(MAKE) --no-print-directory chaos SECONDS=600
	@$(MAKE) --no-print-directory chaos-replicas SECONDS=600

stream-model: test-build ## compare both ends of a stream with plain sets: ROUNDS=5 of 200,000 steps, new ones each round
	@$(BUILD)/bin/test_streams_integration --gtest_filter='StreamModel.*' --gtest_shuffle --gtest_repeat=$(ROUNDS)

bench: test-build ## measure tokenizer, block keys, index, cost per request and more; print the method
	@tests/bench/run $(BUILD)

bench-peers: test-build ## compare the router's cost with nginx, and with PEERS=smg,vllm-router,sglang-router
	@$(PYTHON) tests/bench/peers/run $(BUILD) --peers "$(PEERS)"

bench-tokenizer: test-build ## compare the tokenizer's ids and speed with two others (downloads 20 MB)
	@$(PYTHON) tests/bench/tokenizer/run $(BUILD)

bench-replays: test-build ## start a router beside publishers with vLLM's limits: 10,000 batches, 100 and 1,000 engines
	@$(PYTHON) tests/bench/replay_bench.py $(BUILD)

test-asan: ## run all tests of the programs under AddressSanitizer, UBSan and LeakSanitizer
	@$(MAKE) --no-print-directory instrumented-build PRESET=asan
	@hack/run_tests build/asan

test-tsan: ## run all tests of the programs under ThreadSanitizer
	@$(MAKE) --no-print-directory instrumented-build PRESET=tsan
	@hack/run_tests build/tsan

coverage: setup ## check that unit tests reach 95 of 100 lines of the operator's pure parts
	@hack/coverage

fuzz: setup ## fuzz the code that reads bytes from outside: SECONDS=60 for each target (TARGETS=… for some)
	@cmake --preset fuzz --log-level=WARNING >/dev/null
	@cmake --build build/fuzz -j$(JOBS) --target fuzz_targets
	@tests/fuzz/run build/fuzz $(SECONDS) $(TARGETS)

ci: ## run all steps of CI: lint, clean build, all tests
	@.ci/run

release: build ## write a release of a clean tree to build/dist: VERSION=X.Y.Z
	@hack/release "$(VERSION)"

clean: ## remove build/ with everything in it
	@rm -rf build
