#!/bin/sh
# Builds the controlplane program unless it is cached, and prints its path.
set -eu
shared=$(cd "$(dirname "$0")/.." && pwd)/program.sh
# shellcheck source=test/program.sh
. "$shared"

# kubectl reads the server's version, which is stamped at link time.
kubernetes=v1.36.3
stamp=k8s.io/component-base/version

built controlplane "Kubernetes $kubernetes, etcd and kwok into one program" \
	"-s -w -X $stamp.gitVersion=$kubernetes -X $stamp.gitMajor=1 -X $stamp.gitMinor=36" .
