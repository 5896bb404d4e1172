#!/bin/sh
# Installs Chromium, in which tests open the pages that EKCO writes; 110 MB. Needs root.
exec "$(dirname "$0")/../debian.sh" chromium
