# Postern. `make` prints the targets.

GO      ?= go
BIN     := bin
VERSION ?= $(shell git describe --always --dirty 2>/dev/null || echo dev)
LDFLAGS := -s -w -X github.com/postern-io/postern/cmd/internal/cli.release=[[postern-release:$(VERSION)]]
export CGO_ENABLED ?= 0

.DEFAULT_GOAL := help
.PHONY: help run cluster test test-check build race fuzz attack e2e kill bench lint check tools full full-seeds full-kills full-cluster full-postgres full-browsers full-crash full-stories full-fuzz full-race full-soak soak mutants conformance release packages image cabinet-image

# The three rings. `make test` runs the quick one: short seeds, each model on SQLite, in
# one process. `make check` adds the real programs, PostgreSQL, one pass of the browser
# and other people's tools. `make full` runs the same tests whole, in parts of at most
# an hour each on two cores. Each holds the ones before it; tests ask package
# internal/ring which one it is.
#
# No wait in a test has a bound of its own: these are the only ones. A package of
# the quick ring ends within a minute or two on a calm machine.
QUICK   ?= 15m
HOUR    := 60m
# Packages at once, and test goroutines of each: three keep two cores busy while
# browsers and disks are waited for.
AT_ONCE ?= -p 3 -parallel 4
# Test programs without tables for a debugger are linked in half the time, which
# is a fifth of the quick ring.
LINKED  := -ldflags '-s -w'
# Tests make much garbage in small heaps: a heap of five times what lives costs a
# tenth less processor time than one of twice that.
test test-check full-seeds-% full-kills-%: export GOGC := 400
test test-check full-seeds-% full-kills-%: export GOMEMLIMIT := 1GiB
# Files of tests lie in memory where there is room: power cuts are played in process,
# and a killed process loses nothing that the kernel has, so that a disk would only
# let tests wait for thousands of syncs. Benchmarks and the rest of the full ring
# stay on the disk.
MEMORY := $(shell test -w /dev/shm && test "$$(df -Pk /dev/shm | awk 'NR == 2 {print $$4}')" -gt 6000000 && echo /dev/shm)
ifneq ($(MEMORY),)
test test-check race full-seeds-% full-kills-% conformance: export TMPDIR := $(MEMORY)
endif

# Packages that start goroutines of their own; cmd/internal/archtest keeps the
# list whole.
RACE := ./cloud/device ./cloud/fetch ./cloud/hosted ./cloud/httpdevice ./cloud/job ./cloud/live ./cloud/mcp ./cloud/mock ./cloud/mqttbroker ./cloud/notification ./cloud/page/stream ./cloud/push ./cloud/rest/events ./cloud/tracking ./cloud/webhook/sender \
        ./edge/agent ./edge/board ./edge/buffer ./edge/kiosk ./edge/locker ./edge/scanner ./edge/uplink ./firmware-sim/board ./firmware-sim/page ./internal/localpage

help: ## show this list
	@awk 'BEGIN {FS = ":.*## "} /^[a-z0-9-]+:.*## / {printf "  make %-14s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

run: ## start the demo: one cloud, two cabinets, a kiosk, two webhook receivers; a parcel waits for you
	$(GO) run ./cmd/demo

cluster: ## start the demo on three nodes of the cloud behind a balancer: kill any of them (needs haproxy and PostgreSQL)
	$(GO) run ./cmd/demo --cluster

# The simulated days take longest and wait for little: first, so that they do not
# end alone.
TESTS := $(GO) test $(AT_ONCE) $(LINKED) -timeout $(QUICK) ./cmd/e2e ./cloud/api ./cloud/server ./...
test: ## run the tests of the quick ring, in some minutes; what has not changed is not run again
	$(TESTS)

test-check: ## run the tests of `make check`: those of `make test`, real programs, PostgreSQL, a browser
	POSTERN_RING=check $(TESTS)

build: ## build the programs into bin/
	@mkdir -p $(BIN)
	$(GO) build -trimpath -ldflags "$(LDFLAGS)" -o $(BIN)/ ./cmd/cloud ./cmd/edge ./cmd/release ./cmd/firmware-sim ./cmd/httpdevice ./cmd/demo

# A release: one archive for each system with the programs, their settings' examples
# and the licence, and SHA256SUMS over all. The same commit gives the same bytes on
# any machine with the same Go: no time, owner, mask or path of the machine is in them.
DIST    ?= dist
SYSTEMS ?= linux-amd64 linux-arm64 linux-arm darwin-arm64
release: $(SYSTEMS:%=release-%) ## build dist/: an archive for each of SYSTEMS, and SHA256SUMS
	cd $(DIST) && sha256sum postern-$(VERSION)-*.tar.gz > SHA256SUMS && cat SHA256SUMS

