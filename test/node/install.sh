#!/bin/sh
# Installs what a real node of the tests is made of, from Debian, unless it is there:
# containerd, runc, the plugins for a pod's network, and the tools for the node's own.
# Nothing of it is started. Needs root; it downloads about 50 MB.
set -eu

all_there() {
	for program in containerd containerd-shim-runc-v2 ctr runc ip iptables-restore nsenter unshare; do
		command -v "$program" >/dev/null || return 1
	done
	for plugin in bridge host-local loopback; do
		[ -x "/usr/lib/cni/$plugin" ] || return 1
	done
}

all_there && exit
exec 9>/var/lock/ekco-test-node.lock
until flock -w 5 9; do
	echo "install.sh: waiting for another install" >&2
done
all_there && exit
echo "install.sh: installing containerd, runc and what a node's network needs with apt-get" >&2
export DEBIAN_FRONTEND=noninteractive
apt-get update -qq >&2
apt-get install -y -qq --no-install-recommends containerd runc containernetworking-plugins iproute2 iptables util-linux >&2
all_there || {
	echo "install.sh: some of a node's programs are still missing after the install" >&2
	exit 1
}
