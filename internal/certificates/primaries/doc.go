// Package primaries collects facts about the certificates of control planes. The facts come from tasks on the
// primaries, from TLS handshakes with the servers, and from the API server's data about the components. The package
// changes only one ConfigMap, where other programs read the time of the last check.
package primaries
