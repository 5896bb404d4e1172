// Package rig starts test binaries that run real programs. Each binary runs in its own network namespace, which has no
// connection to other machines, so parallel test binaries can use the same ports.
//
// EKCO connects to the nodes of its cluster, but no machine has the addresses of simulated nodes. Because the namespace
// has no route to other machines, such a connection fails. A test may create more namespaces, for example for nodes.
// Packets from these to other machines end in the binary's namespace if their default route points to it.
package rig
