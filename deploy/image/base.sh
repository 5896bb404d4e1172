#!/bin/sh
# Makes the Debian part of the image for one architecture unless it is cached,
# and prints the directory with it, the only line on standard output. What it
# does goes to standard error. Nothing of the packages is run: they are only
# unpacked, so any architecture can be made on any other.
#
#   base.sh amd64|arm64
#   base.sh lock           records in packages.lock what the mirror has today
#
# The directory holds
#   base.tar   what the packages contain
#   packages   their control paragraphs, with the SHA256 of each .deb
#   files      the paths that belong to a package; the rest of base.tar is mmdebstrap's
#
# It takes the packages the mirror has today and says which differ from
# packages.lock. With LOCKED=1 it takes those of packages.lock and fails if one is
# not to be had. DEBIAN_MIRROR and DEBIAN_SECURITY_MIRROR name other mirrors. The
# cache is $EKCO_CACHE, else $XDG_CACHE_HOME/ekco, else ~/.cache/ekco; remove its
# directory "image" to fetch anew. Needs root, to keep the owners of files.
set -eu
cd "$(dirname "$0")"

suite=trixie
mirror=${DEBIAN_MIRROR:-http://deb.debian.org/debian}
security=${DEBIAN_SECURITY_MIRROR:-http://deb.debian.org/debian-security}
# What installers and administrators run in the container: bash, grep and
# coreutils by contract; sh for scripts; tar for kubectl cp, which takes a journal
# out, and gzip for its exports; find and sed for a look around; the terminals
# that kubectl exec -it is called from.
wanted=base-files,base-passwd,bash,coreutils,dash,findutils,grep,gzip,ncurses-base,sed,tar

say() { echo "base.sh: $*" >&2; }

# locked prints the lines "name version sha256" of packages.lock for this architecture.
locked() { sed -n "s/^$architecture //p" packages.lock 2>/dev/null || true; }

# include prints what mmdebstrap shall unpack, apart from dependencies.
include() {
	if [ "${LOCKED:-}" = 1 ]; then
		locked | awk '{ printf "%s%s=%s", sep, $1, $2; sep = "," }'
	else
		echo "$wanted"
	fi
}

# unpack makes the directory $1. SOURCE_DATE_EPOCH would be the newest time that a
# file may have; without it files keep the time they have in their package. Nothing
# is open for mmdebstrap: it has apt write to files it opens, through sh, which knows
# only numbers of one digit.
unpack() {
	out=$1
	# The lists of a snapshot have expired; packages.lock has the checksums.
	set --
	[ "${LOCKED:-}" != 1 ] || set -- --aptopt='Acquire::Check-Valid-Until "false"'
	env -u SOURCE_DATE_EPOCH mmdebstrap --quiet --variant=extract --mode=root "$@" \
		--architectures="$architecture" --format=tar --include="$(include)" \
		--extract-hook="'$PWD/describe.sh' \"\$1\" '$out'" "$suite" "$out/base.tar" \
		"deb $mirror $suite main" "deb $mirror $suite-updates main" "deb $security $suite-security main" \
		>&2 3>&- 4>&- 5>&- 6>&- 7>&- 8>&- 9>&- || {
		say "cannot unpack Debian's packages; what apt says is above"
		[ "${LOCKED:-}" != 1 ] ||
			say "if the mirror no longer has one of packages.lock, name a snapshot with DEBIAN_MIRROR and DEBIAN_SECURITY_MIRROR"
		exit 1
	}
}

# listed prints the packages of directory $1 as lines of packages.lock.
listed() {
	awk '/^Package: / { name = $2 } /^Version: / { version = $2 } /^SHA256: / { print name, version, $2 }' "$1/packages" |
		LC_ALL=C sort
}

# compare says how what is in directory $1 differs from packages.lock; with
# LOCKED=1 it may not.
compare() {
	listed "$1" >"$1/listed"
	locked >"$1/locked"
	if ! cmp -s "$1/locked" "$1/listed"; then
		say "$architecture: these packages differ from packages.lock (<) and are taken as the mirror has them (>):"
		diff "$1/locked" "$1/listed" | sed -n 's/^\([<>] [^ ]* [^ ]*\) .*/  \1/p' >&2
		[ "${LOCKED:-}" != 1 ] || {
			say "LOCKED=1 wants those of packages.lock"
			exit 1
		}
	fi
	rm "$1/locked"
}

remove_stale() {
	# Names are ours and without spaces.
	# shellcheck disable=SC2012
	ls -td "$cache/debian-$suite-$architecture"-[0-9a-f]* 2>/dev/null | tail -n +4 | xargs rm -rf
}

# lock makes nothing but packages.lock.
lock() {
	[ "${LOCKED:-}" != 1 ] || {
		say "LOCKED=1 would record what is recorded"
		exit 2
	}
	../../test/debian.sh mmdebstrap debian-archive-keyring
	work=$(mktemp -d)
	trap 'rm -rf "$work"' EXIT
	for architecture in amd64 arm64; do
		mkdir "$work/$architecture"
		unpack "$work/$architecture"
		listed "$work/$architecture" | sed "s/^/$architecture /" >>"$work/packages.lock"
	done
	cp "$work/packages.lock" packages.lock
}

architecture=$1
case $architecture in
amd64 | arm64) ;;
lock)
	lock
	exit
	;;
*)
	say "architecture $architecture is not amd64 or arm64"
	exit 2
	;;
esac
key=$({
	cat base.sh describe.sh packages.lock
	echo "$mirror $security ${LOCKED:-}"
} | sha256sum | cut -c1-16)
cache=${EKCO_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/ekco}/image
case $cache in /*) ;; *) cache=$PWD/$cache ;; esac
made=$cache/debian-$suite-$architecture-$key
mkdir -p "$cache"
exec 9>"$cache/$architecture.lock"
flock 9
if [ ! -d "$made" ]; then
	../../test/debian.sh mmdebstrap debian-archive-keyring
	say "unpacking Debian $suite for $architecture: 15 MB to download"
	rm -rf "$cache/.new-$architecture"
	mkdir "$cache/.new-$architecture"
	unpack "$cache/.new-$architecture"
	compare "$cache/.new-$architecture"
	mv "$cache/.new-$architecture" "$made"
	remove_stale
fi
echo "$made"
