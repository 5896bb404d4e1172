#!/bin/sh
# Installs the Ceph programs that tests start; 60 MB. Needs root.
exec "$(dirname "$0")/../debian.sh" ceph-mon ceph-mgr ceph-osd ceph-common
