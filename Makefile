# `make help` lists what can be asked for. Everything that is built goes to
# bin/ or to the cache (EKCO_CACHE, by default ~/.cache/ekco).

GO      ?= go
VERSION ?= v0.29.0
GIT_SHA ?= $(shell git describe --always --dirty --abbrev=12 --exclude='*' 2>/dev/null)
PKG     := github.com/replicatedhq/ekco
LDFLAGS := -s -w -X $(PKG)/internal/version.version=$(VERSION) -X $(PKG)/internal/version.gitSHA=$(GIT_SHA)
BENCH   ?= .
SCRIPTS := $(shell git ls-files '*.sh' deploy/host .ci/run 2>/dev/null)

export CGO_ENABLED = 0

.PHONY: help
help: ## list the targets
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  %-12s %s\n", $$1, $$2}'

.PHONY: build
build: ## build bin/ekco
	@mkdir -p bin
	$(GO) build -trimpath -ldflags '$(LDFLAGS)' -o bin/ekco ./cmd/ekco

.PHONY: image
image: ## build the container image for amd64 and arm64 into bin/image, without a container engine
	@VERSION=$(VERSION) GIT_SHA=$(GIT_SHA) deploy/image/build.sh bin/image

.PHONY: image-lock
image-lock: ## record which Debian packages the mirror has today, for the image
	@deploy/image/base.sh lock

.PHONY: controlplane
controlplane: ## build the real control plane for tests and the demo (once; cached)
	@test/controlplane/build.sh

.PHONY: minio
minio: ## build MinIO and its client for tests (once; cached)
	@test/minio/server/build.sh

.PHONY: test
test: build controlplane minio ## run every test, also end to end on a real control plane, etcd, Ceph and MinIO
	$(GO) test -timeout 20m $$($(GO) list ./... | grep -v '/test/')
	cd test/rooktypes && $(GO) test ./...
	cd deploy/image && $(GO) test ./...
	# One after the other: each of these starts whole clusters.
	$(GO) test -p 1 -timeout 60m ./test/...
	cd test/controlplane && $(GO) test -trimpath -p 1 ./...

.PHONY: race
race: ## run the tests of the rooms under the race detector; of crash points it tries some
	CGO_ENABLED=1 $(GO) test -race -timeout 30m ./actions/... ./fsm/... ./journal/... ./observers/... ./internal/... ./cmd/...

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
	$(GO) vet ./...
	# The linters would need minutes to load all of Kubernetes, which is compiled as by build.sh.
	cd test/controlplane && $$(../tools/build.sh) fmt --diff ./... && $(GO) vet -trimpath ./...
	if command -v promtool >/dev/null; then promtool check rules deploy/monitoring/rules.yaml && cd deploy/monitoring && promtool test rules rules_test.yaml; else echo "promtool is not installed: rules for alerts are not checked"; fi
	if command -v shellcheck >/dev/null; then shellcheck $(SCRIPTS); else echo "shellcheck is not installed: scripts are not checked"; fi

.PHONY: demo
demo: build controlplane ## lose a node, kill EKCO in the middle of the purge, see it finish
	@test/demo/demo.sh run

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
