#!/bin/bash
# The first process of a node's namespaces, started by machine.go: makes the node's root
# directory and network, says "ready" in $1/settings, and then only waits. $1 is the
# node's directory outside, $2 its name, $3 the program controlplane.
set -euo pipefail
dir=$1 name=$2 program=$3

mount --make-rprivate /
mkdir -p "$dir/changes"
mount -t tmpfs -o mode=755,size=512m changes "$dir/changes"
mkdir "$dir/changes/upper" "$dir/changes/work" "$dir/changes/root"
# What is mounted within this machine's root is not part of it: /proc, /sys and the like.
mount -t overlay -o "lowerdir=/,upperdir=$dir/changes/upper,workdir=$dir/changes/work" root "$dir/changes/root"
cd "$dir/changes/root"

# What the node has on its disk outlives its loss of power, and is no overlay, on which
# containerd could not make more of them.
for path in etc/kubernetes var/lib/containerd var/lib/ekco var/lib/etcd var/lib/kubelet var/log; do
	mkdir -p "$path" "$dir/disk/$path"
	mount --bind "$dir/disk/$path" "$path"
done
mkdir -p node before proc sys dev run tmp etc/cni/net.d
mount --bind "$dir/settings" node
touch node/controlplane
mount --bind "$program" node/controlplane
mount --rbind /dev dev
mount --rbind /sys sys
mount -t tmpfs -o mode=755 run run
mount -t tmpfs -o mode=1777 tmp tmp
mount -t proc proc proc
cp node/cni.conflist etc/cni/net.d/10-node.conflist
install -m 0755 node/kubectl usr/local/bin/kubectl
# An installer's pods find no name server here, and need none.
echo "nameserver 127.0.0.1" >etc/resolv.conf

pivot_root . before
cd /
# Mounts of pods reach this machine's no more than these.
mount --make-rshared /
umount -l /before
hostname "$name"
echo 1 >/proc/sys/net/ipv4/ip_forward
ip link set lo up
echo ready >/node/ready

# Orphans of the node are reaped here; the rest is done by those who join.
trap 'exit 0' TERM
while true; do
	sleep 3600 &
	wait $!
done
