#!/bin/bash
# Becomes the systemd of a machine, as the first process of its namespaces. $1 is a directory with the
# units that it has besides those of D-Bus, and programs; what is written on the machine is kept there.
set -euo pipefail
dir=$1

mount --make-rprivate /
mkdir -p "$dir/changes"
mount -t tmpfs -o mode=755,size=256m changes "$dir/changes"
mkdir "$dir/changes/upper" "$dir/changes/work" "$dir/changes/root"
mount -t overlay -o "lowerdir=/,upperdir=$dir/changes/upper,workdir=$dir/changes/work" root "$dir/changes/root"
cd "$dir/changes/root"

mkdir -p before proc sys dev run tmp
mount -t tmpfs -o mode=755 dev dev
for device in null zero full random urandom tty; do
	touch "dev/$device"
	mount --bind "/dev/$device" "dev/$device"
done
mkdir dev/shm dev/pts
mount -t sysfs -o ro sysfs sys
if [ -e /sys/fs/cgroup/cgroup.controllers ]; then
	mount -t cgroup2 cgroup2 sys/fs/cgroup
else
	mount -t tmpfs -o mode=755 cgroup sys/fs/cgroup
	mkdir sys/fs/cgroup/systemd
	mount -t cgroup -o none,name=systemd systemd sys/fs/cgroup/systemd
fi
mount -t tmpfs -o mode=755 run run
mount -t tmpfs -o mode=1777 tmp tmp
mount -t proc proc proc

rm -rf etc/systemd/system etc/kubernetes
mkdir -p etc/systemd/system etc/kubernetes
cp "$dir"/units/* usr/lib/systemd/system/
cp "$dir"/programs/* usr/local/bin/

pivot_root . before
cd /
umount -l /before
ip link set lo up 2>/dev/null || true # D-Bus listens on a socket of the file system
exec env -i container=ekco-test PATH="$PATH" /lib/systemd/systemd --system --unit=machine.target --log-target=console --show-status=false
