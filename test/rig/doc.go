// Package rig starts test binaries that run real programs: each in a network
// namespace of its own, from which nothing reaches another machine.
//
// EKCO connects to the nodes of its cluster, and no machine has the addresses of
// simulated nodes. The namespace has no route to other machines, so such a connection
// fails instead of leaving this one, and the ports of two test binaries that run at the
// same time cannot clash. A test may make more namespaces, for example for nodes; packets
// from these to other machines end in the binary's namespace if their default route
// points to it.
package rig
