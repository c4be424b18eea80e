# The tasks of this repository; `make help` lists them. Besides the usual tools of a Unix system they need only Go, git and
# a C compiler (for the race detector): every other program is built from the Go modules that this repository pins.

SHELL := /usr/bin/env bash
.DEFAULT_GOAL := help

# The command that runs the tests. The targets check, bench, fuzz and lint do not use it.
GOTEST ?= go test
FUZZTIME ?= 20s
BENCH ?= .
RUNS ?= 1000000
CASES ?= 100000
STATES ?= 1000
MEMORY ?= 16GiB
TOOL := go tool -modfile=tools/go.mod

.PHONY: help build image test race e2e check judge explore security mutants simulate plans story torn writers hunt divide rollouts bench applications states buildcost surface reference release api fuzz lint generate drift compat demo demo-kubecon demo-availability

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## /{printf "  make %-13s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

build: ## compile the packages of the library, the examples, the commands and the end-to-end module
	go build ./...
	for m in $(wildcard adapters/*/go.mod examples/*/go.mod cmd/*/go.mod deploy/*/go.mod) internal/e2e/go.mod; do (cd "$$(dirname "$$m")" && go build ./...) || exit 1; done

test: ## unit tests of the library, the examples, the commands and the end-to-end module (4 minutes)
	GOTEST="$(GOTEST)" .ci/test

race: ## unit tests of the library under the race detector: with -short, and without the packages that have neither goroutines nor locks (check: a third)
	GOTEST="$(GOTEST)" .ci/race

e2e: ## the suites on real API servers; the first run also builds the API servers, which takes minutes (check: not all suites)
	GOTEST="$(GOTEST)" .ci/e2e

check: ## everything that a change must pass: test, race, e2e, lint, drift (.ci/run)
	.ci/run

judge: ## the suites fanout, kill, race, peers, skew and split, in the sizes of docs/evidence/e2e.md (an hour)
	cd internal/e2e && ATOLL_KILLS=1000 ATOLL_ROUNDS=500 ATOLL_FREEZE=30s ATOLL_CHANGES=50 ATOLL_RESTORES=50 ATOLL_SPLIT_KILLS=100 ATOLL_SPLIT_CHAOS=50 ATOLL_AMBIGUITY_EVERY=1 ATOLL_SKEW=100 \
		$(GOTEST) -count=1 -v -timeout 120m -p 1 ./suites/fanout ./suites/kill ./suites/race ./suites/peers ./suites/skew ./suites/split

PROTOCOL := ATOLL_DOCS="$(CURDIR)/docs/evidence" $(GOTEST) -count=1 -timeout 300m -v ./fanout/internal/protocol

explore: ## explore all interleavings of the protocol's large models, and write the figures to docs/evidence/exploration.md (an hour with MEMORY=16GiB, the default; several hours with less)
	GOGC=300 GOMEMLIMIT=$(MEMORY) ATOLL_EXPLORE=deep $(PROTOCOL) -run '^Test(Explore(Deep|Beyond)|ReductionsAreHarmless|ModelKnowsTheSchema)$$'

security: ## remove each guard of router and proxy in turn, run its test, and write the findings to docs/evidence/security.md
	ATOLL_DOCS="$(CURDIR)/docs/evidence" $(GOTEST) -count=1 -p 1 -run '^TestMutants$$' ./router ./router/proxy

mutants: security ## break each rule of the protocol and of the packages in turn, and write the test that fails to docs/evidence/mutants.md and docs/evidence/mutants-packages.md (an hour)
	$(PROTOCOL) -run '^TestMutants$$'
	ATOLL_MUTANTS=. ATOLL_DOCS="$(CURDIR)/docs/evidence" $(GOTEST) -count=1 -timeout 180m -run '^TestMutants$$' ./internal/mutants

simulate: ## run RUNS (1000000) random schedules of the protocol, and write the figures to docs/evidence/exploration.md (an hour)
	GOGC=400 ATOLL_RUNS=$(RUNS) $(PROTOCOL) -run '^TestSimulate(Losses|Restores)?$$'

plans: ## run Atoll's loops more than 10000 times, each time with a fault at one write or watch event, and write the figures to docs/evidence/plans.md (a quarter of an hour)
	GOGC=400 ATOLL_PLANS=full ATOLL_DOCS="$(CURDIR)/docs/evidence" $(GOTEST) -count=1 -timeout 60m -v -run '^TestPlans$$' ./internal/plans

story: ## run an installation through restarts, rotations and failures under the load of users, on real API servers, and write the figures to docs/evidence/story.md (10 minutes)
	cd internal/e2e && ATOLL_STEPS=40 ATOLL_DOCS="$(CURDIR)/docs/evidence" $(GOTEST) -count=1 -vet=off -timeout 60m -v ./suites/story

torn: ## test the log in the states in which a loss of power can leave its file, and write the figures to docs/evidence/torn-images.md
	ATOLL_DOCS="$(CURDIR)/docs/evidence" $(GOTEST) -count=1 -v -run '^Test(TornImages|CutFirstFile|FlippedBits|FileSizeLimit|FullLog)$$' ./wal

writers: ## write each field that a loop writes, with its field manager and the reason, to docs/evidence/writers.md
	ATOLL_PLANS=15 ATOLL_DOCS="$(CURDIR)/docs/evidence" $(GOTEST) -count=1 -timeout 60m -v -run '^TestWriters$$' ./internal/plans

