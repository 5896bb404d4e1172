// Package monitoring is the machine of the Prometheus and the Alertmanager that kURL
// installs: how many replicas the number of nodes allows, and whether they have them.
// All nodes count, also those that are not ready.
package monitoring
