# Headgate's development commands. `make` alone lists them.

export GOTOOLCHAIN := local

SHELL := /usr/bin/env bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
MAKEFLAGS += --no-print-directory

# The version of the binary: the newest tag, or "dev" without a tag.
VERSION ?= $(shell git describe --tags --dirty 2>/dev/null || echo dev)
COMMIT ?= $(shell git rev-parse --short=12 HEAD 2>/dev/null || echo unknown)

FUZZTIME ?= 10s#      duration of each Fuzz function in `make fuzz`
TEST_FUZZTIME ?= 10000x# the same in `make test`: a number of inputs, because a deadline may count as a failure
ROUNDS ?= 20#         interleaved rounds of `make bench`
TESTFLAGS ?=#         further flags of go test, as in: make unit TESTFLAGS='-run Guard'

# A program with the race detector sleeps for a second before it exits. That is a second for each of 130
# test programs, and for each process that they start.
export GORACE ?= atexit_sleep_ms=50

# Lint, and all tests without the race detector, build packages without cgo, as the container image does. So they share these packages:
# with cgo, the packages that import net are built once more. The race detector needs cgo.
STATIC := CGO_ENABLED=0

TOOLS_BIN := $(CURDIR)/.tools/bin
export TOOLS_BIN

# The modules of go.work are built, vetted and tested together: the go command has the pattern `work` for their packages. The others
# (benchmarks, tests of the chart, some examples) would raise the versions of the workspace, so each has a go.work file of its own.
OUTSIDE_MODULES := $(sort $(patsubst %/,%,$(dir $(shell find . -mindepth 2 -name go.work -not -path './internal/dev/tools/*' -not -path '*/.*/*' -not -path '*/node_modules/*'))))
# The first build of libopenapi takes three minutes, and that of Traefik even longer, so their
# tests are a part of make soak.
SOAK_MODULES := ./cmd/test/openapi ./cmd/test/traefik
MODULES := $(filter-out $(SOAK_MODULES),$(OUTSIDE_MODULES))
# The tests of the chart and of the routers use one goroutine. Without the race detector they
# reuse the packages that vet and lint have built. Helm, Kubernetes and gin take minutes to build
# again.
UNRACED_MODULES := ./cmd/test/deploy ./cmd/test/routers ./cmd/test/connect

.PHONY: help
help: ## list these commands
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-10s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

.PHONY: run
run: build ## build, then run the demo of fair share
	@if [ -x bin/headgate ]; then exec ./bin/headgate demo; else echo "make run: there is no cmd/headgate yet" >&2; exit 1; fi

.PHONY: build
build: ## build bin/headgate
	@if [ -d cmd/headgate ]; then \
		go build -trimpath -ldflags "-X main.version=$(VERSION) -X main.commit=$(COMMIT)" -o bin/headgate ./cmd/headgate; \
	else \
		echo "make build: there is no cmd/headgate yet: building the packages"; \
		go build ./...; \
	fi

# The steps run one after another, even with -j. Their output stays readable, timing tests
# have the machine alone, and the test counts come last. Lint includes all analyzers of
# go vet, so that no step runs go vet.
.PHONY: test
test: deps ## run everything that CI runs: deps, lint, short fuzzing, all tests, with the race detector where tests run at once
	+@$(MAKE) lint
	+@$(MAKE) fuzz FUZZTIME=$(TEST_FUZZTIME)
	+@$(MAKE) unit

.PHONY: short
short: ## run the quick tests only, with the race detector
	go test -short -race $$(go list work | grep -v '/test/importers$$')

GOTESTSUM := $(TOOLS_BIN)/gotestsum --format pkgname-and-test-fails --format-hide-empty-pkg --
# These packages start first: go test starts packages in the order of its arguments.
LONGEST := ./cmd/internal/front/proxy ./store/redis ./cmd/test/fleet ./cmd/internal/app ./store/redis/scripttest ./guard/fairshare ./guard ./config/open ./store/memcached ./internal/store/split

