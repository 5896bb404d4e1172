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
	[ -x "$tree/run" ] || return 1
	echo "$tree/run"
}

# unpack makes the directory $1, where nothing of the packages is run. As in
# deploy/image/base.sh, nothing is open for mmdebstrap.
unpack() {
	mmdebstrap --quiet --variant=extract --mode=root --format=dir --include=haproxy "$suite" "$1" \
		"deb $mirror $suite main" "deb $mirror $suite-updates main" "deb $security $suite-security main" \
		>&2 3>&- 4>&- 5>&- 6>&- 7>&- 8>&- 9>&-
}

# runner prints the program: HAProxy with the libraries of its own suite, and with an empty
# /etc/resolv.conf, because HAProxy connects to the machine's nameservers when it starts,
# even if it needs none. Its master mode (-W) does not work with this program: the master
# starts HAProxy again without it.
runner() {
	cat <<-'END'
		#!/bin/sh
		set -eu
		tree=$(dirname "$(readlink -f "$0")")
		for loader in "$tree"/usr/lib*/ld-linux-*.so.* "$tree"/lib*/ld-linux-*.so.*; do
			[ ! -e "$loader" ] || break
		done
		libraries=$(echo "$tree"/lib/*-linux-gnu "$tree"/usr/lib/*-linux-gnu | tr ' ' :)
		exec unshare --mount sh -c '[ ! -e /etc/resolv.conf ] || mount --bind /dev/null /etc/resolv.conf; exec "$@"' \
			sh "$loader" --library-path "$libraries" "$tree/usr/sbin/haproxy" "$@"
	END
}

use_cached && exit
mkdir -p "$cache"
exec 9>"$cache/haproxy-of-$suite.lock"
until flock -w 5 9; do
	say "waiting for another install"
done
use_cached && exit
"$(dirname "$0")/../debian.sh" mmdebstrap debian-archive-keyring
say "unpacking HAProxy of Debian $suite; some seconds and 15 MB"
rm -rf "$tree" "$tree.new" # of an install that was killed
unpack "$tree.new"
runner >"$tree.new/run"
chmod 755 "$tree.new/run"
"$tree.new/run" -v >&2
mv "$tree.new" "$tree"
use_cached