hunt: ## search for failures from new seeds: CASES (100000) of each property test, schedules of merged watches, plans and states of the loops (hours)
	$(GOTEST) -count=1 -p 1 -timeout 120m -run '^Test' $$(grep -rl --include='*_test.go' -e '^\s"pgregory.net/rapid"' . | xargs -n1 dirname | sort -u) \
		-rapid.seed=0 -rapid.checks=$(CASES)
	ATOLL_SCHEDULES=1000 $(GOTEST) -count=1 -timeout 120m -run '^Test(Model|Informer)' ./router/aggregate
	seed=$$(od -An -N4 -tu4 /dev/urandom | tr -d ' '); echo "ATOLL_SEED=$$seed"; export ATOLL_SEED=$$seed; \
		GOGC=400 ATOLL_PLANS=full $(GOTEST) -count=1 -timeout 60m -run '^TestPlans$$' ./internal/plans && \
		ATOLL_STATES=$(STATES) $(GOTEST) -count=1 -timeout 60m -run '^TestStates$$' ./internal/plans

rollouts: ## test CASES (100000) of each property of rollouts over clusters
	$(GOTEST) -count=1 -timeout 120m -v ./splitter/rollout -rapid.checks=$(CASES)

divide: ## test CASES (100000) of each property of the division, compare the division with other methods, and write the figures to docs/division.md (minutes)
	ATOLL_CASES=$(CASES) ATOLL_DOCS="$(CURDIR)/docs" $(GOTEST) -count=1 -timeout 60m -v -run '^Test(Divide.*|MethodsCompared)$$' ./splitter \
		-rapid.checks=$(CASES)

applications: ## sync forty applications between real API servers, and write the findings to docs/evidence/applications.md (2 minutes)
	cd internal/e2e && ATOLL_DOCS="$(CURDIR)/docs/evidence" $(GOTEST) -count=1 -vet=off -timeout 30m -v -run '^TestApplications$$' ./suites/applications
	ATOLL_DOCS="$(CURDIR)/docs/evidence" $(GOTEST) -count=1 -run '^TestApplicationsAreDivided$$' ./splitter/placement

states: ## start Atoll's loops from STATES (1000) random states of API servers, and their decisions from CASES (100000) random inputs, and write the figures to docs/evidence/states.md (minutes)
	ATOLL_STATES=$(STATES) ATOLL_DOCS="$(CURDIR)/docs/evidence" $(GOTEST) -count=1 -timeout 60m -v -run '^TestStates$$' ./internal/plans
	ATOLL_DOCS="$(CURDIR)/docs/evidence" $(GOTEST) -count=1 -p 1 -timeout 60m -v -run '^TestStatesOf' ./splitter ./splitter/placement ./region/claim ./region/central ./syncer ./account \
		-rapid.checks=$(CASES)

bench: ## run the benchmarks and write docs/evidence/benchmarks.md
	go run ./internal/benchdoc -bench '$(BENCH)' -o docs/evidence/benchmarks.md ./...

buildcost: ## measure the cost of the quickstart's first build, and write it to docs/evidence/build-cost.md (minutes)
	.ci/buildcost

surface: ## write the exported identifiers with their users to docs/evidence/surface.md
	go -C tools run ./surface -o ../docs/evidence/surface.md .. $(patsubst %/go.mod,../%,$(wildcard adapters/*/go.mod examples/*/go.mod cmd/*/go.mod)) ../internal/e2e

reference: ## write the reference of errors and of CRDs to docs/evidence/errors.md and docs/evidence/crds.md (seconds)
	ATOLL_DOCS="$(CURDIR)/docs/evidence" $(GOTEST) -count=1 ./internal/reference

image: ## build the OCI images of cmd/atoll-gateway and cmd/atoll-manager into bin/NAME.oci, and print their digests (minutes)
	mkdir -p bin && rm -rf bin/atoll-gateway.oci bin/atoll-manager.oci
	cd tools/image && for name in atoll-gateway atoll-manager; do go run . -program cmd/$$name -out "$(CURDIR)/bin/$$name.oci" || exit 1; done

release: ## make the release VERSION (such as v0.4.0) of HEAD in bin/release: tags, modules, programs, SBOMs, checksums (minutes)
	rm -rf bin/release
	go -C tools/release run . -version "$(VERSION)" -out "$(CURDIR)/bin/release"

api: ## list the changes of the exported API since the first release in docs/evidence/api-changes.md (seconds)
	.ci/api -w

fuzz: ## run every fuzz target for FUZZTIME (20s)
	go run ./internal/testsum -fuzz $(FUZZTIME) ./...

lint: ## gofmt, go vet, the house rules, golangci-lint (the first run also builds golangci-lint, which takes minutes)
	.ci/lint

generate: ## write CRDs, deep copies and fanout_schema.json from the API types
	go generate ./config

drift: generate ## generate the files again, and fail if one of them differs from the version in git
	@git diff --exit-code -- config '*/zz_generated*' fanout/v1alpha1/fanout_schema.json || { echo 'generated files differ: run `make generate` and commit'; exit 1; }

compat: ## test the library with other Kubernetes releases (half an hour)
	.ci/compat

demo: ## run the quickstart on three real control planes
	cd internal/e2e && go run ./cmd/planes -n 3 -dir "$$(mktemp -d)" -- go -C ../.. run ./examples/quickstart {kubeconfigs}

demo-kubecon: ## run the example kubecon: an upstream learns the type Deployment from three real clusters, and divides a Deployment over them
	cd internal/e2e && go run ./cmd/planes -n 3 -pods -upstream -dir "$$(mktemp -d)" -- go -C ../.. run ./examples/kubecon {kubeconfigs}

demo-availability: ## run the example availability on real clusters: a divided Deployment with an autoscaler and a budget, through load, loss and drains; writes docs/images/availability.svg
	cd internal/e2e && go run ./cmd/planes -n 3 -pods -nodes 2 -upstream -dir "$$(mktemp -d)" -- go -C ../.. run ./examples/availability -grace 20s -chart docs/images/availability.svg {kubeconfigs}
