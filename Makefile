# Every everyday command. `make help` explains them.
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

help: ## this text
	@echo "Sightline. On a fresh Debian 12 machine 'make demo' or 'make test' is all it takes."
	@sed -n 's/^\([a-z-]*\):[^#]*## \(.*\)/  make \1\t\2/p' Makefile | expand -t 22
	@echo "Variables: PRESET=release|dev|asan|tsan (build/PRESET), JOBS=N (default: all cores)."

setup: ## install packages and the Python environment (hack/setup --check only lists)
	@hack/setup

build: setup ## build the programs: build/release/bin/sightline
	@cmake --preset $(PRESET) --log-level=WARNING >/dev/null
	@cmake --build $(BUILD) -j$(JOBS) --target programs

# The demo's model directories come from the test data.
demo-build: build
	@cmake --build $(BUILD) -j$(JOBS) --target test_models

test-build: setup
	@cmake --preset $(PRESET) --log-level=WARNING >/dev/null
	@cmake --build $(BUILD) -j$(JOBS)

# Programs and tests, without what only measures.
instrumented-build: setup
	@cmake --preset $(PRESET) --log-level=WARNING >/dev/null
	@cmake --build $(BUILD) -j$(JOBS) --target tested

demo: demo-build ## two simulated engines and the router: see a picture's second request go home
	@$(PYTHON) hack/demo --build $(BUILD)

demo-replicas: demo-build ## NATS, two agents, two routers, a frontend: what one learns all know
	@$(PYTHON) hack/demo-replicas --build $(BUILD)

demo-cluster: demo-build ## Kubernetes here, the operator, one object: a picture sent twice (as root)
	@$(PYTHON) hack/demo-cluster --build $(BUILD)

serve: demo-build ## the same set-up, kept running for curl until Ctrl-C
	@$(PYTHON) hack/serve --build $(BUILD)

test: test-build ## build everything, run all tests (C++, Python, the lint rules' own)
	@hack/run_tests $(BUILD)

# Half of the time they wait: two processes for each core.
test-packaging: demo-build ## tests of what is installed: chart, alerts, boards, images (no cluster)
	@SL_BUILD=$(CURDIR)/$(BUILD) $(PYTHON) -m pytest -c tests/pytest.ini tests/packaging \
		-n $$((2 * $(JOBS))) --dist loadfile

# Alerts mostly wait: more processes than cores.
test-packaging-full: test-packaging ## the same, slow alerts waited for, two releases of one commit compared (40 minutes)
	@SL_BUILD=$(CURDIR)/$(BUILD) $(PYTHON) -m pytest -c tests/pytest.ini \
		tests/packaging/test_live_alerts.py --cleared -n 6 --dist load --durations 5
	@hack/compare_releases

test-cluster: demo-build ## tests on a real Kubernetes, as root with real pods (else TESTBED_PODS=off)
	@hack/run_cluster_tests $(BUILD)

test-cluster-full: demo-build ## the same, with 200 kills of the operator, all faults of its API server, 100 objects at rest (SEED=N)
	@SL_CLUSTER_FULL=1 SEED=$(SEED) hack/run_cluster_tests $(BUILD)

test-goldens: test-build ## run the full golden tables from outside: GOLDENS=DIR
	@hack/run_goldens $(BUILD) "$(GOLDENS)"

lint: setup ## check the house rules; each finding names its rule (PATHS=DIR: only there)
	@$(LINT) $(PATHS)

format: setup ## rewrite C++ sources with clang-format
	@git ls-files -co --exclude-standard '*.h' '*.cc' | xargs -r clang-format-14 -i

chaos: test-build ## faults of all kinds at random, hostile clients: SECONDS=60, SEED=N (default: a new one)
	@$(PYTHON) tests/chaos/run --build $(BUILD) --seconds $(SECONDS) $(if $(SEED),--seed $(SEED))

chaos-replicas: test-build ## the same with many routers: NATS, agents, routers fail: SECONDS=60, SEED=N
	@$(PYTHON) tests/chaos/replicas --build $(BUILD) --seconds $(SECONDS) $(if $(SEED),--seed $(SEED))

memory: test-build ## hostile clients beside a ledger of 1.5 GiB: SECONDS=60 of each kind
	@$(PYTHON) tests/chaos/memory --build $(BUILD) --seconds $(SECONDS)

fairness: test-build ## healthy engines while the events thread is held, then a lying one: SECONDS=60
	@$(PYTHON) tests/chaos/fairness --build $(BUILD) --seconds $(SECONDS)

soak: ## ten minutes of chaos each, with one router and with many
	@$(MAKE) --no-print-directory chaos SECONDS=600
	@$(MAKE) --no-print-directory chaos-replicas SECONDS=600

stream-model: test-build ## both ends of a stream against plain sets: ROUNDS=5 of 200,000 steps, others each time
	@$(BUILD)/bin/test_streams_integration --gtest_filter='StreamModel.*' --gtest_shuffle --gtest_repeat=$(ROUNDS)

bench: test-build ## measure: tokenizer, block keys, index, cost per request; prints the method
	@tests/bench/run $(BUILD)

bench-peers: test-build ## compare the cost with nginx's, and with PEERS=smg,vllm-router,sglang-router
	@$(PYTHON) tests/bench/peers/run $(BUILD) --peers "$(PEERS)"

bench-tokenizer: test-build ## compare the tokenizer, ids and speed, with two others (downloads 20 MB)
	@$(PYTHON) tests/bench/tokenizer/run $(BUILD)

bench-replays: test-build ## join publishers with vLLM's limits: 10,000 batches, 100 engines, 1,000 engines
	@$(PYTHON) tests/bench/replay_bench.py $(BUILD)

test-asan: ## all tests of the programs under AddressSanitizer, UBSan and LeakSanitizer
	@$(MAKE) --no-print-directory instrumented-build PRESET=asan
	@hack/run_tests build/asan

test-tsan: ## all tests of the programs under ThreadSanitizer
	@$(MAKE) --no-print-directory instrumented-build PRESET=tsan
	@hack/run_tests build/tsan

coverage: setup ## lines of the operator's pure parts that their unit tests reach: 95 of 100 at least
	@hack/coverage

fuzz: setup ## fuzz what reads bytes from outside, each target for SECONDS=60 (TARGETS=… for some)
	@cmake --preset fuzz --log-level=WARNING >/dev/null
	@cmake --build build/fuzz -j$(JOBS) --target fuzz_targets
	@tests/fuzz/run build/fuzz $(SECONDS) $(TARGETS)

ci: ## what CI runs: lint, clean build, all tests
	@.ci/run

release: build ## make build/dist, of a clean tree: VERSION=X.Y.Z
	@hack/release "$(VERSION)"

clean: ## remove everything that was built or set up below build/
	@rm -rf build
