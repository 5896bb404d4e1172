#!/bin/sh
# Stands for the kubelet: takes its server from kubelet.conf, and ends with one that it cannot use.
# It starts no other program: on a busy machine it must end before EKCO takes it for one that stays active.
while read -r key value _; do
  [ "$key" != server: ] || server=$value
done </etc/kubernetes/kubelet.conf
echo "$server" >>/run/kubelet.servers
case $server in
*unusable*) exit 1 ;;
esac
exec sleep infinity
