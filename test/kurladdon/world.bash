# shellcheck shell=bash
# Prepares each test: kURL's directory with the add-on, directories that stand for a host's, and a cluster without EKCO.

setup_file() {
	cd "$BATS_TEST_DIRNAME" || return 1
	EKCO_PROGRAM=$(realpath ../../bin/ekco)
	export EKCO_PROGRAM
	VERSION=v0.29.0 EKCO_IMAGE_ARCHIVE=/nowhere ../../deploy/kurl/build.sh "$BATS_FILE_TMPDIR/package" 2>/dev/null
}

setup() {
	cd "$BATS_TEST_TMPDIR" || return 1
	export STATE=$PWD/state PATH=$BATS_TEST_DIRNAME/fakes:$BATS_TEST_DIRNAME:$PATH EKCO_HOST_ETC=$PWD/etc EKCO_HOST_BIN=$PWD/bin
	mkdir -p state/cluster/{node,configmap,deployment,namespace,pod,storageclass,mutatingwebhookconfigurations} kurl/kustomize etc/kubernetes/manifests bin
	ln -s "$BATS_FILE_TMPDIR/package/addons" kurl/addons
	printf '%s\n' {,docker.io/}replicated/ekco:v0.29.0 {,docker.io/library/}haproxy:3.4.2-alpine3.24 >state/images
	echo "10.0.0.1" >state/addresses
	echo 10.0.0.2 >state/cluster/node/primary-2
	echo fd00::3 10.0.0.3 >state/cluster/node/primary-3 # both families
	: >state/calls
	cd kurl || return 1
}

# installs VARIABLE=VALUE... runs the installer.
installs() { run env "$@" installer.sh install; }

# api_fails_at TEXT makes each call of kubectl fail if it contains this text.
api_fails_at() { echo "$1" >"$STATE/api-fails"; }

# ok and refused TEXT... check the exit code of the last run, and its messages. No hook may end in the trap for ERR,
# because an administrator would see only a line number.
ok() {
	[ "$status" -eq 0 ] && [[ $output != *TRAPPED* ]] || fails "exit code $status"
}
refused() {
	[ "$status" -eq 1 ] && [[ $output != *TRAPPED* ]] || fails "exit code $status"
	local want
	for want in "$@"; do
		[[ $output == *"$want"* ]] || fails "the output lacks \"$want\""
	done
}
says() { [[ $output == *"$1"* ]] || fails "the output lacks \"$1\""; }
silent() { [[ $output != *"$1"* ]] || fails "the output has \"$1\""; }
called() { grep -qF -- "$1" "$STATE/calls" || fails "not called: $1; but $(cat "$STATE/calls")"; }
not_called() { ! grep -F -- "$1" "$STATE/calls" || fails "called: $1"; }

fails() {
	echo "$1 in:"
	echo "$output"
	return 1
}

config() { sed -n '2,$p' "$STATE/cluster/configmap/ekco-config"; }
has() { config | grep -qxF -- "$1" || fails "no line \"$1\", but $(config | grep -- "^${1%%:*}")"; }
# edits SED-ARGUMENT... changes the ConfigMap in the cluster, as "kubectl edit" does.
edits() { sed -i "$@" "$STATE/cluster/configmap/ekco-config"; }
nothing_deleted() { ! grep '^kubectl.* delete' "$STATE/calls" || fails "something was deleted"; }
