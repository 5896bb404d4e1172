#!/bin/sh
# Installs rclone from Debian, with which a benchmark compares EKCO's copy, unless
# it is there. Needs root; it downloads about 15 MB.
set -eu

command -v rclone >/dev/null && exit
exec 9>/var/lock/ekco-test-rclone.lock
until flock -w 5 9; do
	echo "rclone.sh: waiting for another install" >&2
done
command -v rclone >/dev/null && exit
echo "rclone.sh: installing rclone with apt-get" >&2
export DEBIAN_FRONTEND=noninteractive
apt-get update -qq >&2
apt-get install -y -qq --no-install-recommends rclone >&2
