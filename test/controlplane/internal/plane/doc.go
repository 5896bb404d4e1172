// Package plane starts and stops a Kubernetes control plane as child processes of the controlplane binary. It listens
// on loopback, and has all its files in one directory.
//
// A running control plane is one supervisor process (Run) with its children. The kernel ends the children when the
// supervisor dies, so that no process outlives it.
package plane