release-%:
	@set -e; name=postern-$(VERSION)-$*; rm -rf $(DIST)/$$name; mkdir -p $(DIST)/$$name; \
	GOOS=$(firstword $(subst -, ,$*)) GOARCH=$(lastword $(subst -, ,$*)) CGO_ENABLED=0 \
	  $(GO) build -trimpath -ldflags "$(LDFLAGS)" -o $(DIST)/$$name/ ./cmd/cloud ./cmd/edge ./cmd/release ./cmd/firmware-sim; \
	cp -r LICENSE README.md CHANGELOG.md SECURITY.md CONTRIBUTING.md configs docs $(DIST)/$$name/; \
	tar --sort=name --owner=0 --group=0 --numeric-owner --mode=a+rX,u+w,go-w --mtime="$$(git log -1 --format=%cI)" -C $(DIST) -cf - $$name | gzip -n > $(DIST)/$$name.tar.gz; \
	rm -rf $(DIST)/$$name

# Debian packages of cloud and edge agent. The same commit gives the same bytes here, too.
DEB_ARCHS ?= amd64 arm64 armhf
packages: ## build dist/: Debian packages of cloud and edge agent for each of DEB_ARCHS
	GO="$(GO)" VERSION="$(VERSION)" LDFLAGS="$(LDFLAGS)" deploy/package/build $(DIST) $(DEB_ARCHS)

# The disk image of a cabinet's computer with its screen.
SSH_KEY ?=
cabinet-image: ## build dist/cabinet.img, as root: the disk of a cabinet's computer with its screen, of Debian's packages and ours
	$(MAKE) packages DEB_ARCHS=amd64
	deploy/kiosk/image $(DIST)/cabinet.img $(DIST) $(SSH_KEY)

# The container image as an OCI layout, without a daemon and without root; it prints the
# digest, which the same commit gives on any machine with the same Go.
PLATFORMS ?= linux/amd64,linux/arm64
image: ## build dist/image: the cloud's container image for each of PLATFORMS, as an OCI layout
	$(GO) run ./cmd/internal/image -o $(DIST)/image -release $(VERSION) -platforms $(PLATFORMS)

# Databases have no races of ours, and SQLite's translated source is most of what the
# detector would watch: here it is compiled without it, which makes the run three times
# as fast. PostgreSQL's runs, and SQLite's under the detector, are in full-race.
race: ## run what starts goroutines under the race detector (needs gcc)
	POSTERN_TEST_POSTGRES= CGO_ENABLED=1 $(GO) test $(AT_ONCE) $(LINKED) -race -gcflags=modernc.org/...=-race=false -short -timeout $(QUICK) $(RACE)

FUZZTIME ?= 10s
fuzz: ## fuzz every decoder for FUZZTIME each (10s)
	@for pkg in $$($(GO) list ./...); do \
	  for f in $$($(GO) test -list '^Fuzz' $$pkg | grep '^Fuzz' || true); do \
	    echo "$$pkg $$f"; $(GO) test -run '^$$' -fuzz "^$$f$$" -fuzztime $(FUZZTIME) -timeout $(HOUR) $$pkg || exit 1; \
	  done; \
	done

attack: ## what strangers and small keys try against a running cloud; part of check, too
	POSTERN_RING=check $(GO) test ./cmd/attack -count 1 -timeout $(QUICK)

e2e: ## the simulated world with the first 1,000 seeds
	POSTERN_SEEDS=1-1000 $(GO) test ./cmd/e2e -run '^TestAnySeed$$' -count 1 -timeout $(HOUR)

kill: ## kill -9 of real processes, 50 rounds each side
	POSTERN_RING=full POSTERN_ROUNDS=1-50 $(GO) test ./cmd/e2e -run '^TestKilled' -count 1 -timeout $(HOUR) -v

# Files lie on the disk, as they do where it runs.
SOAK ?= 10m
soak: ## the built programs under mixed load for SOAK (10m): memory and goroutines stay flat, files bounded
	POSTERN_RING=check POSTERN_SOAK=$(SOAK) $(GO) test ./cmd/e2e -run '^TestSoak$$' -count 1 -timeout $(HOUR) -v

