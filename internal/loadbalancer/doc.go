// Package loadbalancer writes the files of the load balancer in front of the API servers on
// each node: HAProxy's configuration, and the manifest of the static pod that runs it. Clients
// on a node connect to port [Port], and HAProxy balances to primaries whose API server is ready.
package loadbalancer
