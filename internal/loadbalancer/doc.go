// Package loadbalancer says what the load balancer in front of the API servers is made of on
// each node: HAProxy's configuration, and the manifest of the static pod that runs it. Clients
// on a node reach it on port [Port], and it leads to a primary whose API server is ready.
package loadbalancer
