// Package loadbalancer is the machine for the load balancer of each node. It compares the files with which HAProxy was
// last verified to run with the wanted files, and requests updates.
package loadbalancer
