// Package envoy knows what the pods of Contour's Envoy look like, and when one of them
// hangs: its proxy runs and does not become ready, for which Kubernetes has no cure.
package envoy
