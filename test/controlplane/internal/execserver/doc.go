// Package execserver simulates the part of a kubelet that kubectl exec needs, for all simulated nodes. It serves the
// API server's exec requests by running one program of the host on behalf of the requested container.
//
// It accepts only the API server, which has already decided whether the user may exec. For each request it asks the API
// server whether the container runs and whether its node is lost. It simulates no other part of a container: the
// program has the view and the permissions of a process on the host.
package execserver
