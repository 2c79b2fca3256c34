# Every target is run from the root of the repository. `make help` lists them.

GO       ?= go
TOOL     := $(GO) tool -modfile=tools/go.mod
LINT     := $(TOOL) golangci-lint
BUF      := $(TOOL) buf

PKGS     ?= ./...
# How long each fuzz target and torture run, and the seed to repeat.
FUZZTIME ?= 10s
DURATION ?= 5m
SEED     ?= 1
# What scripts run on: sim (virtual time), proc (real processes) or both.
RUNNER   ?= sim
# Where failing runs leave their histories.
KEEP     ?= $(CURDIR)/bin/histories

# Modules of their own beside the main one, once they exist.
MODULES := $(patsubst %/go.mod,%,$(wildcard bench/go.mod))

.DEFAULT_GOAL := help
.NOTPARALLEL:
.PHONY: help build test race scripts torture soak mutants faults fuzz golden bench bench-peers bench-smoke lint fmt fmt-check vet check cross generate demo clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  %-10s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

build: ## build every package, and the stave program into bin/
	$(GO) build ./...
	@if [ -d cmd/stave ]; then $(GO) build -o bin/stave ./cmd/stave; fi
	@for m in $(MODULES); do (cd $$m && $(GO) build ./...) || exit 1; done

test: ## run all tests that need no other process (under a minute)
	$(GO) test -timeout 5m $(PKGS)

race: ## run all tests under the race detector
	$(GO) test -race -timeout 12m $(PKGS)

scripts: ## run testdata/scripts in virtual time, or with RUNNER=proc against processes
	$(GO) test -count=1 -timeout 30m ./cmd/stave -run 'TestScripts$$' -runner $(RUNNER) -seed $(SEED) -keep $(KEEP)

faults: ## run processes under kills, pauses, lost power and sick disks (root; 20 minutes)
	STAVE_FAULTS=1 $(GO) test -count=1 -timeout 60m ./internal/testproc -v

torture: ## run random faults against processes for DURATION, with SEED
	$(GO) test -race -count=1 -timeout 0 ./cmd/stave -run 'TestTorture$$' -v -torture $(DURATION) -seed $(SEED) -keep $(KEEP)

soak: ## torture for four hours, without the race detector
	$(GO) test -count=1 -timeout 0 ./cmd/stave -run 'TestTorture$$' -v -torture 4h -seed $(SEED) -keep $(KEEP)

mutants: ## plant each bug of testdata/mutants and show that the suite finds it
	$(GO) test -count=1 -timeout 0 ./cmd/stave -run 'TestMutants$$' -v -mutants

fuzz: ## run every fuzz target for FUZZTIME
	tools/fuzz.sh $(FUZZTIME)

golden: ## write the golden files anew; review the difference like code
	tools/golden.sh

bench: ## run the Go benchmarks
	$(GO) test -run '^$$' -bench . -benchmem $(PKGS)
	@for m in $(MODULES); do (cd $$m && $(GO) test -run '^$$' -bench . -benchmem ./...) || exit 1; done

# What bench-peers passes on, as -workloads a,b -reps 2.
PEERFLAGS ?=

bench-programs:
	$(GO) build -o bin/stave ./cmd/stave
	cd bench && $(GO) build -o ../bin/etcd ./etcd && $(GO) build -o ../bin/peers ./cmd/peers

bench-peers: bench-programs ## measure beside etcd and ZooKeeper; writes bench/RESULTS.md
	bench/install.sh
	bin/peers -stave bin/stave -etcd bin/etcd -out bench $(PEERFLAGS)

bench-smoke: bench-programs ## show in a minute that bench-peers still works
	bin/peers -smoke -reps 1 -systems stave,etcd -stave bin/stave -etcd bin/etcd

lint: ## run the linters and check the formatting
	$(LINT) run $(PKGS)

fmt: ## format all Go files
	$(LINT) fmt

fmt-check:
	$(LINT) fmt --diff

vet: ## run go vet, with every build tag in use
	$(GO) vet ./...
	@for t in $$(tools/tags.sh); do echo "$(GO) vet -tags $$t ./..."; $(GO) vet -tags $$t ./... || exit 1; done
	@for m in $(MODULES); do (cd $$m && $(GO) vet ./...) || exit 1; done

cross: ## build for the other supported systems
	GOOS=darwin GOARCH=arm64 CGO_ENABLED=0 $(GO) build ./...

check: fmt-check vet build cross lint race scripts bench-smoke ## everything CI runs

generate: ## write the generated Go of api and examples beside its .proto files
	$(BUF) lint --config tools/buf.yaml
	$(BUF) generate --config tools/buf.yaml --template tools/buf.gen.yaml --output api
	$(BUF) lint --config tools/buf.examples.yaml
	$(BUF) generate --config tools/buf.examples.yaml --template tools/buf.examples.gen.yaml --output examples

demo: build ## show a rescale on a cluster on this machine
	bash testdata/demo.sh

clean: ## remove what the other targets wrote
	rm -rf bin dist
	$(GO) clean -testcache
