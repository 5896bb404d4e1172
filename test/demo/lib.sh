# shellcheck shell=bash disable=SC2154
# Functions of the demos: a control plane with simulated nodes, and an operator. The caller sets "top" and "dir".
ekco=$top/bin/ekco
controlplane=$("$top/test/controlplane/build.sh")

say() { printf '\n\033[1m== %s\033[0m\n' "$*"; }
show() { printf '$ %s\n' "$*"; "$@"; }
kubectl() { "$controlplane" kubectl --kubeconfig "$dir/kubeconfig" "$@"; }
ekco() { EKCO_JOURNAL=$dir/ekco/journal.db "$ekco" "$@"; }

start_cluster() {
  say "a cluster of 3 primaries and 3 workers (real etcd, API server, controllers, scheduler)"
  "$controlplane" up --detach --dir "$dir" --primaries 3 --workers 3 --pods 6
  kubectl apply -f "$top/deploy/namespace.yaml" -f "$top/deploy/rbac.yaml" >/dev/null
  "$controlplane" kubeconfig --dir "$dir" --service-account kurl/ekco --out "$dir/ekco.kubeconfig" >/dev/null
}

launch_operator() {
  "$ekco" operator --kubeconfig "$dir/ekco.kubeconfig" --journal "$dir/ekco/journal.db" \
    --config "$top/test/demo/config.yaml" --listen_address "127.0.0.1:0" >>"$dir/ekco.log" 2>&1 &
  echo $! >"$dir/ekco.pid"
}

start_operator() {
  launch_operator
  until_true "EKCO answers" ekco_ready
}

ekco_ready() { ekco status -o json 2>/dev/null | grep -q '"running": *true' && ekco status -o wide | grep -q Healthy; }

# until_true WHAT COMMAND...: waits for the command, and says so.
until_true() {
  local limit=${limit:-300} what=$1 began=$SECONDS said=$SECONDS
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

stop_operator() {
  local pid
  [ -f "$dir/ekco.pid" ] || return 0
  pid=$(cat "$dir/ekco.pid")
  # Only a process that is this EKCO is ended: pids are used again.
  if [ "$(readlink "/proc/$pid/exe" 2>/dev/null | sed 's/ (deleted)$//')" = "$ekco" ]; then
    kill "$pid" 2>/dev/null || true
    for _ in $(seq 100); do kill -0 "$pid" 2>/dev/null || break; sleep 0.1; done
  fi
  rm -f "$dir/ekco.pid"
}

kill_operator() {
  kill -9 "$(cat "$dir/ekco.pid")"
  wait "$(cat "$dir/ekco.pid")" 2>/dev/null || true
}

stop_all() {
  stop_operator
  "$controlplane" down --dir "$dir" || true
}

# node_is NODE STATE
node_is() { ekco status -o json | tr -d ' \n' | grep -q "\"name\":\"$1\",[^}]*\"state\":\"$2\""; }
