// Package plane starts and stops a Kubernetes control plane as child processes
// of the controlplane binary, on loopback, with all its files in one directory.
//
// A running plane is one supervisor process (Run) and its children. Children
// are ended by the kernel when the supervisor dies, so nothing outlives it.
package plane
