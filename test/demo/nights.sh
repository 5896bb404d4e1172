#!/usr/bin/env bash
# Eight nights: what a woken administrator sees first, on a real control plane with simulated nodes. Each night checks
# the exit code of "ekco status --check" and the kind of the most serious problem. Needs root, for a small disk.
#   nights.sh          run them
#   nights.sh --write  run them, and write the screens into docs/operations.md
set -euo pipefail
[ "$(id -u)" = 0 ] || {
  echo "nights.sh: a small disk that fills up needs root; run it as root" >&2
  exit 1
}
top=$(cd "$(dirname "$0")/../.." && pwd)
. "$top/test/demo/lib.sh"
dir=$(mktemp -d "${TMPDIR:-/tmp}/ekco-nights.XXXXXX")
screens=$(mktemp "${TMPDIR:-/tmp}/ekco-nights-screens.XXXXXX")
trap 'stop_all >/dev/null 2>&1; umount "$dir/ekco" 2>/dev/null || true; rm -rf "$dir" "$screens"' EXIT

# night TITLE begins a night in the transcript.
night() {
  say "$*"
  [ ! -s "$screens" ] || echo >>"$screens"
  printf '# %s\n' "$*" >>"$screens"
}

# ask LINES COMMAND...: shows what a person types, and the first lines of the answer, without the state of the operator.
ask() {
  local lines=$1
  shift
  {
    printf '$ %s\n' "$*"
    "$@" 2>&1 | sed '/^Operator:/Q' | head -n "$lines" || true
  } | sed "s#$dir#/…#g" | tee -a "$screens"
}

# is EXIT KIND: whether the check has that exit code, and the first problem that kind.
is() {
  local code=0
  ekco status --check >/dev/null 2>&1 || code=$?
  [ "$code" = "$1" ] || return 1
  [ -z "${2:-}" ] || ekco status -o json | tr -d ' \n' | grep -q "\"problems\":\[{\"kind\":\"$2\""
}

# shows TEXT: whether the verdict has the text.
shows() { ekco status | head -n 1 | grep -q "$1"; }

# expect EXIT KIND: waits for the verdict, and shows the first lines.
expect() {
  until_true "exit code $1 ${2:-}" is "$1" "${2:-}"
  ask 2 ekco status
}

start_cluster
mkdir -p "$dir/ekco"
mount -t tmpfs -o size=4m ekco-nights "$dir/ekco"
start_operator
until_true "all is well" is 0

night "a worker is lost"
"$controlplane" node lose worker-2 --dir "$dir"
expect 2 node_lost
ask 30 ekco explain worker-2

night "its purge waits for a finalizer of another program"
kubectl patch node worker-2 --type merge -p '{"metadata":{"finalizers":["demo.example.com/slow"]}}' >/dev/null
ekco purge-node worker-2 --no-wait --yes >/dev/null
until_true "the purge waits" shows "finalizer demo"
ask 1 ekco status
kubectl patch node worker-2 --type merge -p '{"metadata":{"finalizers":null}}' >/dev/null
until_true "worker-2 is purged" node_is worker-2 Purged
until_true "all is well" is 0

night "the wrong node is purged"
ekco purge-node worker-3 --no-wait >/dev/null </dev/null
until_true "it can be cancelled" shows "ekco cancel worker-3"
ask 1 ekco status
ask 2 ekco cancel worker-3
until_true "all is well" is 0

night "EKCO is paused, and forgotten"
ekco pause --reason "an upgrade" >/dev/null
expect 1 paused
ekco resume >/dev/null

night "EKCO is killed"
kill_operator
expect 2 not_running
start_operator

night "the disk is full"
head -c 4m /dev/zero >"$dir/ekco/filler" 2>/dev/null || true
"$controlplane" node lose worker-1 --dir "$dir"
expect 2 journal_unwritable
rm "$dir/ekco/filler"
"$controlplane" node return worker-1 --dir "$dir"
until_true "all is well" is 0

night "the journal is deleted while EKCO runs"
rm "$dir/ekco/journal.db"
until_true "EKCO notices" shows "rollout restart"
expect 2 journal_unwritable
stop_operator
start_operator
expect 2 safe_mode
ekco journal accept --yes >/dev/null
until_true "all is well" is 0

night "the journal is cut to one page"
stop_operator
truncate -s 4096 "$dir/ekco/journal.db"
start_operator
until_true "exit code 2 safe_mode" is 2 safe_mode
ask 8 ekco status
ekco journal accept --yes >/dev/null
until_true "all is well" is 0

if [ "${1:-}" = --write ]; then
  page=$top/docs/operations.md
  {
    sed '/^<!-- nights/q' "$page"
    echo '```'
    cat "$screens"
    echo '```'
    sed -n '/^<!-- end of nights/,$p' "$page"
  } >"$dir/page"
  cat "$dir/page" >"$page"
fi

say "done: everything is stopped"
