#!/bin/sh
# Builds EKCO's image into the directory $1, by default bin/image, without a
# container engine; see README.md. Other arguments go to the program "image".
# $ARCHITECTURES are those to build for, by default both. $VERSION is what the
# Makefile says; $GIT_SHA and $SOURCE_DATE_EPOCH are those of the commit.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
out=${1:-$root/bin/image}
[ $# -eq 0 ] || shift
case $out in /*) ;; *) out=$PWD/$out ;; esac

: "${VERSION:?is not set; run make image}"
GIT_SHA=${GIT_SHA:-$(git -C "$root" describe --always --dirty --abbrev=12 --exclude='*' 2>/dev/null || true)}
SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git -C "$root" log -1 --format=%ct 2>/dev/null || echo 0)}
export CGO_ENABLED=0 GOWORK=off

began=$(date +%s)
say() { echo "build.sh: $* ($(($(date +%s) - began)) s)" >&2; }

bases=$(mktemp -d)
children=
clean() {
	# Those that have ended are not there to be killed.
	for child in $children; do kill "$child" 2>/dev/null || true; done
	rm -rf "$bases"
}
trap clean EXIT
trap 'exit 130' INT
trap 'exit 143' TERM HUP

architectures=${ARCHITECTURES:-amd64 arm64}
for architecture in $architectures; do
	"$here/base.sh" "$architecture" >"$bases/$architecture" &
	children="$children $!"
done
for child in $children; do wait "$child"; done
children=
for architecture in $architectures; do
	set -- --base "$architecture=$(cat "$bases/$architecture")" "$@"
done
say "Debian's packages are there; compiling EKCO, minutes if for the first time"
cd "$here"
go run . --source "$root" --out "$out" --version "$VERSION" --commit "$GIT_SHA" --epoch "$SOURCE_DATE_EPOCH" "$@"
say "the image is in $out"
