#!/bin/sh
# Installs Chromium, in which tests open the pages that EKCO writes, from Debian, unless it
# is there. Nothing of it is started. Needs root; it downloads about 110 MB.
set -eu

command -v chromium >/dev/null && exit
exec 9>/var/lock/ekco-test-browser.lock
until flock -w 5 9; do
	echo "install.sh: waiting for another install" >&2
done
command -v chromium >/dev/null && exit
echo "install.sh: installing Chromium with apt-get" >&2
export DEBIAN_FRONTEND=noninteractive
apt-get update -qq >&2
apt-get install -y -qq --no-install-recommends chromium >&2
command -v chromium >/dev/null || {
	echo "install.sh: Chromium is still missing after the install" >&2
	exit 1
}
