# Headgate's development commands. `make` alone lists them.

export GOTOOLCHAIN := local

SHELL := /usr/bin/env bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
MAKEFLAGS += --no-print-directory

# The version of the binary: the newest tag, or "dev" without a tag.
VERSION ?= $(shell git describe --tags --match 'v[0-9]*' --dirty 2>/dev/null || echo dev)
COMMIT ?= $(shell git rev-parse --short=12 HEAD 2>/dev/null || echo unknown)

FUZZTIME ?= 10s#      duration of each Fuzz function in `make fuzz`, or a number of inputs
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
UNRACED_MODULES := ./cmd/test/deploy ./cmd/test/routers ./cmd/test/connect ./cmd/test/callers ./cmd/test/models

.PHONY: help
help: ## list these commands
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-10s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

.PHONY: run
run: build ## build, then run the demo of fair share
	@if [ -x bin/headgate ]; then exec ./bin/headgate demo; else echo "make run: there is no cmd/headgate yet" >&2; exit 1; fi

# What users run has no tables for debuggers, which take a third of the file. Stack traces and profiles have their names without
# them. For a debugger: make build STRIP=. With gRPC's tracing, html/template keeps the methods of all types (docs/decisions/).
OUT ?= bin/headgate
STRIP ?= -s -w
BUILD_TAGS := grpcnotrace
# Code that no request runs is compiled without inlining: the file has 3 % less (docs/decisions/0044-size-of-the-binary.md). The ring of
# refusals is written by requests.
OURS := github.com/headgate/headgate
COLD := crypto/x509 encoding/asn1 encoding/json internal/profile math/big regexp/syntax runtime/pprof github.com/cncf github.com/envoyproxy github.com/go-jose github.com/jackc github.com/oschwald github.com/prometheus \
	go.etcd.io go.uber.org go.yaml.in golang.org/x/text google.golang.org/genproto \
	$(OURS)/internal/config $(addprefix $(OURS)/cmd/,headgate internal/app internal/console internal/ctl internal/envoy/envoyenv \
	internal/explain internal/objects internal/source)
COLD_FLAGS := $(foreach package,$(COLD),-gcflags=$(package)/...=-l) -gcflags=$(OURS)/cmd/internal/console/refusals=

.PHONY: build
build: ## build bin/headgate
	@go build -trimpath -tags $(BUILD_TAGS) $(COLD_FLAGS) -ldflags "$(STRIP) -funcalign=16 -X main.version=$(VERSION) -X main.commit=$(COMMIT)" -o $(OUT) ./cmd/headgate

GOTESTSUM := $(TOOLS_BIN)/gotestsum --format pkgname-and-test-fails --format-hide-empty-pkg --
# Lint has all analyzers of go vet, so tests run without vet. In the steps of `make check` and `make test`, no flag defeats the
# cache of test results, as -shuffle does: make soak has it.
TEST := -vet=off -timeout 10m $(TESTFLAGS)

# Half of the packages wait for servers, processes and deadlines most of the time, so three packages
# for each two cores run at once.
PACKAGES ?= $(shell echo $$(( ($$(nproc 2>/dev/null || echo 2) * 3 + 1) / 2 )))
# Most tests that say t.Parallel wait too. With as many at once as cores, which is the default, the cores are idle. Acceptance has
# the machine alone.
TWICE := -parallel $(shell echo $$(( $$(nproc 2>/dev/null || echo 2) * 2 )))
THRICE := -parallel $(shell echo $$(( $$(nproc 2>/dev/null || echo 2) * 3 )))
# These packages start first: go test starts packages in the order of its arguments.
LONGEST := ./store/redis ./cmd/internal/app ./cmd/internal/front/proxy ./cmd/test/fleet ./store/redis/scripttest ./guard/fairshare ./guard ./config/open ./store/memcached ./internal/store/split
# These packages build programs or read the whole tree, which the cache of test results does not see.
UNCACHED := /test/(acceptance|documents|importers)$$

.PHONY: check
check: tool-gotestsum ## run lint and quick tests in the workspace: what an author runs before each commit
	+@$(MAKE) lint-workspace
	@all=$$(go list work); $(STATIC) $(GOTESTSUM) -p $(PACKAGES) $(TWICE) -short $(TEST) $$(grep -v -E '$(UNCACHED)' <<<"$$all")

# The steps run one after another, even with -j. Their output stays readable, and tests that measure
# times and shares of processes have the machine alone.
.PHONY: test
test: deps ## run all tests of the workspace once, the acceptance tests of the built binary included
	+@$(MAKE) unit
	+@$(MAKE) acceptance

.PHONY: unit
unit: tool-gotestsum
	@all=$$(go list work); $(STATIC) $(GOTESTSUM) -p $(PACKAGES) $(TWICE) $(TEST) $(LONGEST) $$(grep -v -E '$(UNCACHED)' <<<"$$all")
	@$(STATIC) $(GOTESTSUM) -count 1 $(TEST) ./cmd/test/documents

.PHONY: acceptance
acceptance: tool-gotestsum
	@$(STATIC) $(GOTESTSUM) -count 1 $(THRICE) $(TEST) -timeout 20m ./cmd/test/acceptance

# The race detector sees nothing in packages of one goroutine. These are the slow ones with it; TestOneGoroutine checks them.
ONE_GOROUTINE := . ./rule ./internal/apilist ./internal/lease/state ./internal/limit ./internal/pace/schedule ./internal/share

