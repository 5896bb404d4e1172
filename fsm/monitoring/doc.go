// Package monitoring is the machine for the Prometheus and the Alertmanager that kURL installs. EKCO sets their number
// of replicas by the number of nodes. Nodes that are not ready count too.
package monitoring
