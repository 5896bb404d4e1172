#!/bin/sh
# Installs containerd, ctr and runc, which tests start; 35 MB. Needs root.
exec "$(dirname "$0")/../debian.sh" containerd runc
