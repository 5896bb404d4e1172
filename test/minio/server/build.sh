#!/bin/sh
# Builds minio and its client mc unless they are cached, and prints the path of
# minio; mc is beside it.
set -eu
shared=$(cd "$(dirname "$0")/../.." && pwd)/program.sh
# shellcheck source=test/program.sh
. "$shared"

# What is built from a module calls itself a development version. This is the
# release that its pseudo-version in go.mod was made of.
stamp=github.com/minio/minio/cmd

built minio "MinIO and its client mc" \
	"-s -w -X $stamp.Version=2026-02-12T20:18:48Z -X $stamp.ReleaseTag=RELEASE.2026-02-12T20-18-48Z" \
	github.com/minio/minio github.com/minio/mc
