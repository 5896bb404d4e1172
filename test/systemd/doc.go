// Package systemdtest runs EKCO's commands for a host on a machine that was booted by a real systemd,
// with its D-Bus: namespaces with a root directory of their own, which is that of the host with what
// is written kept apart. It needs root, and systemd and D-Bus from Debian, which install.sh installs.
package systemdtest
