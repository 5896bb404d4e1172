#!/bin/sh
# Runs an HAProxy that install.sh has unpacked as its container does: as a master with
# a worker, with the configuration mounted as a single file. To be run by
# "unshare --mount"; it becomes HAProxy. Needs root.
#
#   master.sh TREE DIRECTORY CONFIGURATION
#
# DIRECTORY is empty, and becomes HAProxy's root.
set -eu

tree=$1 root=$2 config=$3
mount --make-rprivate /
mount -t tmpfs tmpfs "$root"
for directory in "$tree"/usr "$tree"/lib*; do
	[ -d "$directory" ] || continue
	mkdir "$root/$(basename "$directory")"
	mount --bind "$directory" "$root/$(basename "$directory")"
done
for library in "$tree"/usr/lib*; do # where /lib is one of /usr
	[ -e "$root/$(basename "$library")" ] || ln -s "usr/$(basename "$library")" "$root/$(basename "$library")"
done
mkdir "$root/dev" "$root/proc"
mount --bind /dev "$root/dev"
mount --bind /proc "$root/proc"
touch "$root/haproxy.cfg"
mount --bind "$config" "$root/haproxy.cfg"
exec chroot "$root" /usr/sbin/haproxy -W -db -f /haproxy.cfg
