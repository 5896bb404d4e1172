// Package containerdtest starts a containerd of a test's own, from Debian's
// packages, with runc: for what has to be seen on the runtime that clusters have.
// It needs root.
package containerdtest
