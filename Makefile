# `make help` lists what can be asked for. Everything that is built goes to
# bin/ or to the cache (EKCO_CACHE, by default ~/.cache/ekco).

GO      ?= go
VERSION ?= v0.29.0
GIT_SHA ?= $(shell git describe --always --dirty --abbrev=12 --exclude='*' 2>/dev/null)
PKG     := github.com/replicatedhq/ekco
LDFLAGS := -s -w -X $(PKG)/internal/version.version=$(VERSION) -X $(PKG)/internal/version.gitSHA=$(GIT_SHA)
BENCH   ?= .
SCRIPTS := $(shell git ls-files '*.sh' deploy/host .ci/run 2>/dev/null)
# The first two take the longest. Go starts them first, so that no processor is idle at the end.
UNIT    := ./cmd/internal/ring ./actions/minio ./actions/... ./cmd/... ./fsm/... ./internal/... ./journal/... ./observers/...

# $(call gotest,NAME,ARGUMENTS,ENVIRONMENT,RUNNER) tests packages. It never uses cached results.
# "make test-times" reads the results. "make lint" runs go vet.
RESULTS := $(CURDIR)/bin/test-results
gotest = mkdir -p $(RESULTS) && $(GO) tool -modfile=$(CURDIR)/test/tools/go.mod gotestsum \
	--format pkgname-and-test-fails --jsonfile $(RESULTS)/$(1).json --raw-command -- \
	env $(3) $(GO) test -json -count=1 -vet=off -exec "$(CURDIR)/test/times/exec.sh $(4)" $(2)

# All builds except those for the race detector use the same flags, also in test/program.sh and
# deploy/image, so that each package is compiled once. Without DWARF and symbol tables, which only debuggers
# read, builds take less time.
export CGO_ENABLED = 0
export GOFLAGS := $(shell $(GO) env GOFLAGS) -trimpath -gcflags=all=-dwarf=false -ldflags=-s

# With garbage collected seldom, compilers and unit tests take less CPU time and more memory.
QUICK := GOGC=400

.PHONY: help
help: ## list the targets
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  %-18s %s\n", $$1, $$2}'

.PHONY: build
build: ## build bin/ekco
	@mkdir -p bin
	$(GO) build -trimpath -ldflags '$(LDFLAGS)' -o bin/ekco ./cmd/ekco

.PHONY: image
image: ## build the container image for amd64 and arm64 into bin/image, without a container engine
	@VERSION=$(VERSION) GIT_SHA=$(GIT_SHA) deploy/image/build.sh bin/image

.PHONY: kurl
kurl: image ## build kURL's package of EKCO into bin/kurl, with HAProxy's image if HAPROXY_IMAGE_ARCHIVE names its archive
	@VERSION=$(VERSION) deploy/kurl/build.sh bin/kurl

.PHONY: image-lock
image-lock: ## record which Debian packages the mirror has today, for the image
	@deploy/image/base.sh lock

.PHONY: controlplane
controlplane: ## build the real control plane for tests and the demo (once; cached)
	@test/controlplane/build.sh

.PHONY: minio
minio: ## build MinIO and its client for tests (once; cached)
	@test/minio/server/build.sh

.PHONY: check
check: build ## lint, and run the unit tests; Go reuses the results of packages that did not change
	$$(test/tools/build.sh) run ./...
	$(GO) test -vet=off $(UNIT) ./deploy

.PHONY: test
test: test-unit test-e2e test-system test-controlplane test-nights ## run every test, also end to end on a real control plane, etcd, Ceph and MinIO

.PHONY: test-unit
test-unit: build ## run the unit tests
	$(call gotest,unit,-timeout 80m $(UNIT) ./deploy,$(QUICK))
	cd test/rooktypes && $(call gotest,rooktypes,./...)
	cd deploy/image && $(call gotest,deploy-image,./...)

# test/e2e is not run with other system tests: its clusters need most of two processors.
.PHONY: test-e2e
test-e2e: build controlplane minio ## run EKCO on real control planes with Ceph, etcd and MinIO; needs root
	$(call gotest,e2e,-timeout 80m ./test/e2e)

# node is first, since it takes the longest. Two packages at once, since they mostly wait.
.PHONY: test-system
test-system: build controlplane minio ## run the other tests that start real programs; needs root
	$(call gotest,system,-p 2 -timeout 80m ./test/node $$($(GO) list ./test/... | grep -v /test/e2e$$))

.PHONY: test-controlplane
test-controlplane: controlplane ## run the tests of the control plane that other tests start; needs root
	cd test/controlplane && $(call gotest,controlplane,-p 1 -timeout 80m ./...,,$(CURDIR)/test/rig/exec.sh)

.PHONY: test-times
test-times: ## print the slowest packages and tests of the last runs, with their CPU and waiting times
	@$(GO) run ./test/times $(wildcard $(RESULTS)/*.json)

.PHONY: race
race: ## run the unit tests under the race detector, with a sample of the crash points and fewer nodes
	$(call gotest,race,-race -timeout 80m $(UNIT),$(QUICK) CGO_ENABLED=1 EKCO_BALANCED_NODES=40)

.PHONY: bench
bench: build controlplane minio ## run the benchmarks behind docs/performance.md, or those named by BENCH
	$(GO) test -run '^$$' -bench '$(BENCH)' -benchtime 2s -timeout 90m ./journal/... ./fsm/... ./test/bench/... ./test/minio ./test/loadbalancer ./test/node
	# In simulated time, which no benchmark has.
	for nodes in 10 1000; do EKCO_BALANCED_NODES=$$nodes $(GO) test -count 1 -v -run ManyNodesAreInStep ./cmd/internal/ring || exit 1; done

.PHONY: lint
lint: ## gofumpt, go vet, staticcheck, the import table and the rules for alerts
	$$(test/tools/build.sh) run ./...
	cd test/rooktypes && $$(../tools/build.sh) run ./...
	cd deploy/image && $$(../../test/tools/build.sh) run ./...
	# Without the two packages that import all of Kubernetes, for which the linters and go vet need minutes.
	cd test/controlplane && $$(../tools/build.sh) fmt --diff ./... && $(GO) vet $$($(GO) list ./... | grep -v -e /controlplane$$ -e /embedded$$)
	if command -v promtool >/dev/null; then promtool check rules deploy/monitoring/rules.yaml && cd deploy/monitoring && promtool test rules rules_test.yaml; else echo "promtool is not installed: rules for alerts are not checked"; fi
	if command -v shellcheck >/dev/null; then shellcheck $(SCRIPTS); else echo "shellcheck is not installed: scripts are not checked"; fi

.PHONY: demo
demo: build controlplane ## lose a node, kill EKCO in the middle of the purge, see it finish
	@test/demo/demo.sh run

.PHONY: test-nights
test-nights: build controlplane ## what a woken administrator sees first, in eight nights; needs root
	@test/demo/nights.sh

.PHONY: demo-up
demo-up: build controlplane ## start the demo's cluster and operator and leave them running
	@test/demo/demo.sh up

.PHONY: demo-down
demo-down: ## stop what demo-up started
	@test/demo/demo.sh down

.PHONY: demo-cluster
demo-cluster: controlplane ## run EKCO in its pod on a real node to play with, until Ctrl-C; needs root
	@test/node/demo.sh

.PHONY: clean
clean: ## remove bin/
	rm -rf bin