.PHONY: unit
unit: ## run all tests, the acceptance tests of the built binary included
	+@$(MAKE) modules
	+@$(MAKE) twice
	+@$(MAKE) raced
	+@$(MAKE) acceptance

# The short benchmarks judge no time and use one core of two on average, so they run beside the other
# modules. Their output comes last.
BESIDE_MODULE := ./cmd/test/bench

.PHONY: modules
modules: tool-gotestsum
	@out=$$(mktemp); beside=; \
	trap 'kill -- "-$$beside" 2>/dev/null || true; rm -f "$$out"' EXIT; trap 'exit 130' INT TERM; \
	try() { \
		race=-race; cgo=; case " $(UNRACED_MODULES) " in *" $$1 "*) race=; cgo=$(STATIC);; esac; \
		(cd "$$1" && env $$cgo $(GOTESTSUM) -vet=off $$race -shuffle on -timeout 10m $(TESTFLAGS) ./...); \
	}; \
	set -m; try $(BESIDE_MODULE) >"$$out" 2>&1 & beside=$$!; set +m; failed=0; \
	for module in $(filter-out $(BESIDE_MODULE),$(MODULES)); do try "$$module" || failed=1; done; \
	wait "$$beside" || failed=1; beside=; cat "$$out"; exit "$$failed"
	@cd docs/examples/kafka-sender && $(STATIC) $(GOTESTSUM) -vet=off -timeout 10m -run 'TheLimit$$' $(TESTFLAGS) ./...

# The race detector makes tests of arithmetic ten times slower and finds nothing in them, so
# that they try fewer inputs under the detector. This step runs these tests at full size.
# The programs that cmd/test/documents starts are never built with the detector.
.PHONY: twice
twice: tool-gotestsum
	@chosen=$$($(STATIC) go run ./internal/testkit/race/twice ./cmd/test/documents); \
	$(STATIC) $(GOTESTSUM) -vet=off -timeout 10m $$chosen $(TESTFLAGS)

# Half of the packages wait for servers, processes and deadlines most of the time, so three packages
# for each two cores run at once.
RACED_PACKAGES ?= $(shell echo $$(( ($$(nproc 2>/dev/null || echo 2) * 3 + 1) / 2 )))

.PHONY: raced
raced: tool-gotestsum
	@$(GOTESTSUM) -p $(RACED_PACKAGES) -vet=off -race -shuffle on -timeout 10m $(TESTFLAGS) $(LONGEST) $$(go list work | grep -v -E '/test/(acceptance|documents|importers)$$')

# Tests that measure times and shares of real processes need the machine alone. The detector
# would see only the load generator, and would slow it down.
# The proxy serves with data_plane: standard unless it is told otherwise. The tests of
# connections, faults and shutdown also run with the other data plane.
BOTH_PLANES := ^Test(AccessLog.*|Connection.*|DelayedClientLeaves|Drain.*|GRPC.*|HandOver|Header.*|IdleConnections.*|OtherUpgrade|ProxyProtocol.*|Resets.*|Slow.*|Smuggling|Streaming|Streams.*|TLS|UnixSockets|Unread.*|Upstream.*|WebSocket.*)$$

.PHONY: acceptance
acceptance: tool-gotestsum
	@$(STATIC) $(GOTESTSUM) -vet=off -shuffle on -timeout 20m $(TESTFLAGS) ./cmd/test/acceptance
	@$(STATIC) HEADGATE_PROXY_DATA_PLANE=fast $(GOTESTSUM) -vet=off -shuffle on -timeout 20m -run '$(BOTH_PLANES)' $(TESTFLAGS) ./cmd/test/acceptance

# The oldest Go that the library supports. The go command fetches it once, like a module.
OLDEST_GO := go1.25.9

# Each module is vetted with the versions that its own go.mod requires. The workspace hides them.
.PHONY: importers
importers: tool-gotestsum ## publish the modules to a folder, and check what programs that import them get
	GOTOOLCHAIN=$(OLDEST_GO) GOWORK=off $(STATIC) go build ./...
	@$(STATIC) $(GOTESTSUM) -vet=off -timeout 20m $(TESTFLAGS) ./cmd/test/importers

