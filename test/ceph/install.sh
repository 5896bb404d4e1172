#!/bin/sh
# Installs the Ceph programs that the tests start, from Debian, unless they are
# there. Nothing of them is started. Needs root; it downloads about 60 MB.
set -eu

all_there() {
	for program in ceph ceph-authtool ceph-mgr ceph-mon ceph-osd monmaptool rados; do
		command -v "$program" >/dev/null || return 1
	done
}

all_there && exit
exec 9>/var/lock/ekco-test-ceph.lock
until flock -w 5 9; do
	echo "install.sh: waiting for another install" >&2
done
all_there && exit
echo "install.sh: installing Ceph with apt-get; half a minute and 60 MB" >&2
export DEBIAN_FRONTEND=noninteractive
apt-get update -qq >&2
apt-get install -y -qq --no-install-recommends ceph-mon ceph-mgr ceph-osd ceph-common >&2
all_there || {
	echo "install.sh: some of Ceph's programs are still missing after the install" >&2
	exit 1
}
ceph --version >&2
