#!/bin/bash
# For "go test -exec" in a module that does not have package rig: runs a test
# binary in a network namespace that has only loopback, and fails if a process
# tried to reach another address. Needs root.
set -eu
if [ "$1" != --inside ]; then
	exec unshare --net "$0" --inside "$@"
fi
shift
ip link set lo up
setpriv --pdeathsig KILL -- "$@"
count=$(awk '$1 == "Ip:" && column { count += $column }
	$1 == "Ip:" { for (i = 1; i <= NF; i++) if ($i == "OutNoRoutes") column = i }
	$1 == "Ip6OutNoRoutes" { count += $2 }
	END { print column ? count : "unknown" }' /proc/net/snmp /proc/net/snmp6)
if [ "$count" != 0 ]; then
	echo "exec.sh: a process of these tests tried $count times to reach an address outside of the tests' network namespace" >&2
	exit 1
fi
