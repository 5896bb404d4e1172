// Package kubesim simulates, in memory, the part of a Kubernetes cluster that
// EKCO talks to, for crash and storm tests. A [Cluster] is a [kube.API] with
// controls: lose and return nodes, take the API away, forbid verbs, and stop
// right before or after an effect.
//
// It has no controllers: what Kubernetes would do after a node is lost, a test
// does by hand. It starts no goroutine and waits only on timers, so it works
// inside a testing/synctest bubble.
package kubesim
