#!/bin/sh
# Installs Debian packages that are not installed yet: debian.sh PACKAGE...
# Callers take turns, because apt-get fails while another one runs. Needs root.
set -eu

are_installed() {
	[ "$(dpkg-query -W -f '${db:Status-Status}\n' "$@" 2>/dev/null | grep -cx installed)" -eq $# ]
}

are_installed "$@" && exit
exec 9>/var/lock/ekco-debian.lock # registry/install.sh takes it, too
until flock -w 5 9; do
	echo "debian.sh: waiting until another script has installed its packages" >&2
done
are_installed "$@" && exit
echo "debian.sh: installing $* with apt-get" >&2
export DEBIAN_FRONTEND=noninteractive
apt-get update -qq >&2
# Without --no-remove it would remove packages that conflict, such as Docker.
apt-get install -y -qq --no-install-recommends --no-remove "$@" >&2
