// Package loadbalancer is the machine of the load balancer on each node: what HAProxy there was last
// proved to run with, against what it shall.
package loadbalancer
