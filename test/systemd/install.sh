#!/bin/sh
# Installs systemd and D-Bus from Debian, unless they are there. Nothing of it is started. Needs root.
set -eu

all_there() {
	[ -x /lib/systemd/systemd ] && command -v systemctl >/dev/null && command -v dbus-daemon >/dev/null &&
		[ -e /lib/systemd/system/dbus.socket ] && command -v unshare >/dev/null && command -v nsenter >/dev/null
}

all_there && exit
exec 9>/var/lock/ekco-test-systemd.lock
until flock -w 5 9; do
	echo "install.sh: waiting for another install" >&2
done
all_there && exit
echo "install.sh: installing systemd and D-Bus with apt-get" >&2
export DEBIAN_FRONTEND=noninteractive
apt-get update -qq >&2
apt-get install -y -qq --no-install-recommends systemd dbus util-linux >&2
all_there || {
	echo "install.sh: systemd or D-Bus is still missing after the install" >&2
	exit 1
}
