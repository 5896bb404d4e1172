// Package systemdtest is a fake systemd for tests. It answers the requests of package systemd over D-Bus on a socket,
// like systemd 252. A test says what happens to its units.
package systemdtest
