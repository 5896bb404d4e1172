#!/bin/sh
# Unpacks Debian's docker-registry into the cache unless it is there, and prints its
# path, the only line on standard output. Nothing of it is installed, or started. It
# downloads 5 MB. The cache is $EKCO_CACHE, else $XDG_CACHE_HOME/ekco, else ~/.cache/ekco.
set -eu

cache=${EKCO_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/ekco}/programs
case $cache in
/*) ;;
*) cache=$PWD/$cache ;;
esac
tree=$cache/docker-registry

use_cached() {
	[ -x "$tree/usr/bin/docker-registry" ] || return 1
	echo "$tree/usr/bin/docker-registry"
}

use_cached && exit
mkdir -p "$cache"
exec 9>"$tree.lock"
until flock -w 5 9; do
	echo "install.sh: waiting for another install" >&2
done
use_cached && exit
echo "install.sh: downloading docker-registry with apt-get" >&2
rm -rf "$tree" "$tree.new" # of an install that was killed
mkdir "$tree.new"
cd "$tree.new"
exec 8>/var/lock/ekco-debian.lock # debian.sh takes it, too
flock 8
apt-get update -qq >&2
apt-get download -qq docker-registry >&2
dpkg-deb --extract docker-registry_*.deb . >&2
rm docker-registry_*.deb
mv "$tree.new" "$tree"
use_cached
