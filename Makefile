# Postern. `make` prints the targets.

GO      ?= go
BIN     := bin
VERSION ?= $(shell git describe --always --dirty 2>/dev/null || echo dev)
LDFLAGS := -s -w -X github.com/postern-io/postern/cmd/internal/cli.release=$(VERSION)
export CGO_ENABLED ?= 0

.DEFAULT_GOAL := help
.PHONY: help run test build race fuzz e2e kill bench lint check tools

help: ## show this list
	@awk 'BEGIN {FS = ":.*## "} /^[a-z0-9-]+:.*## / {printf "  make %-8s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

run: ## start the demo: one cloud, two cabinets, a kiosk, two webhook receivers; prints its addresses
	$(GO) run ./cmd/demo

test: ## run all tests
	$(GO) test ./...

build: ## build the programs into bin/
	@mkdir -p $(BIN)
	$(GO) build -trimpath -ldflags "$(LDFLAGS)" -o $(BIN)/ ./cmd/cloud ./cmd/edge ./cmd/firmware-sim ./cmd/demo

race: ## run all tests under the race detector (needs gcc)
	CGO_ENABLED=1 $(GO) test -race -short ./...

FUZZTIME ?= 10s
fuzz: ## fuzz every decoder for FUZZTIME each (10s)
	@for pkg in $$($(GO) list ./...); do \
	  for f in $$($(GO) test -list '^Fuzz' $$pkg | grep '^Fuzz' || true); do \
	    echo "$$pkg $$f"; $(GO) test -run '^$$' -fuzz "^$$f$$" -fuzztime $(FUZZTIME) $$pkg || exit 1; \
	  done; \
	done

e2e: ## the simulated world with 1,000 seeds
	$(GO) test ./cmd/e2e -run TestAnySeed -seeds 1000 -timeout 60m

kill: ## kill -9 of real processes, 50 rounds each side
	$(GO) test ./cmd/e2e -run Kill -kill-rounds 50 -hook-kill-rounds 50 -count 1 -timeout 30m -v

bench: ## the figures, as ratios against a bare loop of the same run
	$(GO) test -run '^$$' -bench . -benchtime 2s ./edge/... ./cloud/... ./cmd/bench

lint: ## vet, format, staticcheck
	@test -z "$$(gofmt -l .)" || { echo "not gofmt-ed:"; gofmt -l .; exit 1; }
	$(GO) vet ./...
	$(GO) run honnef.co/go/tools/cmd/staticcheck@v0.8.2 ./...

check: lint test ## what a change must pass
	$(GO) mod tidy -diff
	$(GO) mod verify
