#!/usr/bin/env bash
# The life of a lost node, on a real control plane with simulated nodes:
#   demo.sh run    lose a worker, watch its pods being freed, kill EKCO in the
#                  middle of the purge, start it again, read the history
#   demo.sh up     start the cluster and EKCO and leave them running
#   demo.sh down   stop what "up" started
set -euo pipefail
top=$(cd "$(dirname "$0")/../.." && pwd)
ekco=$top/bin/ekco
controlplane=$("$top/test/controlplane/build.sh")
playground=${EKCO_DEMO_DIR:-${TMPDIR:-/tmp}/ekco-demo-$(id -u)}
victim=worker-2

say() { printf '\n\033[1m== %s\033[0m\n' "$*"; }
show() { printf '$ %s\n' "$*"; "$@"; }
kubectl() { "$controlplane" kubectl --kubeconfig "$dir/kubeconfig" "$@"; }
ekco() { "$ekco" "$@" --journal "$dir/ekco/journal.db"; }

start_cluster() {
  say "a cluster of 3 primaries and 3 workers (real etcd, API server, controllers, scheduler)"
  "$controlplane" up --detach --dir "$dir" --primaries 3 --workers 3 --pods 6
  kubectl apply -f "$top/deploy/namespace.yaml" -f "$top/deploy/rbac.yaml" >/dev/null
  "$controlplane" kubeconfig --dir "$dir" --service-account kurl/ekco --out "$dir/ekco.kubeconfig" >/dev/null
}

start_operator() {
  "$ekco" operator --kubeconfig "$dir/ekco.kubeconfig" --journal "$dir/ekco/journal.db" \
    --config "$top/test/demo/config.yaml" --listen_address "127.0.0.1:0" >>"$dir/ekco.log" 2>&1 &
  echo $! >"$dir/ekco.pid"
  until_true "EKCO answers" ekco_ready
}

ekco_ready() { ekco status -o json 2>/dev/null | grep -q '"running": *true' && ekco status | grep -q Healthy; }

# until_true WHAT COMMAND...: waits for the command, and says so.
until_true() {
  local limit=300 what=$1 began=$SECONDS said=$SECONDS
  shift
  until "$@" >/dev/null 2>&1; do
    if [ $((SECONDS - began)) -ge "$limit" ]; then
      echo "not within $limit s: $what; EKCO's log:" >&2
      tail -n 20 "$dir/ekco.log" >&2 || true
      return 1
    fi
    if [ $((SECONDS - said)) -ge 2 ]; then
      said=$SECONDS
      echo "   waiting: $what ($((SECONDS - began)) s)"
    fi
    sleep 0.2
  done
  echo "   $what (after $((SECONDS - began)) s)"
}

stop_all() {
  if [ -f "$dir/ekco.pid" ]; then
    local pid
    pid=$(cat "$dir/ekco.pid")
    # Only a process that is this EKCO is ended: pids are used again.
    if [ "$(readlink "/proc/$pid/exe" 2>/dev/null | sed 's/ (deleted)$//')" = "$ekco" ]; then
      kill "$pid" 2>/dev/null || true
      for _ in $(seq 100); do kill -0 "$pid" 2>/dev/null || break; sleep 0.1; done
    fi
    rm -f "$dir/ekco.pid"
  fi
  "$controlplane" down --dir "$dir" || true
}

node_is() { ekco status -o json | tr -d ' \n' | grep -q "\"name\":\"$victim\",[^}]*\"state\":\"$1\""; }
pods_on_victim() { kubectl get pods -A --field-selector "spec.nodeName=$victim" --no-headers 2>/dev/null; }
# On a busy machine EKCO may have freed the pods before anybody looks.
terminating() { pods_on_victim | grep -q Terminating || node_is Cleared; }
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
  until_true "EKCO has cleared $victim" node_is Cleared
  echo "   pods left on $victim: $(pods_on_victim | wc -l)"

  say "an administrator purges $victim; a finalizer of somebody else delays the deletion, so the purge is open"
  kubectl patch node "$victim" --type merge -p '{"metadata":{"finalizers":["demo.example.com/slow"]}}' >/dev/null
  ekco purge-node "$victim" --no-wait
  until_true "the Node is being deleted" purge_waits

  say "SIGKILL in the middle of the purge"
  kill -9 "$(cat "$dir/ekco.pid")"
  wait "$(cat "$dir/ekco.pid")" 2>/dev/null || true
  show ekco status

  say "EKCO starts again and takes the purge up where it was; meanwhile the finalizer goes away"
  start_operator
  (
    sleep 2
    kubectl patch node "$victim" --type merge -p '{"metadata":{"finalizers":null}}' >/dev/null
  ) &
  show ekco purge-node "$victim"
  until_true "$victim is purged" node_is Purged
  kubectl get nodes

  say "what happened"
  show ekco history --node "$victim" --since 1h -o tree
  show ekco status
  say "done: everything is stopped"
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
  cat <<TXT

The cluster and EKCO run. Try:
  export KUBECONFIG=$dir/kubeconfig
  $ekco status --journal $dir/ekco/journal.db
  $ekco history --follow --journal $dir/ekco/journal.db
  $controlplane node lose worker-1 --dir $dir
  $controlplane node return worker-1 --dir $dir
  $controlplane kubectl get nodes
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
