#!/bin/sh
# Installs containerd, runc, and what the network of a node and of its pods needs; 50 MB. Needs root.
exec "$(dirname "$0")/../debian.sh" containerd runc containernetworking-plugins iproute2 iptables util-linux
