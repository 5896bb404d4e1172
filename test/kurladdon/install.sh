#!/bin/sh
# Installs bats, which runs the tests of the kURL add-on. Needs root.
set -eu
"$(dirname "$0")/../debian.sh" bats
command -v bats
