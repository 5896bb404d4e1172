#!/usr/bin/env bash
# Builds the pinned golangci-lint once and prints its path, the only line on
# stdout. What it does goes to stderr.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
cache=${EKCO_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/ekco}
key=$(cat "$here/go.mod" "$here/go.sum" | sha256sum | cut -c1-16)
binary=$cache/golangci-lint-$key
mkdir -p "$cache"
exec 9>"$cache/tools.lock"
flock 9
if [ ! -x "$binary" ]; then
  echo "building golangci-lint (once; a few minutes on two cores)" >&2
  began=$SECONDS
  (cd "$here" && CGO_ENABLED=0 GOGC=off GOMEMLIMIT=3GiB go build -trimpath -gcflags=all=-dwarf=false -ldflags '-s -w' -o "$binary.new" github.com/golangci/golangci-lint/v2/cmd/golangci-lint) &
  build=$!
  trap 'kill "$build" 2>/dev/null || true' EXIT
  while kill -0 "$build" 2>/dev/null; do
    for _ in 1 2 3 4 5 6 7 8 9 10; do kill -0 "$build" 2>/dev/null || break; sleep 1; done
    echo "  $((SECONDS - began)) s" >&2
  done
  wait "$build"
  trap - EXIT
  mv "$binary.new" "$binary"
fi
echo "$binary"