# The detector makes arithmetic ten times slower, so that such tests
# try fewer inputs under it (internal/testkit/race): `make unit` runs them at full size. A random order
# costs nothing here, because CI reuses no results.
.PHONY: raced
raced: tool-gotestsum ## run the tests of the workspace with the race detector
	@all=$$(go list work | grep -v -x -F "$$(go list $(ONE_GOROUTINE))"); CGO_ENABLED=1 $(GOTESTSUM) -p $(PACKAGES) -race -shuffle on $(TEST) \
		$(LONGEST) $$(grep -v -E '$(UNCACHED)' <<<"$$all")

# The short benchmarks judge no time and use one core of two on average, so they run beside the other
# modules. Their output comes last.
BESIDE_MODULE := ./cmd/test/bench

.PHONY: modules
modules: tool-gotestsum
	@out=$$(mktemp); beside=; \
	trap 'kill -- "-$$beside" 2>/dev/null || true; rm -f "$$out"' EXIT; trap 'exit 130' INT TERM; \
	try() { \
		race=-race; cgo=CGO_ENABLED=1; case " $(UNRACED_MODULES) " in *" $$1 "*) race=; cgo=$(STATIC);; esac; \
		(cd "$$1" && env $$cgo $(GOTESTSUM) $$race -count 1 $(TEST) ./...); \
	}; \
	set -m; try $(BESIDE_MODULE) >"$$out" 2>&1 & beside=$$!; set +m; failed=0; \
	for module in $(filter-out $(BESIDE_MODULE),$(MODULES)); do try "$$module" || failed=1; done; \
	wait "$$beside" || failed=1; beside=; cat "$$out"; exit "$$failed"
	@cd docs/examples/kafka-sender && $(STATIC) $(GOTESTSUM) -count 1 $(TEST) -run 'TheLimit$$' ./...

# The oldest Go that the library supports. The go command fetches it once, like a module.
OLDEST_GO := go1.25.9

# Each module is vetted with the versions that its own go.mod requires. The workspace hides them.
# The time limit is long, because .ci/run gives this step only the processor time that its tests leave.
.PHONY: importers
importers: tool-gotestsum ## publish the modules to a folder, and check what programs that import them get
	GOTOOLCHAIN=$(OLDEST_GO) GOWORK=off $(STATIC) go build ./...
	@$(STATIC) $(GOTESTSUM) -count 1 $(TEST) -timeout 60m ./cmd/test/importers

.PHONY: tidy
tidy: ## tidy the modules of go.work, which require each other in versions that no server has yet
	@proxy=$$(mktemp -d); trap 'rm -rf "$$proxy"' EXIT; \
	go run ./cmd/test/fileproxy -forget "$$(sed -nE 's/^\tgithub.com\/headgate\/headgate (v[^ ]+) => .*/\1/p' go.work)" "$$proxy"

.PHONY: vet
vet: ## run go vet in the workspace and in the modules outside
	go vet -tags soak work
	@for module in $(MODULES); do (cd "$$module" && go vet -tags soak ./...); done

.PHONY: ports
ports: ## vet the daemon for Windows and macOS, and the pure packages for 32 bits: minutes without a cache
	GOOS=windows go vet ./cmd/headgate ./cmd/internal/http1/... ./cmd/internal/front/proxy
	GOOS=darwin go vet ./cmd/headgate ./cmd/internal/http1/... ./cmd/internal/front/proxy
	GOOS=linux GOARCH=386 go vet ./internal/limit/... ./limiter ./guard/... ./store/memory ./pace/...

.PHONY: lint lint-workspace
lint: lint-workspace ## run golangci-lint in every module, and find phrases that the texts must not have
	@for module in $(MODULES); do (cd "$$module" && $(GOLANGCI) ./...); done

# The time limit of a run is above that of .golangci.yml: .ci/run gives lint only the processor time that its tests leave.
GOLANGCI := $(STATIC) $(TOOLS_BIN)/golangci-lint run --timeout 30m --config $(CURDIR)/.golangci.yml

lint-workspace: tool-golangci-lint
	@$(STATIC) go run ./internal/prose/lint
	@$(GOLANGCI) $$(go list -m -f '{{.Dir}}/...')

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
	@$(STATIC) internal/dev/scripts/fuzz $(FUZZTIME)

.PHONY: bench
bench: ## benchmark Headgate and other limiters in ROUNDS (20) rounds; BENCH=regexp selects, BENCH_BEFORE=commit adds its proxy
	@internal/dev/scripts/bench $(ROUNDS)

.PHONY: soak
soak: nightly ## run the long and the statistical tests, up to four hours; plots are kept in _artifacts
	go test -tags soak -timeout 120m -v -run Soak -artifacts $(TESTFLAGS) work
	cd cmd/test/bench && go test -tags soak -timeout 120m -v -run Soak $(TESTFLAGS) ./overload ./reference
	@for module in $(SOAK_MODULES); do (cd "$$module" && go vet ./... && go test -timeout 60m -v $(TESTFLAGS) ./...); done

# The whole suite in random orders, and with data_plane: standard for the version that still has it.
.PHONY: nightly
nightly: deps ## run all tests in random orders, with net/http in place of the default data plane
	+@HEADGATE_TEST_DATA_PLANE=standard $(MAKE) unit TESTFLAGS='-shuffle on'
	+@HEADGATE_TEST_DATA_PLANE=standard $(MAKE) raced
	+@HEADGATE_TEST_DATA_PLANE=standard $(MAKE) acceptance TESTFLAGS='-shuffle on'

.PHONY: stress
stress: deps ## run tests of real time, sockets and processes ten times on busy cores; STRESS=regexp selects
	@internal/dev/scripts/stress

.PHONY: console-shots
console-shots: ## make the pictures of docs/console.md anew, in six minutes
	HEADGATE_CONSOLE_SHOTS=$(CURDIR)/docs/console $(STATIC) go test -tags soak -count 1 -timeout 15m -run 'TestConsoleShots$$' ./cmd/test/acceptance

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
