// Package api is how EKCO is reached: a unix socket beside the journal for
// commands, and plain HTTP for probes and metrics. Nothing that changes the
// cluster can be asked for over the network port.
package api
