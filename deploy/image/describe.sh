#!/bin/sh
# Run by mmdebstrap in base.sh once the packages are unpacked into the directory
# $1: writes into the directory $2 what they say of themselves ("packages") and
# which paths are theirs ("files").
set -eu

for deb in "$1"/var/cache/apt/archives/*.deb; do
	dpkg-deb --field "$deb"
	printf 'SHA256: %s\n\n' "$(sha256sum "$deb" | cut -d' ' -f1)"
done >"$2/packages"
for deb in "$1"/var/cache/apt/archives/*.deb; do
	dpkg-deb --fsys-tarfile "$deb" | tar -t
done | LC_ALL=C sort -u >"$2/files"
