// Package api is the interface of EKCO: a unix socket next to the journal for commands, and plain HTTP for probes and
// metrics. Requests that change the cluster are not possible over the network port.
package api
