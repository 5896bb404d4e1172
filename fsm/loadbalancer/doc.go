// Package loadbalancer is the machine for the load balancer of each node. It compares what HAProxy was last verified
// to run with, and what is wanted.
package loadbalancer