# The full ring. Each part stands for itself: `make full` runs them in this order,
# and one that failed or was cut off is run again by its name. Seeds and rounds go
# in ranges: `make full-seeds SEEDS=2001-4000`, `make full-kills ROUNDS=1-200`.
# POSTERN_TEST_POSTGRES names the database and POSTERN_BROWSER_TESTS=require the
# browser; without them those tests are skipped.
FULL        := POSTERN_RING=full $(GO) test $(AT_ONCE) $(LINKED) -count 1 -timeout $(HOUR)
SEED_PARTS  := 1-2500 2501-5000 5001-7500 7501-10000
ROUND_PARTS := 1-200 201-400 401-600 601-800 801-1000
CLUSTER_PARTS := 1-60 61-120 121-160 161-200
BROWSERS    := ./cloud/docs/agent ./cloud/mcp ./cloud/page ./cloud/server

full: full-crash full-postgres full-browsers full-stories full-fuzz full-race full-soak full-cluster full-seeds full-kills ## everything, in parts of at most an hour

full-seeds: $(if $(SEEDS),full-seeds-$(SEEDS),$(SEED_PARTS:%=full-seeds-%)) ## the simulated world with 10,000 seeds, or SEEDS=FIRST-LAST
full-seeds-%:
	POSTERN_SEEDS=$* $(FULL) ./cmd/e2e -run '^TestAnySeed$$'

full-kills: $(if $(ROUNDS),full-kills-$(ROUNDS),$(ROUND_PARTS:%=full-kills-%)) ## kill -9 of real processes, 1,000 rounds each side, or ROUNDS=FIRST-LAST
full-kills-%:
	POSTERN_ROUNDS=$* $(FULL) ./cmd/e2e -run '^TestKilled'

full-postgres: ## the cloud's models and stories whole, on both databases
	$(FULL) $$($(GO) list ./cloud/... | grep -Ev '/cloud/(docs/agent|mcp|page|server)$$')

full-browsers: ## every page and language in a browser, other people's clients and conformance suites
	$(FULL) $(BROWSERS)

full-crash: ## the edge's models and crash images whole, frames and messages
	$(FULL) ./edge/... ./firmware-sim/... ./protocol/...

full-stories: ## programs, nodes and the demo's day
	$(FULL) -skip '^Test(AnySeed|Killed|NodesBehindABalancer)' ./cmd/... ./internal/...

full-cluster: $(if $(ROUNDS),full-cluster-$(ROUNDS),$(CLUSTER_PARTS:%=full-cluster-%)) ## three nodes behind a balancer (needs haproxy), killed and restarted in 200 rounds, or ROUNDS=FIRST-LAST
full-cluster-%:
	POSTERN_ROUNDS=$* $(FULL) ./cmd/e2e -run '^TestNodesBehindABalancer' -v

full-soak: ## the soak for 50 minutes
	$(MAKE) soak SOAK=50m

full-fuzz: ## fuzz every decoder for 45 seconds each
	$(MAKE) fuzz FUZZTIME=45s

# Whole programs and time limits of requests are left out: under the detector a request
# takes ten times as long, and what they find is about that.
full-race: ## what starts goroutines, and what nodes share, under the race detector, as far as `make check` runs it (needs gcc)
	POSTERN_RING=check CGO_ENABLED=1 $(GO) test $(AT_ONCE) -race -count 1 -timeout $(HOUR) $(RACE) ./cloud/backup ./cloud/node ./cmd/internal/mutate

bench: ## the figures, as ratios against a bare loop of the same run
	$(GO) test -run '^$$' -bench . -benchtime 2s -timeout $(HOUR) ./edge/... ./cloud/... ./cmd/bench

# A sample of small faults and whether tests notice them: `make mutants SEED=2
# MUTANTS=60 PACKAGES=./cloud/auth`. Verdicts are kept in bin/, so a run that was
# cut off goes on; RETRY=-retry tries its survivors again.
SEED     ?= 1
MUTANTS  ?= 300
PACKAGES ?= ./edge/locker ./edge/buffer ./edge/access ./cloud/device ./cloud/locker ./cloud/order ./cloud/auth ./cloud/approval ./cloud/account
conformance: ## other people's suites, validators and clients, and the table of what they find
	$(GO) run ./cmd/internal/conformance -out docs/conformance.md

mutants: ## change one place at a time and list the changes that no test notices
	@mkdir -p $(BIN)
	$(GO) run ./cmd/internal/mutate -seed $(SEED) -n $(MUTANTS) -verdicts $(BIN)/mutants.jsonl $(RETRY) $(PACKAGES)

lint: ## vet, format, staticcheck
	@test -z "$$(gofmt -l .)" || { echo "not gofmt-ed:"; gofmt -l .; exit 1; }
	$(GO) vet ./...
	$(GO) run honnef.co/go/tools/cmd/staticcheck@v0.8.2 ./...

check: test-check race lint ## what a change must pass: all tests but the long ones, race, lint, formatting and the list of modules
	$(GO) mod tidy -diff
	$(GO) mod verify
