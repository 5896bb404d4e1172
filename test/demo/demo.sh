#!/usr/bin/env bash
# The life of a lost node, on a real control plane with simulated nodes:
#   demo.sh run    lose a worker, watch its pods being freed, kill EKCO in the
#                  middle of the purge, start it again, read the history
#   demo.sh up     start the cluster and EKCO and leave them running
#   demo.sh down   stop what "up" started
set -euo pipefail
top=$(cd "$(dirname "$0")/../.." && pwd)
playground=${EKCO_DEMO_DIR:-${TMPDIR:-/tmp}/ekco-demo-$(id -u)}
victim=worker-2

. "$top/test/demo/lib.sh"

pods_on_victim() { kubectl get pods -A --field-selector "spec.nodeName=$victim" --no-headers 2>/dev/null; }
# On a busy machine EKCO may have freed the pods before anybody looks.
terminating() { pods_on_victim | grep -q Terminating || node_is "$victim" Cleared; }
purge_waits() { ekco history --since 1h --type 'step.started' -o json | grep -q '"delete-node"'; }

run() {
  dir=$(mktemp -d "${TMPDIR:-/tmp}/ekco-demo.XXXXXX")
  trap 'stop_all; rm -rf "$dir"' EXIT
  start_cluster
  say "EKCO starts, as the service account kurl/ekco with exactly kURL's permissions"
  start_operator
  show ekco status

  say "$victim is lost; Kubernetes asks its pods to end, and nobody is there to end them"
  pods_on_victim || true
  "$controlplane" node lose "$victim" --dir "$dir"
  until_true "$victim has pods that are Terminating for ever, or EKCO has freed them" terminating
  until_true "EKCO has cleared $victim" node_is "$victim" Cleared
  echo "   pods left on $victim: $(pods_on_victim | wc -l)"

  say "an administrator purges $victim; a finalizer of somebody else delays the deletion, so the purge is open"
  kubectl patch node "$victim" --type merge -p '{"metadata":{"finalizers":["demo.example.com/slow"]}}' >/dev/null
  ekco purge-node "$victim" --no-wait --yes
  until_true "the Node is being deleted" purge_waits

  say "SIGKILL in the middle of the purge"
  kill_operator
  show ekco status

  say "EKCO starts again and takes the purge up where it was; meanwhile the finalizer goes away"
  start_operator
  (
    sleep 2
    kubectl patch node "$victim" --type merge -p '{"metadata":{"finalizers":null}}' >/dev/null
  ) &
  show ekco purge-node "$victim"
  until_true "$victim is purged" node_is "$victim" Purged
  kubectl get nodes

  say "what happened"
  show ekco history --node "$victim" --since 1h -o tree
  show ekco status
  say "done: everything is stopped"
}

# shims writes commands that know this cluster and this journal.
shims() {
  mkdir -p "$dir/bin"
  printf '#!/bin/sh\nEKCO_JOURNAL=%s exec %s "$@"\n' "$dir/ekco/journal.db" "$ekco" >"$dir/bin/ekco"
  printf '#!/bin/sh\nKUBECONFIG=%s exec %s kubectl "$@"\n' "$dir/kubeconfig" "$controlplane" >"$dir/bin/kubectl"
  printf '#!/bin/sh\nexec %s node "$@" --dir %s\n' "$controlplane" "$dir" >"$dir/bin/node"
  chmod +x "$dir"/bin/*
}

up() {
  dir=$playground
  if [ -f "$dir/ekco.pid" ]; then
    echo "the demo is up already in $dir; make demo-down stops it" >&2
    exit 1
  fi
  mkdir -p "$dir"
  chmod 700 "$dir"
  trap 'stop_all' ERR
  start_cluster
  start_operator
  disown -a
  shims
  cat <<TXT

The cluster and EKCO run. Try:
  export PATH=$dir/bin:\$PATH
  ekco status
  ekco history --follow
  node lose worker-1
  node return worker-1
  kubectl get nodes
EKCO's log is $dir/ekco.log. make demo-down stops all of it.
TXT
}

down() {
  dir=$playground
  if [ ! -d "$dir" ]; then
    echo "nothing is up in $dir"
    return
  fi
  stop_all
  rm -rf "$dir"
}

case "${1:-}" in
  run | up | down) "$1" ;;
  *)
    echo "usage: $0 run|up|down" >&2
    exit 2
    ;;
esac
