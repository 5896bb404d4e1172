// Package containerdtest starts a containerd for a test, with runc, from Debian's packages. It is for behaviour that
// must be seen with the runtime of real clusters. It needs root.
package containerdtest
