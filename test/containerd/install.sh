#!/bin/sh
# Installs containerd, ctr and runc, which tests start, from Debian, unless they are
# there. Nothing of them is started. Needs root; it downloads about 35 MB.
set -eu

all_there() {
	for program in containerd containerd-shim-runc-v2 ctr runc; do
		command -v "$program" >/dev/null || return 1
	done
}

all_there && exit
exec 9>/var/lock/ekco-test-containerd.lock
until flock -w 5 9; do
	echo "install.sh: waiting for another install" >&2
done
all_there && exit
echo "install.sh: installing containerd and runc with apt-get" >&2
export DEBIAN_FRONTEND=noninteractive
apt-get update -qq >&2
apt-get install -y -qq --no-install-recommends containerd runc >&2
all_there || {
	echo "install.sh: some of containerd's programs are still missing after the install" >&2
	exit 1
}
containerd --version >&2
