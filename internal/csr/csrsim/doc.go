// Package csrsim is a simulated cluster in which kubelets ask for serving certificates,
// for tests. It makes requests as kubelets do, and holds them, and what is around them,
// in memory.
package csrsim