.PHONY: tidy
tidy: ## tidy the modules of go.work, which require each other in versions that no server has yet
	@proxy=$$(mktemp -d); trap 'rm -rf "$$proxy"' EXIT; \
	go run ./cmd/test/fileproxy -forget "$$(sed -nE 's/^\tgithub.com\/headgate\/headgate (v[^ ]+) => .*/\1/p' go.work)" "$$proxy"

.PHONY: vet
vet: ## run go vet in the workspace and in the modules outside
	go vet -tags soak work
	@for module in $(MODULES); do (cd "$$module" && go vet -tags soak ./...); done

.PHONY: ports
ports: ## vet cmd/headgate for Windows and the pure packages for 32 bits: minutes without a cache
	GOOS=windows go vet ./cmd/headgate
	GOOS=linux GOARCH=386 go vet ./internal/limit/... ./limiter ./guard/... ./store/memory ./pace/...

.PHONY: lint
lint: tool-golangci-lint ## run golangci-lint in every module, and find phrases that the texts must not have
	@$(STATIC) go run ./internal/prose/lint
	@$(STATIC) $(TOOLS_BIN)/golangci-lint run --config $(CURDIR)/.golangci.yml $$(go list -m -f '{{.Dir}}/...')
	@for module in $(MODULES); do (cd "$$module" && $(STATIC) $(TOOLS_BIN)/golangci-lint run --config $(CURDIR)/.golangci.yml ./...); done

.PHONY: fmt
fmt: tool-golangci-lint ## format the Go files as .golangci.yml requires
	@for module in $$(go list -m -f '{{.Dir}}') $(MODULES); do (cd "$$module" && $(TOOLS_BIN)/golangci-lint fmt --config $(CURDIR)/.golangci.yml ./...); done

.PHONY: generate
generate: ## update the generated files; commit them
	go generate ./...

.PHONY: docs
docs: ## write the tables of docs/configuration.md and docs/reference/ from the declared fields; commit them
	$(STATIC) go test ./internal/config -run '^TestTablesOfTheDocumentation$$' -count 1 -rewrite

.PHONY: proto
proto: ## write the Go and Python code of internal/proto/ again; commit it. Needs protoc and its Python plugin for gRPC
	internal/dev/scripts/generate-proto

.PHONY: fuzz
fuzz: ## run every Fuzz function for FUZZTIME (10s, or a number of inputs: 20000x)
	@internal/dev/scripts/fuzz $(FUZZTIME)

.PHONY: bench
bench: ## benchmark Headgate and other limiters in ROUNDS (20) rounds; BENCH=regexp selects
	@internal/dev/scripts/bench $(ROUNDS)

.PHONY: soak
soak: ## run the long and the statistical tests, up to three hours; plots are kept in _artifacts
	go test -tags soak -timeout 120m -v -run Soak -artifacts $(TESTFLAGS) work
	cd cmd/test/bench && go test -tags soak -timeout 120m -v -run Soak $(TESTFLAGS) ./overload ./reference
	@for module in $(SOAK_MODULES); do (cd "$$module" && go vet ./... && go test -timeout 60m -v $(TESTFLAGS) ./...); done

.PHONY: stress
stress: deps ## run tests of real time, sockets and processes ten times on busy cores; STRESS=regexp selects
	@internal/dev/scripts/stress

.PHONY: deps
deps: ## install the missing programs and npm packages that the tests need
	@internal/dev/scripts/install-deps
	@internal/dev/scripts/install-node-modules

.PHONY: tools
tools: tool-golangci-lint tool-gotestsum ## build the pinned tools into .tools/bin

.PHONY: tool-golangci-lint tool-gotestsum
tool-golangci-lint tool-gotestsum: tool-%:
	@internal/dev/scripts/install-tools $*

.PHONY: clean
clean: ## remove the built files, but not the tools in .tools
	rm -rf bin
	find . -name '*.test' -not -path './.git/*' -type f -delete
