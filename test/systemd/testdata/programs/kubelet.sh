#!/bin/sh
# Stands for the kubelet: takes its server from kubelet.conf, and ends with one that it cannot use.
server=$(sed -n 's/^ *server: *\([^ ]*\).*/\1/p' /etc/kubernetes/kubelet.conf)
echo "$server" >>/run/kubelet.servers
case $server in
*unusable*) exit 1 ;;
esac
exec sleep infinity
