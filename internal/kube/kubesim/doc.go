// Package kubesim simulates in memory the part of a Kubernetes cluster that EKCO uses, for crash and storm
// tests. A [Cluster] is a [kube.API] with controls: lose and return nodes, stop the API, forbid verbs, and stop
// right before or after an effect.
//
// It has no controllers: what Kubernetes does after the loss of a node, the test does itself. It starts no
// goroutine and waits only on timers, so it works inside a testing/synctest bubble.
package kubesim
