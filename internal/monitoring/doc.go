// Package monitoring is EKCO's view of the Prometheus and the Alertmanager that kURL
// installs: the custom resources of the Prometheus operator, of which it reads and
// changes the number of replicas and nothing else.
package monitoring
