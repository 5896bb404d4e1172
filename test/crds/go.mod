module github.com/replicatedhq/ekco/test/crds

go 1.26.0

require (
	github.com/prometheus-operator/prometheus-operator v0.85.0
	github.com/rook/rook v1.10.0
)
