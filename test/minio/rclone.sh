#!/bin/sh
# Installs rclone, with which a benchmark compares EKCO's copy; 15 MB. Needs root.
exec "$(dirname "$0")/../debian.sh" rclone
