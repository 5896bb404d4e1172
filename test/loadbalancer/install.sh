#!/bin/sh
# Unpacks an HAProxy and the libraries it needs from Debian's packages into the
# cache unless it is there, and prints the path of a program that runs it, the
# only line on standard output. Nothing of it is installed, or started. Needs root;
# it downloads about 15 MB.
#
#   install.sh bookworm    HAProxy 2.6
#   install.sh trixie      HAProxy 3.0
#
# The cache is $EKCO_CACHE, else $XDG_CACHE_HOME/ekco, else ~/.cache/ekco.
# DEBIAN_MIRROR and DEBIAN_SECURITY_MIRROR name other mirrors.
set -eu

suite=$1
mirror=${DEBIAN_MIRROR:-http://deb.debian.org/debian}
security=${DEBIAN_SECURITY_MIRROR:-http://deb.debian.org/debian-security}
cache=${EKCO_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/ekco}/programs
case $cache in
/*) ;;
*) cache=$PWD/$cache ;;
esac
tree=$cache/haproxy-of-$suite

say() { echo "install.sh: $*" >&2; }

use_cached() {
	[ -x "$tree/haproxy" ] || return 1
	echo "$tree/haproxy"
}

install_mmdebstrap() {
	command -v mmdebstrap >/dev/null && return
	exec 8>/var/lock/ekco-mmdebstrap.lock # that of deploy/image/base.sh
	flock 8
	command -v mmdebstrap >/dev/null && return
	say "installing mmdebstrap with apt-get"
	export DEBIAN_FRONTEND=noninteractive
	apt-get update -qq >&2
	apt-get install -y -qq --no-install-recommends mmdebstrap debian-archive-keyring >&2
	exec 8>&-
}

# unpack makes the directory $1, where nothing of the packages is run. As in
# deploy/image/base.sh, nothing is open for mmdebstrap.
unpack() {
	mmdebstrap --quiet --variant=extract --mode=root --format=dir --include=haproxy "$suite" "$1" \
		"deb $mirror $suite main" "deb $mirror $suite-updates main" "deb $security $suite-security main" \
		>&2 3>&- 4>&- 5>&- 6>&- 7>&- 8>&- 9>&-
}

# runner prints the program: HAProxy with the libraries of its own suite. HAProxy's
# master mode (-W) does not work by it: the master starts HAProxy again, without.
runner() {
	cat <<-'END'
		#!/bin/sh
		set -eu
		tree=$(dirname "$(readlink -f "$0")")
		for loader in "$tree"/usr/lib*/ld-linux-*.so.* "$tree"/lib*/ld-linux-*.so.*; do
			[ ! -e "$loader" ] || break
		done
		libraries=$(echo "$tree"/lib/*-linux-gnu "$tree"/usr/lib/*-linux-gnu | tr ' ' :)
		exec "$loader" --library-path "$libraries" "$tree/usr/sbin/haproxy" "$@"
	END
}

use_cached && exit
mkdir -p "$cache"
exec 9>"$cache/haproxy-of-$suite.lock"
until flock -w 5 9; do
	say "waiting for another install"
done
use_cached && exit
install_mmdebstrap
say "unpacking HAProxy of Debian $suite; some seconds and 15 MB"
rm -rf "$tree" "$tree.new" # of an install that was killed
unpack "$tree.new"
runner >"$tree.new/haproxy"
chmod 755 "$tree.new/haproxy"
"$tree.new/haproxy" -v >&2
mv "$tree.new" "$tree"
use_cached
