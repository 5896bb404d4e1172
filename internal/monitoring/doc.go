// Package monitoring is EKCO's view of kURL's Prometheus and Alertmanager: custom resources of the Prometheus
// operator, of which it reads and changes only the number of replicas.
package monitoring
