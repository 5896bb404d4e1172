// Package etcd is EKCO's view of the etcd cluster of kube-apiserver: the narrow interface [API] (list members,
// check their health, remove one), one implementation with etcd's own client, and two pure decisions: which
// member belonged to a dead node ([Match], [Confirm]) and what a removal would leave ([ProjectRemoval]). The
// subpackage etcdsim simulates a cluster for crash and storm tests.
//
// Importing the package silences gRPC's log, which would otherwise go to standard error; see [Client] to enable
// it.
package etcd
