#!/bin/sh
# Installs systemd and D-Bus, which tests start in namespaces of their own. Needs root.
exec "$(dirname "$0")/../debian.sh" systemd dbus util-linux
