// Package envoy knows the pods of Contour's Envoy, and when one of them hangs: its proxy runs but does not
// become ready, which Kubernetes does not repair.
package envoy
