#!/bin/sh
# Gets the modules whose custom resource definitions tests apply, as these modules pin
# them, into Go's module cache. It prints nothing.
set -eu
cd "$(dirname "$0")"
for module in . rook*; do
	for dependency in github.com/rook/rook github.com/prometheus-operator/prometheus-operator; do
		if grep -q "$dependency v" "$module/go.mod"; then
			(cd "$module" && go mod download "$dependency")
		fi
	done
done
