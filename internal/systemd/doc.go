// Package systemd restarts a unit of the host over D-Bus, and checks whether it is active again.
package systemd
