// Package envoy finds pods of Contour's Envoy that hang: the proxy runs but does not become ready, which Kubernetes
// does not repair.
package envoy
