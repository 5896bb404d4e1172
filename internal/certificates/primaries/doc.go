// Package primaries collects facts about the certificates on primaries (control-plane nodes). The facts come from host
// tasks on these nodes, from TLS handshakes with the nodes' API servers and etcd members, and from the API server's
// data about the components. The package writes only one ConfigMap, in which other programs read the time of the last
// check.
package primaries
