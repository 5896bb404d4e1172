// Package execserver is the part of a kubelet that kubectl exec needs, for all
// simulated nodes at once: it serves the API server's exec requests by running
// one program of the host, in the name of the container asked for.
//
// It trusts nobody but the API server, which has decided by then who may exec,
// and asks it for each request whether the container runs and its node is not
// lost. It simulates no other part of a container: what the program sees and
// may do is what the host lets it.
package execserver
