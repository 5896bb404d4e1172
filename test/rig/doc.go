// Package rig starts test binaries that run real programs: each in a network
// namespace of its own, from which nothing reaches another machine.
//
// EKCO connects to the nodes of its cluster, and no machine has the addresses of
// simulated nodes. In the namespace there is only loopback, so such a connection fails at
// once instead of leaving the machine, and the ports of two test binaries that run at the
// same time cannot clash. A test may make more namespaces, for example for nodes; what
// these send to another machine ends in the binary's namespace, if their default route
// leads there.
package rig
