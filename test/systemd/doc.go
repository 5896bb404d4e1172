// Package systemdtest runs EKCO's commands for hosts on a simulated machine that a real systemd has booted, with its
// D-Bus. The machine is a set of namespaces whose root directory is a copy-on-write view of the host's. It needs root,
// and systemd and D-Bus from Debian, which install.sh installs.
package systemdtest
