// Package kube reads and changes objects of the Kubernetes API. The interface [API] has only the calls that EKCO needs,
// and [Client] implements it with client-go. The package also converts Kubernetes objects into the journal's types. The
// subpackage kubesim simulates a cluster for crash and storm tests.
package kube
