#!/bin/bash
# Calls the add-on's hooks as kURL's scripts do: "installer.sh install", "installer.sh join", or one function with
# "installer.sh call FUNCTION ARGUMENT...". The working directory is that of kURL. $STATE is the directory of the fakes.
# The hooks use variables that are only set here.
# shellcheck disable=SC2034
set -e
set -E
trap 'echo "TRAPPED: line $LINENO: $BASH_COMMAND" >&2; exit 1' ERR

here=$(dirname "$0")
DIR=.
K8S_DISTRO=kubeadm
export EKCO_VERSION=${EKCO_VERSION:-0.29.0}
# shellcheck source=/dev/null
. "$here/kurl.sh"
if [ -n "${KURL_LACKS:-}" ]; then unset -f "$KURL_LACKS"; fi

read -ra KUBERNETES_REMOTE_PRIMARIES <<<"${REMOTE_PRIMARIES:-}"

addon_source() {
	# shellcheck source=/dev/null
	. "$DIR/addons/ekco/$EKCO_VERSION/install.sh"
}

install() {
	MASTER=1
	addon_source
	ekco_pre_init
	if [ "${EKCO_ENABLE_INTERNAL_LOAD_BALANCER:-}" = 1 ]; then
		ekco_bootstrap_internal_lb
		ekco_cleanup_bootstrap_internal_lb
	fi
	if [ -z "${KEEP_KUSTOMIZE:-}" ]; then
		rm -rf "$DIR/kustomize/ekco"
		mkdir -p "$DIR/kustomize/ekco"
	fi
	addon_source
	ekco
	ekco_post_init
}

join() {
	addon_source
	ekco_join
}

call() {
	addon_source
	"$@"
}

"$@"
for name in HA_CLUSTER LOAD_BALANCER_ADDRESS LOAD_BALANCER_PORT EKCO_ADDRESS EKCO_AUTH_TOKEN; do
	echo "$name=${!name:-}"
done >"$STATE/variables"
