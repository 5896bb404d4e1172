// Package kube is EKCO's view of the Kubernetes API: the narrow interface [API] of single calls, one
// implementation with client-go, and the conversion of Kubernetes objects into the journal's types. The
// subpackage kubesim simulates a cluster for crash and storm tests.
package kube
