#!/bin/sh
# Installs bats, which runs the tests of the kURL add-on, and shellcheck. Needs root.
set -eu
"$(dirname "$0")/../debian.sh" bats shellcheck
command -v bats shellcheck
