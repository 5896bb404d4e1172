#!/bin/bash
# For "go test -exec": runs a test binary and prints the time that it and its
# children took, which main.go reads. The binary ends with this script, also if
# "go test" kills that.
TIMEFORMAT='time of the test binary: %R s wall, %U s user, %S s system'
time setpriv --pdeathsig KILL -- "$@"
