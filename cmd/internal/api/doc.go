// Package api is the interface of EKCO: a unix socket next to the journal for commands, and plain HTTP for probes and
// metrics. Clients of the network port cannot change the cluster.
package api
