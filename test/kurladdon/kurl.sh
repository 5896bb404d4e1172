# shellcheck shell=bash disable=SC2059
# Stand-ins for the functions of kURL's scripts that the add-on calls. They do not wait: spinner_until counts each
# attempt as $KURL_STEP seconds. If $KURL_SLEEP is set, it really waits that many seconds after each attempt.

# As in kURL, all of these but log use the text as a format of printf.
log() { printf '%s\n' "$1" >&2; }
logStep() { printf "STEP $1\n" >&2; }
logSuccess() { printf "SUCCESS $1\n" >&2; }
logWarn() { printf "WARN $1\n" >&2; }
logFail() { printf "FAIL $1\n" >&2; }

bail() {
	printf "BAIL $1\n" >&2
	exit 1
}

commandExists() { command -v "$1" >/dev/null; }

# The arguments are split again on blanks, as in kURL.
spinner_until() {
	local limit=$1 waited=0
	shift
	echo "spinner_until $limit $*" >>"$STATE/calls"
	# shellcheck disable=SC2048
	until $*; do
		if [ -n "${KURL_SLEEP:-}" ]; then sleep "$KURL_SLEEP"; fi
		waited=$((waited + ${KURL_STEP:-30}))
		if [ "$waited" -ge "$limit" ]; then return 1; fi
	done
}

sleep_spinner() { echo "sleep_spinner $1" >>"$STATE/calls"; }

kubernetes_resource_exists() { kubectl -n "$1" get "$2" "$3" >/dev/null 2>&1; }
kubernetes_is_master() { [ -f "$EKCO_HOST_ETC/kubernetes/manifests/kube-apiserver.yaml" ]; }
kubernetes_get_control_plane_label() { echo node-role.kubernetes.io/control-plane=; }
get_local_node_name() { echo primary-1; }

kubernetes_pod_phase() { kubectl -n "$2" get pod "$1" -o 'jsonpath={.status.phase}' 2>/dev/null || true; }
kubernetes_pod_started() { case "$(kubernetes_pod_phase "$@")" in Running | Failed | Succeeded) ;; *) return 1 ;; esac }
kubernetes_pod_completed() { case "$(kubernetes_pod_phase "$@")" in Failed | Succeeded) ;; *) return 1 ;; esac }

# Each line of $STATE/sans is an address and a name for which its certificate is valid.
cert_has_san() { grep -qxF "$1 $2" "$STATE/sans" 2>/dev/null; }

kubeadm_get_containerd_sock() { echo /run/containerd/containerd.sock; }
