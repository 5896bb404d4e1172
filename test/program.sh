# shellcheck shell=sh
# Sourced by the build.sh of a program that tests start, with the path of this
# file in $shared. "built" builds the program unless it is cached, and prints its
# path, the only line on standard output. What it does and how far it is goes to
# standard error. The cache is $EKCO_CACHE, else $XDG_CACHE_HOME/ekco, else
# ~/.cache/ekco.
set -eu

: "${shared:?}"
kept=3

say() { echo "$name: $*" >&2; }

# Everything the binaries are made of: go.mod pins the rest.
sources() {
	find . -type f \( -name '*.go' ! -name '*_test.go' -o -name '*.yaml' -o -name go.mod -o -name go.sum -o -name build.sh \) |
		LC_ALL=C sort
}

fingerprint() {
	{
		go env GOVERSION GOARCH
		cat "$shared"
		sources | xargs sha256sum
	} | sha256sum | cut -c1-16
}

use_cached() {
	[ -d "$binaries" ] || return 1
	touch "$binaries" # the newest are kept
	echo "$binaries/$name"
}

# follow waits for process $1 and says every 5 s that it does $2; with $3, how
# many of so many packages are done, which are the lines of $log.
follow() {
	seconds=0
	while kill -0 "$1" 2>/dev/null; do
		sleep 1
		seconds=$((seconds + 1))
		if [ $((seconds % 5)) -eq 0 ]; then
			say "$2, ${seconds} s${3:+, $(wc -l <"$log") of at most $3 packages}"
		fi
	done
	wait "$1"
}

# run runs a command in the background, so that its progress can be told and it
# can be stopped with this script: run WHAT TOTAL COMMAND...
run() {
	doing=$1 total=$2
	shift 2
	"$@" >"$list" 2>"$log" 9>&- &
	child=$!
	status=0
	follow "$child" "$doing" "$total" || status=$?
	child=
	[ "$status" -eq 0 ] && return
	say "$doing failed:"
	tail -n 30 "$log" >&2
	exit 1
}

build() {
	started=$(date +%s)
	say "building $what; the first time takes some minutes"
	mkdir "$new"
	run "downloading modules" "" go list -deps "$@"
	# The flags are those of the Makefile, so that packages are compiled once. The compiler
	# is quicker if it collects no garbage below 3 GiB.
	run "compiling and linking" "$(wc -l <"$list")" env GOGC=off GOMEMLIMIT=3GiB \
		go build -v -trimpath -gcflags=all=-dwarf=false -buildvcs=false -ldflags "$ldflags" -o "$new/" "$@"
	mv "$new" "$binaries"
	say "built in $(($(date +%s) - started)) s: $binaries"
}

remove_stale() {
	# Names are ours and without spaces.
	# shellcheck disable=SC2012
	ls -td "$cache/$name"-[0-9a-f]* 2>/dev/null | tail -n +$((kept + 1)) | xargs rm -rf
}

clean() {
	[ -z "$child" ] || kill "$child" 2>/dev/null || true
	rm -rf "$log" "$list" "$new"
}

# built NAME WHAT LDFLAGS PACKAGE... builds packages of the module that the
# sourcing script is in. NAME is the binary whose path is printed; those of other
# packages are beside it. WHAT is what is built, for people.
built() {
	name=$1 what=$2 ldflags=$3
	shift 3
	export CGO_ENABLED=0 GOWORK=off
	cache=${EKCO_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/ekco}/programs
	case $cache in
	/*) ;;
	*) cache=$PWD/$cache ;;
	esac
	cd "$(dirname "$0")"
	binaries=$cache/$name-$(fingerprint)
	use_cached && return

	mkdir -p "$cache"
	exec 9>"$cache/$name.lock"
	until flock -w 5 9; do
		say "waiting for another build"
	done
	use_cached && return

	rm -rf "$cache/.build-$name"-* # of a build that was killed
	new=$cache/.build-$name-$$
	log=$new.log
	list=$new.list
	child=
	trap clean EXIT
	trap 'exit 130' INT
	trap 'exit 143' TERM HUP
	build "$@"
	remove_stale
	use_cached
}
