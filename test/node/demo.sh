#!/usr/bin/env bash
# A cluster with EKCO in it to play with: a real node beside simulated ones. It runs until
# Ctrl-C, and needs root. See "make demo-cluster".
set -euo pipefail
[ "$(id -u)" = 0 ] || {
	echo "demo.sh: a real node needs root, for its mounts, its network and its control groups; run make demo-cluster as root" >&2
	exit 1
}
top=$(cd "$(dirname "$0")/../.." && pwd)
dir=$(mktemp -d "${TMPDIR:-/tmp}/ekco-demo-cluster.XXXXXX")
trap 'rm -rf "$dir"' EXIT
# Ctrl-C reaches the program as well; this waits for it.
trap : INT TERM
cd "$top"
"${GO:-go}" test -c -tags demo -o "$dir/demo" ./test/node
cd test/node
"$dir/demo" -test.run "^TestDemo$" -test.timeout 0
