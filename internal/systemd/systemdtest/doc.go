// Package systemdtest is a systemd for tests: it answers on a socket what [systemd] asks over
// D-Bus, as systemd 252 answers it, and does with its units what a test says.
package systemdtest
